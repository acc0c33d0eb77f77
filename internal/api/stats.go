// This file has the figures of a sale for operators.

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
	// Ledger.Reserved counts the units of live reservations: queued, pending and paid.
	Ledger LedgerFigures `json:"ledger"`
	Store  StoreFigures  `json:"store"`
	Queue  QueueFigures  `json:"queue"`
	// Requests counts this instance's answers by "accepted" and by error code.
	Requests map[string]int64 `json:"requests"`
}

// The seller of a product.
const (
	SellerLedger = "ledger"
	SellerStore  = "store"
	SellerMoving = "moving" // the store takes over, and does not sell yet
)

// Available returns the free units of the current seller.
func (s *Stats) Available() int64 {
	if s.Seller == SellerLedger {
		return s.Ledger.Available
	}
	return s.Store.Stock
}

// Reserved returns the reserved units of the current seller.
func (s *Stats) Reserved() int64 {
	if s.Seller == SellerLedger {
		return s.Ledger.Reserved
	}
	return s.Store.Pending + s.Store.Paid
}

// LedgerFigures are free and reserved units.
type LedgerFigures struct {
	Available int64 `json:"available"`
	Reserved  int64 `json:"reserved"`
}

// StoreFigures are the product's units in the store, by order status.
type StoreFigures struct {
	Stock     int64 `json:"stock"`
	Pending   int64 `json:"pending"`
	Paid      int64 `json:"paid"`
	Cancelled int64 `json:"cancelled"`
	Failed    int64 `json:"failed"`
	Refunded  int64 `json:"refunded"`
}

// QueueFigures are the reservations that wait for the worker.
type QueueFigures struct {
	Depth    int64 `json:"depth"` // reservations, with parked claims and dead letters
	OldestMS int64 `json:"oldest_ms"`
}
