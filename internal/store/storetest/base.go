package storetest

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"seckill"
	"seckill/internal/store"
)

var baseTests = []test{
	{"the clock is in UTC to the millisecond", func(t *testing.T, s *suite) {
		now := s.now(t)
		equal(t, "zone", now.Location(), time.UTC)
		equal(t, "milliseconds", now.Truncate(time.Millisecond), now)
		s.advance(t, tick)
		if moved := s.now(t).Sub(now); moved < tick {
			t.Errorf("the clock moved by %s, want at least %s", moved, tick)
		}
		if !s.OwnClock {
			equal(t, "now", s.now(t), s.clock.Now())
		}
	}},
	{"Ping succeeds if the store can be read and written", func(t *testing.T, s *suite) {
		must(t, s.Store.Ping(t.Context()))
	}},
	{"migrate can be called by several processes at once", func(t *testing.T, s *suite) {
		p := s.create(t)
		var group errgroup.Group
		for range 4 {
			group.Go(func() error { return s.Store.Migrate(t.Context()) })
		}
		must(t, group.Wait())
		equal(t, "product after the migration", s.product(t, p.ID), p)
	}},
	{"a call whose context has ended is unavailable", endedContext},
	{"all data is there after a reopen", reopened},
	{"a closed store is unavailable, not damaged", closed},
}

func endedContext(t *testing.T, s *suite) {
	p := s.preheated(t)
	order := s.buy(t, p, "buyer")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := map[string]func() error{
		"Product":       func() error { _, err := s.Store.Product(ctx, p.ID); return err },
		"Order":         func() error { _, err := s.Store.Order(ctx, order.OrderNo); return err },
		"Confirm":       func() error { _, err := s.Store.Confirm(ctx, request(s.item(t, p, "late"))); return err },
		"Cancel":        func() error { _, err := s.Store.Cancel(ctx, order.OrderNo, "x", operator); return err },
		"RecordPayment": func() error { _, err := s.Store.RecordPayment(ctx, notice(order, "-1")); return err },
		"Events":        func() error { _, err := s.Store.Events(ctx, 0, 1); return err },
		"Ping":          func() error { return s.Store.Ping(ctx) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			s.wantUnchanged(t, p.ID, func() { wantError(t, call(), store.ErrUnavailable) })
		})
	}
}

func reopened(t *testing.T, s *suite) {
	if s.Reopen == nil {
		t.Skip("the adapter keeps nothing")
	}
	p := s.preheated(t)
	order := s.pay(t, s.buy(t, p, "buyer", key("k"), ref("r")))
	s.cancel(t, s.buy(t, p, "other"))
	stream := numbered("reopened", int(p.ID))
	s.witness(t, p, stream, 7)
	before, events := s.figures(t, p.ID), s.events(t, p.ID)

	s.Store = s.Reopen(t)
	equal(t, "order", s.order(t, order.OrderNo), order)
	equal(t, "figures", s.figures(t, p.ID), before)
	equal(t, "events", s.events(t, p.ID), events)
	equal(t, "owed releases", len(s.owed(t, p.ID)), 1)
	equal(t, "witness", s.witnessOf(t, stream).Seq, 7)
}

func closed(t *testing.T, s *suite) {
	if s.Reopen == nil {
		t.Skip("the adapter cannot be opened again")
	}
	p := s.preheated(t)
	item := s.item(t, p, "buyer")
	must(t, s.Store.Close())
	_, err := s.Store.Confirm(t.Context(), request(item))
	wantError(t, err, store.ErrUnavailable)
	_, err = s.Store.Product(t.Context(), p.ID)
	wantError(t, err, store.ErrUnavailable)
	wantError(t, s.Store.Ping(t.Context()), store.ErrUnavailable)
	s.Store = s.Reopen(t)
	equal(t, "stock", s.product(t, p.ID).Stock, p.Stock)
	_, err = s.Store.Order(t.Context(), item.Claim.OrderNo)
	wantCode(t, err, seckill.CodeNotFound)
}
