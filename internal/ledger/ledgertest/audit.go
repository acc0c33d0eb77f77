package ledgertest

import (
	"fmt"

	"seckill/internal/ledger"
)

func auditStories() []story {
	audit := func(f *fixture, shard ledger.Shard, want ledger.Audit) {
		f.Helper()
		shard.Epoch = 0 // ignored
		counted, err := f.Ledger.Audit(f.ctx(), shard)
		f.check(err, "audit")
		if counted.Epoch != want.Epoch || want.Epoch != 0 && counted != want {
			f.Errorf("%+v, want %+v", counted, want)
		}
	}
	return []story{
		{"a missing shard has nothing to audit", func(f *fixture) {
			audit(f, f.product(), ledger.Audit{})
		}},
		{"live orders of this product count, dead ones with a key do not", func(f *fixture) {
			shoe42, shoe43 := f.sale(1000, 900), f.product()
			shoe43.Group = shoe42.Group
			f.installAndOpen(shoe43, 10, 9)
			p, q := f.process(shoe42), f.process(shoe43)
			second, fourth := f.claim(shoe42, "ann", 2, "k2"), f.claim(shoe42, "cat", 1, "")
			p.do(reserve(f.claim(shoe42, "ann", 1, "k1"), second, f.claim(shoe42, "bob", 300, ""), fourth))
			q.do(reserve(f.claim(shoe43, "ann", 1, "")))
			p.wantVerdicts(release(second, fourth), ledger.VerdictReleased, ledger.VerdictReleased)
			audit(f, shoe42, ledger.Audit{Epoch: 1, Steady: true, Units: 301, Orders: 2, Marked: 301, Live: 2})
		}},
		{"after an install the installed orders count", func(f *fixture) {
			shard := f.sale(10, 9)
			f.process(shard).do(reserve(f.claim(shard, "ann", 1, "")))
			shard.Epoch = 2
			f.installAndOpen(shard, 10, 9, ledger.Mark{Buyer: "bob", OrderNo: f.claim(shard, "bob", 2, "").OrderNo, Quantity: 2, Key: "k"})
			audit(f, shard, ledger.Audit{Epoch: 2, Steady: true, Units: 2, Orders: 1, Marked: 2, Live: 1})
		}},
		{"every order counts, and an audit under traffic is not steady", func(f *fixture) {
			const stay = 3000
			p := f.process(f.sale(10*stay, 9))
			for n := 0; n < stay; n += 1000 {
				p.do(reserve(f.crowd(p.shard, fmt.Sprint("stays", n), 1000)...))
			}
			audit(f, p.shard, ledger.Audit{Epoch: 1, Steady: true, Units: stay, Orders: stay, Marked: stay, Live: stay})
			ctx, disturbed := f.ctx(), make(chan error, 1)
			go func() {
				for {
					counted, err := f.Ledger.Audit(ctx, p.shard)
					if err != nil || !counted.Steady {
						disturbed <- err
						return
					}
				}
			}()
			n := 0
			f.eventually("an audit that is not steady", func() bool {
				claims := f.crowd(p.shard, fmt.Sprint("goes", n), 100)
				p.do(reserve(claims...))
				p.do(release(claims...))
				n++
				select {
				case err := <-disturbed:
					f.check(err, "audit")
					return true
				default:
					return false
				}
			})
		}},
	}
}
