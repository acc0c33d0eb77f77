package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

var directConcurrencyTests = []test{
	{"the last units are sold by the store once", byStore(func(t *testing.T, s *suite, open soldBy) {
		const units = 5
		p := open(t, stock(units))
		got := s.race(t, func(i int) (seckill.Product, seckill.Claim) { return p, s.claim(t, p, numbered("buyer", i)) })
		equal(t, "accepted", got[ledger.VerdictAccepted], units)
		equal(t, "sold out", got[ledger.VerdictSoldOut], rivals-units)
		equal(t, "pending", s.figures(t, p.ID).Pending, units)
	})},
	{"one claim that arrives in many ways is one order", func(t *testing.T, s *suite) {
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
	{"a buyer who buys all products of a group at once gets the limit", func(t *testing.T, s *suite) {
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
	{"a buyer with an old entry and a sale of the store at once gets the limit", oldEntryAndSale},
	{"after a pause has returned, nothing is sold", pauseAndSales},
}

// sellOne sells one claim and retries a lost lock.
func (s *suite) sellOne(ctx context.Context, p seckill.Product, claim seckill.Claim) (store.SellVerdict, error) {
	const tries = 100
	for range tries {
		got, err := s.Store.Sell(ctx, s.sellRequest(p, claim))
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

func oldEntryAndSale(t *testing.T, s *suite) {
	old := s.preheated(t, stock(40))
	p := s.takeOver(t, old.ID)
	for round := range 10 {
		buyer := numbered("buyer", round)
		item, claim := s.item(t, old, buyer), s.claim(t, p, buyer)
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
		byEntry, bySale := outcomes[0] == store.ConfirmNew, verdict.Code == ledger.VerdictAccepted
		if byEntry == bySale {
			t.Errorf("sold by the old entry: %v, by the store: %v", byEntry, bySale)
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
