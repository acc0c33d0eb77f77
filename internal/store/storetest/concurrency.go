package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"seckill"
	"seckill/internal/store"
)

var concurrencyTests = []test{
	{"everything at once on one product keeps the promises", crowd},
	{"the last units are sold once", lastUnits},
	{"one order is cancelled or paid, never both", cancelOrPay},
	{"one order's units return once, however many callers return it", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.buyFor(t, p, "buyer", tick)
		s.advance(t, 2*tick)
		var group errgroup.Group
		for i := range rivals {
			group.Go(func() error {
				switch i % 3 {
				case 0:
					_, err := s.Store.Expire(t.Context(), 10)
					return err
				case 1:
					_, err := s.Store.ExpireOrders(t.Context(), []seckill.OrderNo{order.OrderNo})
					return err
				}
				_, err := s.Store.Cancel(t.Context(), order.OrderNo, seckill.ReasonByBuyer, operator)
				return tolerate(err)
			})
		}
		must(t, group.Wait())
		equal(t, "stock", s.product(t, p.ID).Stock, p.Stock)
		equal(t, "owed", len(s.owed(t, p.ID)), 1)
		equal(t, "order.cancelled", s.count(t, p.ID, seckill.EventOrderCancelled), 1)
	}},
	{"one claim confirmed by many workers is one order", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.item(t, p, "buyer", key("k"))
		var mu sync.Mutex
		outcomes := map[store.ConfirmOutcome]int{}
		var group errgroup.Group
		for range rivals {
			group.Go(func() error {
				got, err := s.persist(t.Context(), request(item))
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes[got[0]]++
				return nil
			})
		}
		must(t, group.Wait())
		equal(t, "outcomes", outcomes, map[store.ConfirmOutcome]int{store.ConfirmNew: 1, store.ConfirmReplay: rivals - 1})
		equal(t, "stock", s.product(t, p.ID).Stock, p.Stock-1)
	}},
	{"a claim is confirmed before or after a new epoch, never in between", epochAndClaims},
}

// tolerate returns nil for errors that mean that a concurrent call was faster.
func tolerate(err error) error {
	var e *seckill.Error
	if errors.As(err, &e) && e.Code == seckill.CodeWrongState || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrShort) {
		return nil
	}
	return err
}

// persist confirms and retries a lost lock, like a worker.
func (s *suite) persist(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error) {
	const tries = 100
	for range tries {
		got, err := s.Store.Confirm(ctx, req)
		if !errors.Is(err, store.ErrConflict) {
			return got, err
		}
	}
	return nil, fmt.Errorf("no confirm in %d tries: %w", tries, store.ErrConflict)
}

func crowd(t *testing.T, s *suite) {
	p := s.preheated(t, stock(60), perUser(2))
	const steps = 40
	var group errgroup.Group
	for g := range rivals {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			var mine []seckill.Order
			for range steps {
				order, err := s.step(t, p, random, mine)
				if err := tolerate(err); err != nil {
					return err
				}
				if order.Quantity > 0 {
					mine = append(mine, order)
				}
			}
			return nil
		})
	}
	must(t, group.Wait())
	f := s.figures(t, p.ID)
	if f.Paid == 0 || f.Cancelled == 0 {
		t.Errorf("too little happened: %+v", f)
	}
	CheckPromises(t, s.Store, p.ID)
}

