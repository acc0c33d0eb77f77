package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

var counterConcurrencyTests = []test{
	{"counter, workers, returns and the share at once keep the promises", counterCrowd},
	{"the last units are sold over the counter once", func(t *testing.T, s *suite) {
		const units = 5
		for _, p := range []seckill.Product{s.preheated(t, direct, stock(units)), s.preheated(t, stock(2*units), share(0.5))} {
			got := s.race(t, func(i int) (seckill.Product, seckill.Claim) { return p, s.claim(t, p, numbered("buyer", i)) })
			equal(t, "accepted", got[ledger.VerdictAccepted], units)
			equal(t, "sold out", got[ledger.VerdictSoldOut], rivals-units)
			equal(t, "pending", s.figures(t, p.ID).Pending, units)
		}
	}},
	{"one claim that comes by many ways is one order", func(t *testing.T, s *suite) {
		p := s.preheated(t, direct)
		claim := s.claim(t, p, "buyer", key("k"))
		got := s.race(t, func(i int) (seckill.Product, seckill.Claim) {
			if i%2 == 0 {
				return p, claim
			}
			return p, s.claim(t, p, "buyer", key("k"))
		})
		equal(t, "accepted", got[ledger.VerdictAccepted], 1)
		equal(t, "repeated", got[ledger.VerdictRepeated], rivals-1)
	}},
	{"a buyer at all products of a group at once is sold the limit", func(t *testing.T, s *suite) {
		head := s.preheated(t, direct)
		group := []seckill.Product{head, s.preheated(t, direct, inGroup(head.ID)), s.preheated(t, direct, inGroup(head.ID))}
		for round := range 5 {
			buyer := numbered("buyer", round)
			got := s.race(t, func(i int) (seckill.Product, seckill.Claim) {
				p := group[i%len(group)]
				return p, s.claim(t, p, buyer)
			})
			equal(t, "accepted", got[ledger.VerdictAccepted], 1)
			equal(t, "over the limit", got[ledger.VerdictOverLimit], rivals-1)
		}
	}},
	{"a buyer at counter and ledger at once is sold the limit", counterAndLedger},
	{"a pause that was answered is met by every sale after it", pauseAndSales},
}

// sellOne sells one claim; a lost lock is tried again.
func (s *suite) sellOne(ctx context.Context, p seckill.Product, claim seckill.Claim) (store.SellVerdict, error) {
	const tries = 100
	for range tries {
		got, err := s.Store.Sell(ctx, s.over(p, claim))
		if err == nil {
			return got.Verdicts[0], nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return store.SellVerdict{}, err
		}
	}
	return store.SellVerdict{}, fmt.Errorf("no sale in %d tries: %w", tries, store.ErrConflict)
}

// race sells the claims of all rivals at once, and counts the verdicts.
func (s *suite) race(t *testing.T, of func(i int) (seckill.Product, seckill.Claim)) map[ledger.VerdictCode]int {
	t.Helper()
	verdicts := make([]store.SellVerdict, rivals)
	var group errgroup.Group
	for i := range rivals {
		p, claim := of(i)
		group.Go(func() (err error) {
			verdicts[i], err = s.sellOne(t.Context(), p, claim)
			return err
		})
	}
	must(t, group.Wait())
	counts := map[ledger.VerdictCode]int{}
	for _, verdict := range verdicts {
		counts[verdict.Code]++
	}
	return counts
}

func counterCrowd(t *testing.T, s *suite) {
	p := s.preheated(t, stock(40), perUser(2), share(0.5))
	const steps = 30
	var taken atomic.Int64
	var group errgroup.Group
	for g := range rivals {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(uint64(g), 2))
			var mine []seckill.Order
			for range steps {
				order, err := s.counterStep(t, p, random, mine, &taken)
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
	if f.Paid == 0 || f.Cancelled == 0 || taken.Load() == 0 {
		t.Errorf("too little happened: %d shares taken, %+v", taken.Load(), f)
	}
	for _, release := range s.owed(t, p.ID) {
		equal(t, "origin of an order that owes a release", s.order(t, release.OrderNo).Origin, seckill.OriginLedger)
	}
	CheckPromises(t, s.Store, p.ID)
}

// counterStep is step, with sales from the share and the share's moves.
func (s *suite) counterStep(t *testing.T, p seckill.Product, random *rand.Rand, mine []seckill.Order, taken *atomic.Int64) (seckill.Order, error) {
	switch action := random.IntN(12); {
	case action < 5:
		claim := s.claim(t, p, numbered("buyer", random.IntN(40)), quantity(1+random.IntN(2)))
		got, err := s.Store.Sell(t.Context(), s.over(p, claim))
		if err == nil && got.Verdicts[0].Code == ledger.VerdictAccepted {
			return s.Store.Order(t.Context(), claim.OrderNo)
		}
		return seckill.Order{}, err
	case action == 5 && random.IntN(4) == 0:
		id := numbered(numbered("crowd", int(p.ID)), random.IntN(50))
		change, err := s.Store.TakeShare(t.Context(), p.ID, id, operator)
		if err == nil && change.Delta > 0 {
			taken.Add(1)
		}
		return seckill.Order{}, err
	}
	return s.step(t, p, random, mine)
}

func counterAndLedger(t *testing.T, s *suite) {
	p := s.preheated(t, share(0.5), stock(40))
	for round := range 10 {
		buyer := numbered("buyer", round)
		item, claim := s.item(t, p, buyer), s.claim(t, p, buyer)
		var outcomes []store.ConfirmOutcome
		var verdict store.SellVerdict
		var group errgroup.Group
		group.Go(func() (err error) {
			outcomes, err = s.persist(t.Context(), request(item))
			return err
		})
		group.Go(func() (err error) {
			verdict, err = s.sellOne(t.Context(), p, claim)
			return err
		})
		must(t, group.Wait())
		byLedger, byCounter := outcomes[0] == store.ConfirmNew, verdict.Code == ledger.VerdictAccepted
		if byLedger == byCounter {
			t.Errorf("sold by the ledger: %v, over the counter: %v", byLedger, byCounter)
		}
	}
}

func pauseAndSales(t *testing.T, s *suite) {
	p := s.preheated(t, direct, stock(10_000))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var group errgroup.Group
	for g := range rivals {
		group.Go(func() error {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := s.sellOne(t.Context(), p, s.claim(t, p, numbered(numbered("buyer", g), i))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range 3 {
		before := s.figures(t, p.ID).Pending
		eventually(t, "sales to go on", func() bool { return s.figures(t, p.ID).Pending > before })
		s.setState(t, p.ID, seckill.SalePaused)
		paused := s.figures(t, p.ID).Pending
		for range 5 {
			equal(t, "sold after the pause", s.figures(t, p.ID).Pending-paused, 0)
		}
		s.setState(t, p.ID, seckill.SaleOpen)
	}
	stop()
	must(t, group.Wait())
}
