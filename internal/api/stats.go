// This file has what the engine tells an operator about a sale: its
// figures at a glance, and the report of a reconciliation.

package api

import "seckill"

// Stats are a product's figures. Ledger and Store count units.
type Stats struct {
	ProductID uint32         `json:"product_id"`
	Test      bool           `json:"test"`
	State     string         `json:"state"`  // the operator's switch
	Status    seckill.Status `json:"status"` // what shoppers see
	Seller    string         `json:"seller"` // SellerLedger, SellerStore or SellerMoving
	Epoch     uint64         `json:"epoch"`
	Offered   int64          `json:"offered"`
	// Ledger.Reserved is the units of live reservations: queued, pending and
	// paid.
	Ledger LedgerFigures `json:"ledger"`
	Store  StoreFigures  `json:"store"`
	Queue  QueueFigures  `json:"queue"`
	// Requests counts this instance's answers: "accepted", and one per code.
	Requests map[string]int64 `json:"requests"`
}

// Who sells a product.
const (
	SellerLedger = "ledger"
	SellerStore  = "store"
	SellerMoving = "moving" // the store takes over, and does not sell yet
)

// Available is what is free to be sold, by whoever sells.
func (s *Stats) Available() int64 {
	if s.Seller == SellerLedger {
		return s.Ledger.Available
	}
	return s.Store.Stock
}

// Reserved is the units that are taken, by whoever sells.
func (s *Stats) Reserved() int64 {
	if s.Seller == SellerLedger {
		return s.Ledger.Reserved
	}
	return s.Store.Pending + s.Store.Paid
}

// LedgerFigures are free and taken units.
type LedgerFigures struct {
	Available int64 `json:"available"`
	Reserved  int64 `json:"reserved"`
}

// StoreFigures is the product's units in the store, by the state of their orders.
type StoreFigures struct {
	Stock     int64 `json:"stock"`
	Pending   int64 `json:"pending"`
	Paid      int64 `json:"paid"`
	Cancelled int64 `json:"cancelled"`
	Failed    int64 `json:"failed"`
	Refunded  int64 `json:"refunded"`
}

// QueueFigures is what waits for the worker.
type QueueFigures struct {
	Depth    int64 `json:"depth"` // reservations, parked ones included
	OldestMS int64 `json:"oldest_ms"`
}
