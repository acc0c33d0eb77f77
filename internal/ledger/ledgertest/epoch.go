package ledgertest

import (
	"errors"
	"fmt"
	"iter"
	"reflect"

	"seckill"
	"seckill/internal/ledger"
)

func installStories() []story {
	return []story{
		{"a shard that was never installed reads as zero", func(f *fixture) {
			if got := f.read(f.product()); !reflect.DeepEqual(got, ledger.Figures{}) {
				f.Errorf("%+v", got)
			}
		}},
		{"an installed shard is closed until it is opened", func(f *fixture) {
			shard := f.product()
			f.install(shard, 10, 3)
			got := f.read(shard)
			if got.Open || got.Epoch != 1 || got.Available != 10 || got.Allotted != 10 || got.Limit != 3 || got.State != seckill.SaleOpen {
				f.Errorf("%+v", got)
			}
			f.process(shard).expect(ledger.OutcomeClosed, 1, 0, nil)
			f.opened(shard)
			if !f.read(shard).Open {
				f.Error("still closed")
			}
		}},
		{"an install sets the state", func(f *fixture) {
			shard := f.product()
			_, err := f.Ledger.Install(f.ctx(), ledger.Allotment{Shard: shard, Available: 5, Limit: 1, State: seckill.SalePaused}, seq(nil))
			f.check(err, "install")
			f.opened(shard)
			p := f.process(shard)
			p.wantVerdicts(reserve(f.claim(shard, "ann", 1, "")), ledger.VerdictPaused)
		}},
		{"an install sets marks: units, limit, keys, holdings", func(f *fixture) {
			shard := f.product()
			ann, bob := f.claim(shard, "ann", 2, "k1"), f.claim(shard, "bob", 1, "")
			f.installAndOpen(shard, 4, 2, mark(ann), mark(bob))
			if got := f.read(shard); got.Allotted != 7 || got.Available != 4 || got.Marked != 3 || got.Orders != 2 {
				f.Errorf("%+v", got)
			}
			p := f.process(shard)
			again := f.claim(shard, "ann", 1, "k1")
			result := p.wantVerdicts(reserve(again, f.claim(shard, "ann", 1, ""), f.claim(shard, "bob", 1, "")),
				ledger.VerdictRepeated, ledger.VerdictOverLimit, ledger.VerdictAccepted)
			if result.Verdicts[0].OrderNo != ann.OrderNo {
				f.Errorf("key of a mark: %+v", result.Verdicts[0])
			}
			p.wantVerdicts(release(ann), ledger.VerdictReleased)
			if got := f.read(shard); got.Available != 5 || got.Marked != 2 {
				f.Errorf("after release: %+v", got)
			}
		}},
		{"an install sets keys of dead orders, which do not count", carriedKeys},
		{"a mark without units and key is ErrBadCall", func(f *fixture) {
			shard := f.product()
			_, err := f.Ledger.Install(f.ctx(), ledger.Allotment{Shard: shard, Available: 5, Limit: 1}, seq([]ledger.Mark{dead(f.claim(shard, "ann", 1, ""))}))
			if !errors.Is(err, ledger.ErrBadCall) || !errors.Is(err, ledger.ErrNotExecuted) {
				f.Errorf("%v", err)
			}
		}},
		{"a buyer with MaxReturned installed dead orders is refused, except for known keys; others can buy", func(f *fixture) {
			shard := f.product()
			var marks []ledger.Mark
			for i := range 3 * ledger.MaxReturned {
				marks = append(marks, dead(f.claim(shard, "ann", 1, fmt.Sprint("k", i))))
			}
			f.installAndOpen(shard, 10, 2, marks...)
			p := f.process(shard)
			last := marks[len(marks)-1]
			result := p.wantVerdicts(reserve(f.claim(shard, "ann", 1, "k0"), f.claim(shard, "ann", 1, last.Key), f.claim(shard, "ann", 1, ""), f.claim(shard, "bob", 1, "")),
				ledger.VerdictRepeated, ledger.VerdictRepeated, ledger.VerdictRefused, ledger.VerdictAccepted)
			if result.Verdicts[0].OrderNo != marks[0].OrderNo || result.Verdicts[1].OrderNo != last.OrderNo {
				f.Errorf("known keys: %+v", result.Verdicts[:2])
			}
		}},
		{"an install of the same or a lower epoch changes nothing and returns the present one", func(f *fixture) {
			shard := f.product()
			shard.Epoch = 3
			f.installAndOpen(shard, 10, 1)
			p := f.process(shard)
			p.do(reserve(f.claim(shard, "ann", 1, "")))
			before := f.read(shard)
			for _, epoch := range []uint64{1, 2, 3} {
				late := shard
				late.Epoch = epoch
				there, err := f.Ledger.Install(f.ctx(), ledger.Allotment{Shard: late, Available: 99, Limit: 9}, seq(nil))
				f.check(err, "install")
				if there != 3 {
					f.Errorf("install of epoch %d says %d is there", epoch, there)
				}
			}
			if got := f.read(shard); !reflect.DeepEqual(got, before) {
				f.Errorf("%+v became %+v", before, got)
			}
			p.do(reserve(f.claim(shard, "bob", 1, ""))) // still open, records intact
		}},
		{"a higher epoch replaces figures, marks, keys, changes and transfers", func(f *fixture) {
			shard := f.sale(10, 2)
			p := f.process(shard)
			ann := f.claim(shard, "ann", 2, "k")
			p.wantVerdicts(reserve(ann), ledger.VerdictAccepted)
			p.do(ledger.StockChange{ID: "c", Delta: 5})
			p.do(ledger.Debit{To: 1, N: 1, ID: 4, Units: 3})
			p.do(ledger.Credit{From: 1, N: 1, ID: 5, Units: 2})

			next := shard
			next.Epoch = 2
			f.install(next, 7, 1)
			got := f.read(next)
			if got.Open || !sameFigures(got, ledger.Figures{Epoch: 2, Limit: 1, Allotted: 7, Available: 7}) {
				f.Errorf("%+v", got)
			}
			if held, err := f.Ledger.Held(f.ctx(), next, "ann"); err != nil || len(held) != 0 {
				f.Errorf("ann holds %v, %v", held, err)
			}
			f.opened(next)
			q := f.process(next)
			q.wantVerdicts(release(ann), ledger.VerdictNotHeld)
			again := f.claim(next, "ann", 1, "k")
			q.wantVerdicts(reserve(again), ledger.VerdictAccepted) // the key ended with its epoch
			q.wantVerdicts(ledger.StockChange{ID: "c", Delta: 5}, ledger.VerdictApplied)
			if transfer := q.do(ledger.Debit{To: 1, N: 1, ID: 6, Units: 1}).Transfer; transfer.Units != 1 || transfer.ID != 6 {
				f.Errorf("transfers begin anew: %+v", transfer)
			}
		}},
		{"an install does not change the outbox", func(f *fixture) {
			shard := f.sale(10, 1)
			p := f.process(shard)
			claim := f.claim(shard, "ann", 1, "")
			p.do(reserve(claim))
			shard.Epoch = 2
			f.installAndOpen(shard, 10, 1)
			got := f.entries(shard.Product, 1)
			if got[0].Entry.Epoch != 1 || got[0].Entry.Claims[0] != claim {
				f.Errorf("entry %+v", got[0].Entry)
			}
		}},
		{"an install does not change marks of other products of the group", func(f *fixture) {
			shoe42, shoe43 := f.sale(10, 2), f.product()
			shoe43.Group = shoe42.Group
			f.installAndOpen(shoe43, 10, 2)
			other := f.claim(shoe42, "ann", 1, "k42")
			f.process(shoe42).wantVerdicts(reserve(other), ledger.VerdictAccepted)
			mine := f.claim(shoe43, "ann", 1, "k43")
			f.process(shoe43).wantVerdicts(reserve(mine), ledger.VerdictAccepted)

			shoe43.Epoch = 2
			f.installAndOpen(shoe43, 10, 2)
			p := f.process(shoe43)
			// One unit of the limit is free again, but not that of the other product.
			result := p.wantVerdicts(reserve(f.claim(shoe43, "ann", 1, "k42"), f.claim(shoe43, "ann", 1, ""), f.claim(shoe43, "ann", 1, "")),
				ledger.VerdictRepeated, ledger.VerdictAccepted, ledger.VerdictOverLimit)
			if result.Verdicts[0].OrderNo != other.OrderNo {
				f.Errorf("key of the other product: %+v", result.Verdicts[0])
			}
			if got := f.read(shoe42); got.Marked != 1 || got.Orders != 1 || !got.Open {
				f.Errorf("the other product: %+v", got)
			}
		}},
		{"a failed install leaves the shard as it was, or closed", func(f *fixture) {
			broken := errors.New("the store went away")
			marks := func(shard ledger.Shard) iter.Seq2[ledger.Mark, error] {
				return func(yield func(ledger.Mark, error) bool) {
					for range 3 {
						if !yield(mark(f.claim(shard, "ann", 1, "")), nil) {
							return
						}
					}
					yield(ledger.Mark{}, broken)
				}
			}
			fresh, used := f.product(), f.sale(10, 1)
			f.process(used).do(reserve(f.claim(used, "bob", 1, "")))
			for _, shard := range []ledger.Shard{fresh, used} {
				before := f.read(shard)
				shard.Epoch++
				_, err := f.Ledger.Install(f.ctx(), ledger.Allotment{Shard: shard, Available: 99, Limit: 1}, marks(shard))
				if !errors.Is(err, broken) {
					f.Errorf("install: %v, want the cause", err)
				}
				got := f.read(shard)
				got.Open = before.Open
				if !sameFigures(got, before) {
					f.Errorf("%+v became %+v", before, got)
				}
				f.installAndOpen(shard, 5, 1) // the same epoch can be installed
				if got := f.read(shard); got.Marked != 0 || got.Available != 5 {
					f.Errorf("installed after all: %+v", got)
				}
			}
		}},
	}
}

