package shard

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// history records the answers to the buyers, with times.
type history struct {
	mu        sync.Mutex
	orders    []answered
	refusals  []answered
	returns   map[seckill.OrderNo]int
	postponed atomic.Int64
}

type answered struct {
	buyer    string
	no       seckill.OrderNo
	quantity int
	at       time.Time
}

func (h *history) bought(buyer string, no seckill.OrderNo, quantity int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.orders = append(h.orders, answered{buyer, no, quantity, time.Now()})
}

func (h *history) refused(buyer string, quantity int) {
	at := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusals = append(h.refusals, answered{buyer: buyer, quantity: quantity, at: at})
}

func (h *history) returned(no seckill.OrderNo, quantity int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.returns == nil {
		h.returns = make(map[seckill.OrderNo]int)
	}
	h.returns[no] = quantity
}

// checkBooks compares the ledger with the buyers' answers.
func (m *market) checkBooks(t *testing.T, h *history) {
	t.Helper()
	var sold, returned int64
	numbers := make(map[seckill.OrderNo]bool)
	for _, order := range h.orders {
		if numbers[order.no] {
			t.Errorf("%s was sold twice", order.no)
		}
		numbers[order.no] = true
		sold += int64(order.quantity)
		held, err := m.ledger.Held(t.Context(), ledger.ShardOf(&m.product, seckill.HomeShard(&m.product, order.buyer)), order.buyer)
		if err != nil {
			t.Fatal(err)
		}
		has := slices.ContainsFunc(held, func(h ledger.Holding) bool { return h.OrderNo == order.no })
		if _, gone := h.returns[order.no]; has == gone {
			t.Errorf("%s of %s: held is %v, given back %v", order.no, order.buyer, has, gone)
		}
		units := 0
		for _, one := range held {
			units += one.Quantity
		}
		if units > m.quantity {
			t.Errorf("%s holds %d units", order.buyer, units) // I3
		}
	}
	for _, quantity := range h.returns {
		returned += int64(quantity)
	}
	var available, marked, transit int64
	for i := range shards {
		f, err := m.ledger.Read(t.Context(), ledger.ShardOf(&m.product, i))
		if err != nil {
			t.Fatal(err)
		}
		if !f.Open || len(f.Out) != 0 {
			t.Errorf("shard %d is open: %v, its records %+v", i, f.Open, f.Out)
		}
		if f.Available+f.Marked != f.Allotted+f.Received-f.Sent {
			t.Errorf("shard %d is out of balance: %+v", i, f)
		}
		available, marked, transit = available+f.Available, marked+f.Marked, transit+f.Sent-f.Received
	}
	if available+marked+transit != stock || transit != 0 { // I5
		t.Errorf("%d available, %d sold, %d in transit", available, marked, transit)
	}
	if marked != sold-returned { // I1: the accepted units are the units that the ledger holds
		t.Errorf("the ledger holds %d units, buyers %d", marked, sold-returned)
	}
	// Every buyer has an answer, and together they wanted more than the stock. So
	// the units that are left are fewer than the smallest refused quantity, or
	// came back after that refusal.
	if m.giveBackOneIn == 0 && m.quantity == 1 && marked != stock {
		t.Errorf("%d of %d units were sold", marked, stock)
	}
	t.Logf("%d units sold, %d returned, %d refusals, %d answers to come again, %d instances died",
		sold, returned, len(h.refusals), h.postponed.Load(), m.died.Load())
}

// checkNoUndersell checks I7 from outside. At any moment at least these units
// were free: the offered units, minus those whose claim was sent before, plus
// those whose return was confirmed before. A refusal is wrong if during the
// whole second before it this number was at least the quantity asked for.
func (m *market) checkNoUndersell(t *testing.T, h *history) {
	t.Helper()
	type event struct {
		at    time.Time
		delta int64
	}
	events := make([]event, 0, 2*len(h.orders))
	for _, order := range h.orders {
		events = append(events, event{m.ledger.sent[order.no], -int64(order.quantity)})
	}
	for no, quantity := range h.returns {
		events = append(events, event{m.ledger.back[no], int64(quantity)})
	}
	slices.SortFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	for _, refusal := range h.refusals {
		free, lowest := int64(stock), int64(stock)
		since := refusal.at.Add(-time.Second - proofSlack)
		for _, e := range events {
			if e.at.After(refusal.at) {
				break
			}
			if free += e.delta; e.at.Before(since) {
				lowest = free // free units when the second began
			} else {
				lowest = min(lowest, free)
			}
		}
		if lowest >= int64(refusal.quantity) {
			t.Errorf("%s got sold_out for %d units while at least %d were free", refusal.buyer, refusal.quantity, lowest)
			return
		}
	}
}
