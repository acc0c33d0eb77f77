package storetest

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

var takeoverConcurrencyTests = []test{
	{"sales, takeovers, openings and returns at once sell no more than the stock", takeoverCrowd},
	{"one of many takeovers at once begins the epoch", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		var begun atomic.Int64
		var group errgroup.Group
		for range rivals {
			group.Go(func() error {
				_, err := s.Store.TakeOver(t.Context(), p.ID, p.Epoch, operator)
				if err == nil {
					begun.Add(1)
				}
				return unless(err, store.ErrEpoch, store.ErrConflict)
			})
		}
		must(t, group.Wait())
		equal(t, "begun", begun.Load(), 1)
		equal(t, "epoch", s.product(t, p.ID).Epoch, p.Epoch+1)
	}},
	{"an instance that starts during a takeover reads its epoch, or the store does not open", instanceAndOpening},
	{"old entries and sales of the store at once sell the last units once", entriesAndSales},
	{"parked claims keep their units while all sell", parkedAndSales},
}

// unless returns err, or nil if it is one of the errors that may occur.
func unless(err error, may ...error) error {
	for _, one := range may {
		if errors.Is(err, one) {
			return nil
		}
	}
	return err
}

// takeoverCrowd moves the sale between ledger and store while both sell.
func takeoverCrowd(t *testing.T, s *suite) {
	const units, moves = 60, 12
	p := s.preheated(t, stock(units), perUser(2))
	var done atomic.Bool
	var bySell, byEntry atomic.Int64
	var mu sync.Mutex
	epochs := map[seckill.OrderNo]uint64{} // the epochs in which sales of the store were requested
	var group errgroup.Group
	for g := range rivals {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(uint64(g), 3))
			for !done.Load() {
				now, err := s.Store.Product(t.Context(), p.ID)
				if err != nil {
					return err
				}
				buyer := numbered("buyer", random.IntN(200))
				if random.IntN(2) == 0 {
					claim := s.claim(t, now, buyer, quantity(1+random.IntN(2)))
					got, err := s.Store.Sell(t.Context(), s.sellRequest(now, claim))
					if err == nil && got.Verdicts[0].Code == ledger.VerdictAccepted {
						bySell.Add(1)
						mu.Lock()
						epochs[claim.OrderNo] = now.Epoch
						mu.Unlock()
					}
					if err := tolerate(unless(err, store.ErrEpoch)); err != nil {
						return err
					}
					continue
				}
				got, err := s.Store.Confirm(t.Context(), request(s.item(t, now, buyer)))
				if err == nil && got[0] == store.ConfirmNew {
					byEntry.Add(1)
				}
				if err := tolerate(unless(err, store.ErrEpoch, store.ErrShort)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	stores := map[uint64]bool{} // epochs in which the store was open
	err := func() error {
		defer done.Store(true)
		for range moves {
			sold := bySell.Load() + byEntry.Load()
			taken := s.beginTakeover(t, p.ID)
			s.openStore(t, taken)
			stores[taken.Epoch] = true
			eventually(t, "another sale", func() bool {
				return bySell.Load()+byEntry.Load() > sold || s.product(t, p.ID).Stock == 0
			})
			s.openEpoch(t, p.ID)
		}
		return nil
	}()
	must(t, errors.Join(err, group.Wait()))
	for no, epoch := range epochs {
		if !stores[epoch] {
			t.Errorf("the store sold %s in epoch %d, of which it was not the seller", no, epoch)
		}
	}
	if bySell.Load() == 0 || byEntry.Load() == 0 {
		t.Errorf("%d sales of the store, %d of the ledger", bySell.Load(), byEntry.Load())
	}
	f := s.figures(t, p.ID)
	equal(t, "units sold and left", f.Pending+f.Product.Stock, units)
	CheckPromises(t, s.Store, p.ID)
}

// instanceAndOpening checks rules 1 and 4 of a takeover: an instance reads the epoch after it
// took its lease, and the opening looks at all leases.
func instanceAndOpening(t *testing.T, s *suite) {
	for range 20 {
		p, name := s.preheated(t), newLease()
		var seen seckill.Product
		var opened bool
		var group errgroup.Group
		group.Go(func() (err error) {
			if _, _, err = s.Store.KeepInstance(t.Context(), store.Instance{Name: name}, far); err != nil {
				return err
			}
			seen, err = s.Store.Product(t.Context(), p.ID)
			return err
		})
		group.Go(func() error {
			taken, err := s.Store.TakeOver(t.Context(), p.ID, p.Epoch, operator)
			if err != nil {
				return err
			}
			opened, err = s.Store.OpenStore(t.Context(), p.ID, taken.Epoch)
			return err
		})
		must(t, group.Wait())
		if opened && seen.Epoch == p.Epoch {
			t.Error("the store is open, and an instance that did not acknowledge sells by the old epoch")
		}
		must(t, s.Store.LeaveInstance(t.Context(), name))
	}
}

func entriesAndSales(t *testing.T, s *suite) {
	const units = 5
	old := s.preheated(t, stock(units))
	p := s.takeOver(t, old.ID)
	var sold atomic.Int64
	var group errgroup.Group
	for i := range rivals {
		item, claim := s.item(t, old, numbered("entry", i)), s.claim(t, p, numbered("sale", i))
		group.Go(func() error {
			got, err := s.persist(t.Context(), request(item))
			if err == nil && got[0] == store.ConfirmNew {
				sold.Add(1)
			}
			return err
		})
		group.Go(func() error {
			got, err := s.sellOne(t.Context(), p, claim)
			if err == nil && got.Code == ledger.VerdictAccepted {
				sold.Add(1)
			}
			return err
		})
	}
	must(t, group.Wait())
	equal(t, "sold", sold.Load(), units)
	equal(t, "stock", s.product(t, p.ID).Stock, 0)
}

func parkedAndSales(t *testing.T, s *suite) {
	const parkedClaims, units = 3, 5
	old := s.preheated(t, stock(units))
	var parked []store.Item
	for i := range parkedClaims {
		parked = append(parked, s.parkClaim(t, old, numbered("parked", i)))
	}
	p := s.takeOver(t, old.ID)
	outcomes := make([]store.ConfirmOutcome, parkedClaims)
	var sold atomic.Int64
	var group errgroup.Group
	for i := range rivals {
		claim := s.claim(t, p, numbered("sale", i))
		group.Go(func() error {
			got, err := s.sellOne(t.Context(), p, claim)
			if err == nil && got.Code == ledger.VerdictAccepted {
				sold.Add(1)
			}
			return err
		})
	}
	for i, item := range parked {
		group.Go(func() error {
			got, err := s.persist(t.Context(), request(item))
			if err == nil {
				outcomes[i] = got[0]
			}
			return err
		})
	}
	must(t, group.Wait())
	equal(t, "sold to others", sold.Load(), units-parkedClaims)
	for _, outcome := range outcomes {
		equal(t, "outcome of a parked claim", outcome, store.ConfirmNew)
	}
}