// carriedKeys: an order is cancelled, the ledger is rebuilt, and the key of the order comes
// again. It must not be sold a second time, and the dead order must not count.
func carriedKeys(f *fixture) {
	shard := f.product()
	gone, live := f.claim(shard, "ann", 2, "k1"), f.claim(shard, "ann", 1, "k2")
	f.installAndOpen(shard, 4, 2, mark(live), dead(gone))
	want := ledger.Figures{Epoch: 1, Open: true, Limit: 2, Allotted: 5, Available: 4, Marked: 1, Orders: 1}
	if got := f.read(shard); !sameFigures(got, want) {
		f.Errorf("%+v", got)
	}
	if held, err := f.Ledger.Held(f.ctx(), shard, "ann"); err != nil || len(held) != 1 || held[0].OrderNo != live.OrderNo {
		f.Errorf("ann holds %+v, %v", held, err)
	}
	p := f.process(shard)
	again := f.claim(shard, "ann", 1, "k1")
	if result := p.wantVerdicts(reserve(again), ledger.VerdictRepeated); result.Verdicts[0].OrderNo != gone.OrderNo || result.Free != 4 {
		f.Errorf("the key of a dead order: %+v", result)
	}
	if result := p.wantVerdicts(ledger.Adopt(reserve(again)), ledger.VerdictRepeated); result.Verdicts[0].OrderNo != gone.OrderNo {
		f.Errorf("adopted under the key of a dead order: %+v", result)
	}
	p.wantVerdicts(release(gone), ledger.VerdictNotHeld)
	// It does not count against the limit, and another buyer may use the key.
	p.wantVerdicts(reserve(f.claim(shard, "ann", 1, "k3"), f.claim(shard, "bob", 1, "k1")), ledger.VerdictAccepted, ledger.VerdictAccepted)
	p.wantVerdicts(release(live), ledger.VerdictReleased)
	want = ledger.Figures{Epoch: 1, Open: true, Limit: 2, Allotted: 5, Available: 3, Marked: 2, Orders: 2, Releases: 1}
	if got := f.read(shard); !sameFigures(got, want) {
		f.Errorf("after more orders: %+v", got)
	}
	// Another product of the group finds it as well.
	other := f.product()
	other.Group = shard.Group
	f.installAndOpen(other, 10, 2)
	if result := f.process(other).wantVerdicts(reserve(f.claim(other, "ann", 1, "k1")), ledger.VerdictRepeated); result.Verdicts[0].OrderNo != gone.OrderNo {
		f.Errorf("at another product of the group: %+v", result)
	}
	// The next epoch knows only the given marks.
	shard.Epoch++
	f.installAndOpen(shard, 5, 2)
	f.process(shard).wantVerdicts(reserve(f.claim(shard, "ann", 1, "k1")), ledger.VerdictAccepted)
}

