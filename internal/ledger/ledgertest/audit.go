package ledgertest

import (
	"fmt"
	"slices"

	"seckill/internal/ledger"
)

func auditStories() []story {
	// audit returns the marks each once, by number.
	audit := func(f *fixture, shard ledger.Shard) (ledger.Audit, []ledger.Mark) {
		f.Helper()
		var marks []ledger.Mark
		shard.Epoch = 0 // ignored
		counted, err := f.Ledger.Audit(f.ctx(), shard, func(m ledger.Mark) { marks = append(marks, m) })
		f.check(err, "audit")
		slices.SortFunc(marks, func(a, b ledger.Mark) int { return slices.Compare(a.OrderNo[:], b.OrderNo[:]) })
		return counted, slices.Compact(marks)
	}
	return []story{
		{"a shard that is not there has nothing to compare", func(f *fixture) {
			if counted, marks := audit(f, f.product()); counted.Epoch != 0 || len(marks) != 0 {
				f.Errorf("%+v, %+v", counted, marks)
			}
		}},
		{"live orders and remembered keys of this product, and the count of the live", func(f *fixture) {
			shoe42, shoe43 := f.sale(10, 9), f.product()
			shoe43.Group = shoe42.Group
			f.installed(shoe43, 10, 9)
			p, q := f.process(shoe42), f.process(shoe43)
			first, second, third := f.claim(shoe42, "ann", 1, "k1"), f.claim(shoe42, "ann", 2, "k2"), f.claim(shoe42, "bob", 3, "")
			fourth := f.claim(shoe42, "cat", 1, "")
			p.do(reserve(first, second, third, fourth))
			q.do(reserve(f.claim(shoe43, "ann", 1, "")))
			p.codes(release(second, fourth), ledger.VerdictReleased, ledger.VerdictReleased)
			counted, marks := audit(f, shoe42)
			if want := (ledger.Audit{Epoch: 1, Steady: true, Units: 4, Orders: 2, Marked: 4, Live: 2}); counted != want {
				f.Errorf("%+v, want %+v", counted, want)
			}
			want := []ledger.Mark{
				{Buyer: "ann", OrderNo: first.OrderNo, Quantity: 1, Key: "k1"},
				{Buyer: "ann", OrderNo: second.OrderNo, Key: "k2"},
				{Buyer: "bob", OrderNo: third.OrderNo, Quantity: 3},
			}
			slices.SortFunc(want, func(a, b ledger.Mark) int { return slices.Compare(a.OrderNo[:], b.OrderNo[:]) })
			if !slices.Equal(marks, want) {
				f.Errorf("marks %+v, want %+v", marks, want)
			}
		}},
		{"of a new epoch what was installed", func(f *fixture) {
			shard := f.sale(10, 9)
			f.process(shard).do(reserve(f.claim(shard, "ann", 1, "")))
			shard.Epoch = 2
			kept := ledger.Mark{Buyer: "bob", OrderNo: f.claim(shard, "bob", 2, "").OrderNo, Quantity: 2, Key: "k"}
			f.installed(shard, 10, 9, kept)
			counted, marks := audit(f, shard)
			if counted.Epoch != 2 || counted.Units != 2 || !slices.Equal(marks, []ledger.Mark{kept}) {
				f.Errorf("%+v, %+v", counted, marks)
			}
		}},
		{"every order that is held from the beginning to the end, while others come and go", func(f *fixture) {
			const stay = 3000
			p := f.process(f.sale(10*stay, 9))
			held := make(map[ledger.Mark]bool)
			for n := 0; n < stay; n += 1000 {
				claims := f.crowd(p.shard, fmt.Sprint("stays", n), 1000)
				p.do(reserve(claims...))
				for _, c := range claims {
					held[ledger.Mark{Buyer: c.Buyer, OrderNo: c.OrderNo, Quantity: 1}] = true
				}
			}
			comeAndGo := func(n int) {
				claims := f.crowd(p.shard, fmt.Sprint("goes", n), 100)
				p.do(reserve(claims...))
				p.do(release(claims...))
			}
			met := 0
			counted, err := f.Ledger.Audit(f.ctx(), p.shard, func(m ledger.Mark) {
				if met++; met%700 == 0 {
					comeAndGo(met)
				}
				delete(held, m)
			})
			f.check(err, "audit")
			if len(held) != 0 || counted.Epoch != 1 || counted.Steady {
				f.Errorf("%d were not handed over; %+v", len(held), counted)
			}
		}},
	}
}
