// Package storetest is the conformance suite of the store port: an adapter is
// done when it passes Run against its real server. The package also has
// CheckPromises, which any test can ask about a product, and Faulty, which
// makes a real store fail on demand.
package storetest

import (
	"testing"
	"time"

	"seckill/internal/store"
)

// Harness is one opened store and what its tests may do to it.
//
// The suite makes products, streams, leases and trades of its own, so several
// harnesses may share one server and one database, one after the other.
type Harness struct {
	// Store is migrated and ready.
	Store store.Store

	// OwnClock says that the store follows a clock that the suite cannot set,
	// such as its server's. The suite then waits for real time to pass; it
	// never asks for more than a few milliseconds at once.
	OwnClock bool

	// Reopen closes the store and opens the same data again; nil when the
	// adapter keeps nothing.
	Reopen func(t *testing.T) store.Store

	// Exec runs a statement behind the store's back, to damage what repairs
	// must mend. It takes the tables tb_seckill_product, tb_seckill_order,
	// tb_stock_log, tb_user_seckill, tb_payment, tb_dead_letter and tb_event, and
	// ? for arguments. With nil, the tests that need it are skipped.
	Exec func(t *testing.T, query string, args ...any)
}

// Run runs the suite. It calls open once per part of the contract; whatever
// open makes is to be closed by t.Cleanup.
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
		{"counter", counterTests},
		{"counter returns", counterReturnTests},
		{"takeovers", takeoverTests},
		{"entries after a takeover", takeoverEntryTests},
		{"claims parked in a takeover", takeoverParkedTests},
		{"returns", returnTests},
		{"given orders expire", expireOrdersTests},
		{"releases", releaseTests},
		{"letters", letterTests},
		{"doubles", doubleTests},
		{"payments", paymentTests},
		{"deletions", deleteTests},
		{"refunds", refundTests},
		{"stock changes", stockTests},
		{"figures", figureTests},
		{"stock log", stockLogTests},
		{"repairs", repairTests},
		{"unreadable rows", unreadableTests},
		{"rows held up", heldUpTests},
		{"feed", feedTests},
		{"events", eventTests},
		{"deliveries", deliveryTests},
		{"leases", leaseTests},
		{"concurrency", concurrencyTests},
		{"counter concurrency", counterConcurrencyTests},
		{"takeover concurrency", takeoverConcurrencyTests},
		{"model", modelTests},
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			// A fixed instant would hide a store that reads the wall clock.
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