func openCloseStories() []story {
	return []story{
		{"Open opens exactly this epoch", func(f *fixture) {
			shard := f.product()
			shard.Epoch = 3
			if ok, err := f.Ledger.Open(f.ctx(), shard); err != nil || ok {
				f.Errorf("opened a shard that is not there: %v, %v", ok, err)
			}
			f.install(shard, 1, 1)
			for _, epoch := range []uint64{2, 4} {
				other := shard
				other.Epoch = epoch
				if ok, err := f.Ledger.Open(f.ctx(), other); err != nil || ok {
					f.Errorf("epoch %d opened: %v, %v", epoch, ok, err)
				}
			}
			if f.read(shard).Open {
				f.Error("opened by another epoch")
			}
			f.opened(shard)
			f.opened(shard) // repeated
		}},
		{"Close closes this epoch and lower ones, never a higher one", func(f *fixture) {
			shard := f.product()
			shard.Epoch = 3
			f.closed(shard) // nothing is there
			f.installAndOpen(shard, 1, 1)
			older, newer := shard, shard
			older.Epoch, newer.Epoch = 2, 4
			f.closed(older) // a late Close of an older epoch
			if !f.read(shard).Open {
				f.Fatal("closed by an older epoch")
			}
			f.closed(newer)
			if f.read(shard).Open {
				f.Fatal("not closed by a newer epoch")
			}
			f.opened(shard)
			f.closed(shard)
			f.closed(shard)
			if f.read(shard).Open {
				f.Fatal("not closed by its own epoch")
			}
		}},
	}
}