// step makes one random change to the product or to an order of this goroutine, and returns the
// order that it confirmed, if any.
func (s *suite) step(t *testing.T, p seckill.Product, random *rand.Rand, mine []seckill.Order) (seckill.Order, error) {
	ctx := t.Context()
	pick := func() seckill.Order { return mine[random.IntN(len(mine))] }
	var err error
	switch action := random.IntN(10); {
	case action < 4 || len(mine) == 0:
		item := s.item(t, p, numbered("buyer", random.IntN(40)), quantity(1+random.IntN(2)))
		req := request(item)
		req.ExpireAfter = tick
		if _, err = s.Store.Confirm(ctx, req); err == nil {
			return s.Store.Order(ctx, item.Claim.OrderNo)
		}
	case action < 6:
		order := pick()
		_, err = s.Store.RecordPayment(ctx, notice(order, numbered("", random.IntN(2))))
	case action == 6:
		_, err = s.Store.Cancel(ctx, pick().OrderNo, seckill.ReasonByBuyer, operator)
	case action == 7:
		_, err = s.Store.Refund(ctx, pick().OrderNo, operator)
	case action == 8:
		s.clock.Advance(tick / 4)
		_, err = s.Store.Expire(ctx, 3)
	default:
		var due []store.Release
		if due, err = s.Store.ReleasesDue(ctx, 5); err == nil {
			err = s.Store.SettleReleases(ctx, due)
		}
	}
	return seckill.Order{}, err
}

func lastUnits(t *testing.T, s *suite) {
	const units = 5
	p := s.preheated(t, stock(units))
	var mu sync.Mutex
	sold, refusals := 0, 0
	var group errgroup.Group
	for i := range rivals {
		group.Go(func() error {
			_, err := s.persist(t.Context(), request(s.item(t, p, numbered("buyer", i))))
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, store.ErrShort) {
				refusals++
				return nil
			}
			sold++
			return err
		})
	}
	must(t, group.Wait())
	equal(t, "sold", sold, units)
	equal(t, "refused", refusals, rivals-units)
	equal(t, "sale.sold_out", s.count(t, p.ID, seckill.EventSaleSoldOut), 1)
}

func cancelOrPay(t *testing.T, s *suite) {
	p := s.preheated(t, stock(20))
	for i := range 10 {
		order := s.buy(t, p, numbered("buyer", i))
		var group errgroup.Group
		group.Go(func() error {
			_, err := s.Store.RecordPayment(t.Context(), notice(order, "-1"))
			return err
		})
		group.Go(func() error {
			_, err := s.Store.Cancel(t.Context(), order.OrderNo, seckill.ReasonByBuyer, operator)
			return tolerate(err)
		})
		must(t, group.Wait())
		refunds := len(s.payments(t, order.OrderNo.String(), "refund"))
		switch status := s.order(t, order.OrderNo).Status; status {
		case seckill.OrderPaid:
			equal(t, "refunds of a paid order", refunds, 0)
		case seckill.OrderCancelled:
			equal(t, "refunds of a cancelled order", refunds, 1)
		default:
			t.Errorf("the order is %s", status)
		}
	}
}

// epochAndClaims checks that the snapshot of a new epoch has every claim that was confirmed
// under the old epoch, and that all others must be adopted.
func epochAndClaims(t *testing.T, s *suite) {
	p := s.preheated(t, stock(100))
	var mu sync.Mutex
	confirmed := map[seckill.OrderNo]bool{}
	var group errgroup.Group
	for w := range rivals {
		group.Go(func() error {
			for i := range 10 {
				item := s.item(t, p, numbered(numbered("buyer", w), i))
				got, err := s.persist(t.Context(), request(item))
				if err != nil {
					return err
				}
				mu.Lock()
				confirmed[item.Claim.OrderNo] = got[0] == store.ConfirmNew
				mu.Unlock()
			}
			return nil
		})
	}
	var snapshot []seckill.OrderNo
	group.Go(func() error {
		_, err := s.Store.OpenEpoch(t.Context(), p.ID, p.Epoch, 0, operator, func(order seckill.Order) error {
			snapshot = append(snapshot, order.OrderNo)
			return nil
		})
		return err
	})
	must(t, group.Wait())
	marked := map[seckill.OrderNo]bool{}
	for _, no := range snapshot {
		marked[no] = true
	}
	for no, is := range confirmed {
		if is != marked[no] {
			t.Errorf("order %s: confirmed %v, in the snapshot %v", no, is, marked[no])
		}
	}
}
