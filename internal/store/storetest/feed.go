package storetest

import (
	"context"
	"sync"
	"testing"

	"seckill"
	"seckill/internal/store"
)

var feedTests = []test{
	{"events come in order, without a gap, within a limit", orderedEvents},
	{"a reader of the feed skips no event that commits later", followedEvents},
	{"the audit lists newest first and narrows by every field", auditLines},
}

func orderedEvents(t *testing.T, s *suite) {
	p := s.preheated(t)
	order := s.buy(t, p, "buyer")
	s.advance(t, tick)
	s.pay(t, order)
	_, err := s.Store.Refund(t.Context(), order.OrderNo, operator)
	must(t, err)
	_, err = s.Store.SetState(t.Context(), p.ID, operatorSets(seckill.SaleEnded))
	must(t, err)

	var kinds []seckill.EventKind
	events := s.events(t, p.ID)
	for i, event := range events {
		kinds = append(kinds, event.Kind)
		if event.At.IsZero() || i > 0 && (event.At.Before(events[i-1].At) || event.ID <= events[i-1].ID) {
			t.Errorf("event %d is out of order: %+v", i, events)
		}
	}
	equal(t, "kinds", kinds, []seckill.EventKind{
		seckill.EventSaleCreated, seckill.EventOrderConfirmed, seckill.EventOrderPaid, seckill.EventOrderRefunded,
		seckill.EventRefundRequired, seckill.EventSaleEnded,
	})
	equal(t, "order of the sale's event", events[5].OrderNo.IsZero(), true)

	page, err := s.Store.Events(t.Context(), events[0].ID-1, 2)
	must(t, err)
	equal(t, "events within a limit", len(page), 2)
	equal(t, "first after the cursor", page[0], events[0])
	equal(t, "gap between ids", page[1].ID-page[0].ID, 1)
	page, err = s.Store.Events(t.Context(), events[5].ID+1_000_000, 10)
	must(t, err)
	equal(t, "events beyond the end", len(page), 0)
}

// followedEvents reads the feed while many write it, and again from the same start afterwards.
// Both reads must give the same events.
func followedEvents(t *testing.T, s *suite) {
	p := s.preheated(t, stock(1000))
	start := s.lastEvent(t)
	const each = 20
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	var writers sync.WaitGroup
	for w := range rivals {
		writers.Go(func() {
			for i := range each {
				item := s.item(t, p, numbered(numbered("buyer", w), i))
				if _, err := s.Store.Confirm(ctx, request(item)); err != nil {
					t.Errorf("confirm: %v", err)
					return
				}
			}
		})
	}
	go func() {
		writers.Wait()
		stop()
	}()

	var followed []int64
	for after, last := start, false; ; {
		page, err := s.Store.Events(t.Context(), after, 7)
		must(t, err)
		for _, event := range page {
			if event.ID <= after {
				t.Fatalf("event %d came after %d", event.ID, after)
			}
			after = event.ID
			followed = append(followed, event.ID)
		}
		if len(page) == 0 && last {
			break
		}
		last = ctx.Err() != nil // one more round after the writers have ended
	}
	var again []int64
	for _, event := range s.eventsAfter(t, start) {
		again = append(again, event.ID)
	}
	equal(t, "events followed", followed, again)
	equal(t, "order.confirmed", s.count(t, p.ID, seckill.EventOrderConfirmed), rivals*each)
}

func (s *suite) eventsAfter(t TB, after int64) []seckill.Event {
	t.Helper()
	events, err := s.Store.Events(t.Context(), after, 1_000_000)
	must(t, err)
	return events
}

func (s *suite) lastEvent(t *testing.T) (last int64) {
	t.Helper()
	for _, event := range s.eventsAfter(t, 0) {
		last = event.ID
	}
	return last
}

func auditLines(t *testing.T, s *suite) {
	p, other := s.create(t), s.create(t)
	no := s.item(t, p, "buyer").Claim.OrderNo.String()
	before := len(s.audit(t, p.ID))
	for _, line := range []store.AuditLine{
		{Actor: "operator", Action: "recover", ProductID: p.ID, Reason: "lost 丢失", Detail: "epoch 1 -> 2"},
		{Actor: "cli", Action: "order.note", ProductID: p.ID, OrderNo: no, Reason: "asked"},
		{Actor: "system", Action: "login"},
		{Actor: "cli", Action: "order.note", ProductID: other.ID, OrderNo: no + "X"},
	} {
		must(t, s.Store.AppendAudit(t.Context(), line))
		s.advance(t, tick)
	}
	lines := s.audit(t, p.ID)
	equal(t, "lines of the product", len(lines), before+2)
	for i, line := range lines {
		if line.At.IsZero() || i > 0 && line.ID >= lines[i-1].ID {
			t.Errorf("line %d is out of order: %+v", i, lines)
		}
	}
	want := store.AuditLine{
		ID: lines[1].ID, At: lines[1].At, Actor: "operator", Action: "recover", ProductID: p.ID, Reason: "lost 丢失", Detail: "epoch 1 -> 2",
	}
	equal(t, "line", lines[1], want)

	list := func(filter store.AuditFilter) []store.AuditLine {
		t.Helper()
		got, err := s.Store.Audit(t.Context(), filter)
		must(t, err)
		return got
	}
	equal(t, "lines of the order", list(store.AuditFilter{OrderNo: no, Limit: all}), lines[:1])
	equal(t, "first page", list(store.AuditFilter{ProductID: p.ID, Limit: 1}), lines[:1])
	equal(t, "next page", list(store.AuditFilter{ProductID: p.ID, Before: lines[0].ID, Limit: 1}), lines[1:2])
	if everything := list(store.AuditFilter{Limit: all}); len(everything) < before+4 {
		t.Errorf("without a filter %d lines, want at least %d", len(everything), before+4)
	}
}
