// Package storetest is the conformance suite of the store port. An adapter must pass Run
// against its real server. CheckPromises checks a product in any test. Faulty makes a real
// store fail on demand.
//
// A file has the tests of one part of the port. storetest.go has the list of parts, suite.go
// the fixtures, model.go the comparison with a model, concurrency*.go the concurrent tests.
package storetest

import (
	"testing"
	"time"

	"seckill/internal/store"
)

// Harness is an open store, and what the suite may do to it.
//
// The suite uses product ids, streams, leases and trade numbers that no other run uses. So
// several harnesses may use one database, one after the other.
type Harness struct {
	// Store is migrated and ready.
	Store store.Store

	// OwnClock means that the suite cannot set the store's clock, for example because it is the
	// server's. The suite then waits for real time, a few milliseconds at most.
	OwnClock bool

	// Reopen closes the store and opens the same data again. It is nil if the adapter keeps no
	// data.
	Reopen func(t *testing.T) store.Store

	// Exec runs a statement that bypasses the store, to damage data that repairs must mend. It
	// must accept the tables tb_seckill_product, tb_seckill_order, tb_stock_log,
	// tb_user_seckill, tb_payment, tb_dead_letter and tb_event, and ? for arguments. If it is
	// nil, the tests that need it are skipped.
	Exec func(t *testing.T, query string, args ...any)
}

// Run runs the suite. It calls open once per part of the contract. open must close its
// resources with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T, clock *Clock) *Harness) {
	parts := []struct {
		name  string
		tests []test
	}{
		{"base", baseTests},
		{"products", productTests},
		{"epochs", epochTests},
		{"confirm", confirmTests},
		{"confirm limits", limitTests},
		{"confirm letters", confirmLetterTests},
		{"orders", orderTests},
		{"direct sales", directTests},
		{"direct returns", directReturnTests},
		{"takeovers", takeoverTests},
		{"entries after a takeover", takeoverEntryTests},
		{"claims parked in a takeover", takeoverParkedTests},
		{"returns", returnTests},
		{"given orders expire", expireOrdersTests},
		{"releases", releaseTests},
		{"letters", letterTests},
		{"claims in several hands", doubleTests},
		{"payments", paymentTests},
		{"deletions", deleteTests},
		{"refunds", refundTests},
		{"stock changes", stockTests},
		{"figures", figureTests},
		{"stock log", stockLogTests},
		{"repairs", repairTests},
		{"unreadable rows", unreadableTests},
		{"blocked rows", blockedTests},
		{"feed", feedTests},
		{"events", eventTests},
		{"deliveries", deliveryTests},
		{"leases", leaseTests},
		{"concurrency", concurrencyTests},
		{"direct concurrency", directConcurrencyTests},
		{"takeover concurrency", takeoverConcurrencyTests},
		{"model", modelTests},
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			// With a fixed time, a store that reads the wall clock would pass.
			clock := NewClock(time.Now().Add(time.Hour))
			s := &suite{Harness: open(t, clock), clock: clock}
			for _, test := range part.tests {
				t.Run(test.name, func(t *testing.T) { test.run(t, s) })
			}
		})
	}
}

// test is one sentence of the contract.
type test struct {
	name string
	run  func(t *testing.T, s *suite)
}