func stateStories() []story {
	return []story{
		{"SetState needs exactly this epoch", func(f *fixture) {
			shard := f.product()
			shard.Epoch = 3
			if ok, err := f.Ledger.SetState(f.ctx(), shard, seckill.SalePaused, 1); err != nil || ok {
				f.Errorf("set on a shard that is not there: %v, %v", ok, err)
			}
			f.install(shard, 1, 1)
			for _, epoch := range []uint64{2, 4} {
				other := shard
				other.Epoch = epoch
				if ok, err := f.Ledger.SetState(f.ctx(), other, seckill.SaleEnded, 1); err != nil || ok {
					f.Errorf("epoch %d set: %v, %v", epoch, ok, err)
				}
			}
			if got := f.read(shard); got.State != seckill.SaleOpen {
				f.Errorf("%+v", got)
			}
			f.state(shard, seckill.SalePaused) // also on a closed shard
			if got := f.read(shard); got.State != seckill.SalePaused || got.Open {
				f.Errorf("%+v", got)
			}
		}},
		{"a delayed SetState does not undo a later one, until the next epoch", func(f *fixture) {
			shard := f.sale(10, 5)
			for _, step := range []struct {
				state   seckill.SaleState
				version uint64
				want    seckill.SaleState
			}{
				{seckill.SaleOpen, 7, seckill.SaleOpen},
				{seckill.SalePaused, 9, seckill.SalePaused},
				{seckill.SaleOpen, 8, seckill.SalePaused}, // the resume was decided before the pause and arrives after it
				{seckill.SalePaused, 9, seckill.SalePaused},
				{seckill.SaleOpen, 12, seckill.SaleOpen},
			} {
				if ok, err := f.Ledger.SetState(f.ctx(), shard, step.state, step.version); err != nil || !ok {
					f.Fatalf("set state: %v, %v", ok, err)
				}
				if got := f.read(shard).State; got != step.want {
					f.Errorf("after version %d the state is %s, want %s", step.version, got, step.want)
				}
			}
			shard.Epoch++
			f.install(shard, 1, 1)
			if ok, err := f.Ledger.SetState(f.ctx(), shard, seckill.SalePaused, 3); err != nil || !ok || f.read(shard).State != seckill.SalePaused {
				f.Errorf("a store that was set back cannot pause: %v, %v", ok, err)
			}
		}},
		{"after a pause nothing is sold, after a resume it is", func(f *fixture) {
			shard := f.sale(10, 5)
			p := f.process(shard)
			for _, step := range []struct {
				state seckill.SaleState
				want  ledger.VerdictCode
			}{
				{seckill.SalePaused, ledger.VerdictPaused},
				{seckill.SaleOpen, ledger.VerdictAccepted},
				{seckill.SaleEnded, ledger.VerdictEnded},
			} {
				f.state(shard, step.state)
				p.wantVerdicts(reserve(f.claim(shard, "ann", 1, "")), step.want)
			}
		}},
	}
}
