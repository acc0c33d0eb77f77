package ledgertest

import (
	"seckill"
	"seckill/internal/ledger"
)

func adopt(claims ...seckill.Claim) ledger.Adopt { return ledger.Adopt(reserve(claims...)) }

func adoptStories() []story {
	return []story{
		{"an adopted claim keeps its number and gets a new entry", func(f *fixture) {
			shard := f.sale(10, 2)
			old := f.claim(shard, "ann", 2, "k")
			f.process(shard).wantVerdicts(reserve(old), ledger.VerdictAccepted)
			shard.Epoch = 2
			f.installAndOpen(shard, 10, 2)
			p := f.process(shard)
			w := adopt(old)
			result := p.wantVerdicts(w, ledger.VerdictAccepted)
			if result.Verdicts[0].OrderNo != old.OrderNo || result.Free != 8 {
				f.Errorf("%+v", result)
			}
			got := f.entries(shard.Product, 2)[1].Entry
			want := seckill.Entry{
				ProductID: shard.Product, Group: shard.Group, Epoch: 2, At: w.At, PriceCents: w.PriceCents,
				Currency: w.Currency, Name: w.Name, Limit: 2, Claims: []seckill.Claim{old},
			}
			if !sameEntry(got, want) {
				f.Errorf("entry %+v\nwant  %+v", got, want)
			}
			// The key is known again.
			result = p.wantVerdicts(reserve(f.claim(shard, "ann", 1, "k")), ledger.VerdictRepeated)
			if result.Verdicts[0].OrderNo != old.OrderNo {
				f.Errorf("%+v", result)
			}
		}},
		{"a claim adopted by two workers is repeated", func(f *fixture) {
			shard := f.sale(10, 5)
			keyed, plain := f.claim(shard, "ann", 1, "k"), f.claim(shard, "bob", 1, "")
			f.process(shard).wantVerdicts(adopt(keyed, plain), ledger.VerdictAccepted, ledger.VerdictAccepted)
			result := f.process(shard).wantVerdicts(adopt(keyed, plain, plain), ledger.VerdictRepeated, ledger.VerdictRepeated, ledger.VerdictRepeated)
			for i, want := range []seckill.Claim{keyed, plain, plain} {
				if result.Verdicts[i].OrderNo != want.OrderNo {
					f.Errorf("verdict %d: %+v", i, result.Verdicts[i])
				}
			}
			f.entries(shard.Product, 1)
		}},
		{"a key of another order returns that order", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			now := f.claim(p.shard, "ann", 1, "k")
			p.wantVerdicts(reserve(now), ledger.VerdictAccepted)
			result := p.wantVerdicts(adopt(f.claim(p.shard, "ann", 1, "k")), ledger.VerdictRepeated)
			if result.Verdicts[0].OrderNo != now.OrderNo || result.Free != 9 {
				f.Errorf("%+v", result)
			}
		}},
		{"a paused or ended sale does not refuse an adoption", func(f *fixture) {
			for _, state := range []seckill.SaleState{seckill.SalePaused, seckill.SaleEnded} {
				p := f.process(f.sale(10, 5))
				f.state(p.shard, state)
				p.wantVerdicts(adopt(f.claim(p.shard, "ann", 1, "")), ledger.VerdictAccepted)
			}
		}},
		{"limit and stock refuse each adopted claim on its own", func(f *fixture) {
			p := f.process(f.sale(3, 2))
			ann := f.claim(p.shard, "ann", 2, "")
			result := p.wantVerdicts(adopt(ann, f.claim(p.shard, "ann", 1, ""), f.claim(p.shard, "bob", 2, ""), f.claim(p.shard, "cat", 1, "")),
				ledger.VerdictAccepted, ledger.VerdictOverLimit, ledger.VerdictSoldOut, ledger.VerdictAccepted)
			if len(result.Verdicts[1].Held) != 1 || result.Verdicts[1].Held[0] != ann.OrderNo {
				f.Errorf("%+v", result)
			}
			if got := f.read(p.shard); got.Available != 0 || got.Marked != 3 {
				f.Errorf("%+v", got)
			}
		}},
	}
}

func releaseStories() []story {
	return []story{
		{"a live order returns its units once", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			claim := f.claim(p.shard, "ann", 3, "")
			p.do(reserve(claim))
			before := f.read(p.shard).Releases
			result := p.wantVerdicts(release(claim, claim), ledger.VerdictReleased, ledger.VerdictNotHeld)
			if result.Free != 10 {
				f.Errorf("%+v", result)
			}
			after := f.read(p.shard)
			if after.Available != 10 || after.Marked != 0 || after.Orders != 0 || after.Releases <= before {
				f.Errorf("releases were %d, figures %+v", before, after)
			}
			p.wantVerdicts(release(claim), ledger.VerdictNotHeld)
			f.process(p.shard).wantVerdicts(release(claim), ledger.VerdictNotHeld)
			if got := f.read(p.shard); got.Available != 10 || got.Releases != after.Releases {
				f.Errorf("released again: %+v", got)
			}
		}},
		{"a late release of an old order does not release the buyer's new one", func(f *fixture) {
			p := f.process(f.sale(10, 1))
			old, fresh := f.claim(p.shard, "ann", 1, ""), f.claim(p.shard, "ann", 1, "")
			p.do(reserve(old))
			p.wantVerdicts(release(old), ledger.VerdictReleased)
			p.wantVerdicts(reserve(fresh), ledger.VerdictAccepted)
			p.wantVerdicts(release(old), ledger.VerdictNotHeld)
			if got := f.read(p.shard); got.Marked != 1 || got.Available != 9 {
				f.Errorf("%+v", got)
			}
		}},
		{"a release for another buyer, product or shard is not held", func(f *fixture) {
			shard := f.sale(10, 5)
			sibling, right := f.product(), shard
			sibling.Group, right.Index = shard.Group, 1
			f.installAndOpen(sibling, 10, 5)
			f.installAndOpen(right, 10, 5)
			p := f.process(shard)
			claim := f.claim(shard, home(shard, 0), 1, "")
			p.do(reserve(claim))
			wrong := claim
			wrong.Buyer = home(shard, 1)
			p.wantVerdicts(release(wrong), ledger.VerdictNotHeld)
			f.process(sibling).wantVerdicts(release(claim), ledger.VerdictNotHeld)
			f.process(right).wantVerdicts(release(claim), ledger.VerdictNotHeld)
			for _, s := range []ledger.Shard{sibling, right} {
				if got := f.read(s); got.Available != 10 {
					f.Errorf("a foreign unit was returned: %+v", got)
				}
			}
			p.wantVerdicts(release(claim), ledger.VerdictReleased)
		}},
		{"units can be released in a paused or ended sale", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			ann, bob := f.claim(p.shard, "ann", 1, ""), f.claim(p.shard, "bob", 1, "")
			p.do(reserve(ann, bob))
			f.state(p.shard, seckill.SalePaused)
			p.wantVerdicts(release(ann), ledger.VerdictReleased)
			f.state(p.shard, seckill.SaleEnded)
			p.wantVerdicts(release(bob), ledger.VerdictReleased)
		}},
		{"a released unit can be sold again", func(f *fixture) {
			p := f.process(f.sale(1, 1))
			claim := f.claim(p.shard, "ann", 1, "")
			p.do(reserve(claim))
			p.wantVerdicts(reserve(f.claim(p.shard, "bob", 1, "")), ledger.VerdictSoldOut)
			p.wantVerdicts(release(claim), ledger.VerdictReleased)
			p.wantVerdicts(reserve(f.claim(p.shard, "bob", 1, "")), ledger.VerdictAccepted)
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "")), ledger.VerdictSoldOut)
		}},
		{"a release of an older epoch returns the epoch and changes nothing", func(f *fixture) {
			shard := f.sale(10, 5)
			claim := f.claim(shard, "ann", 1, "")
			old := f.process(shard)
			old.do(reserve(claim))
			shard.Epoch = 2
			f.installAndOpen(shard, 9, 5, mark(claim))
			if reply := old.expect(ledger.OutcomeEpoch, 2, 1, release(claim)); reply.Epoch != 2 {
				f.Errorf("epoch %d told", reply.Epoch)
			}
			if got := f.read(shard); got.Marked != 1 || got.Available != 9 {
				f.Errorf("%+v", got)
			}
		}},
	}
}

func stockStories() []story {
	return []story{
		{"a change moves free units and allotment", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			if result := p.wantVerdicts(ledger.StockChange{ID: "up", Delta: 5}, ledger.VerdictApplied); result.Free != 15 {
				f.Errorf("%+v", result)
			}
			p.wantVerdicts(ledger.StockChange{ID: "down", Delta: -12}, ledger.VerdictApplied)
			if got := f.read(p.shard); got.Available != 3 || got.Allotted != 3 {
				f.Errorf("%+v", got)
			}
			p.wantVerdicts(ledger.StockChange{ID: "rest", Delta: -3}, ledger.VerdictApplied)
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "")), ledger.VerdictSoldOut)
		}},
		{"a change down by more than the free units is refused as a whole", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			p.do(reserve(f.claim(p.shard, "ann", 4, "")))
			if result := p.wantVerdicts(ledger.StockChange{ID: "down", Delta: -7}, ledger.VerdictRefused); result.Free != 6 {
				f.Errorf("%+v", result)
			}
			if got := f.read(p.shard); got.Available != 6 || got.Allotted != 10 {
				f.Errorf("%+v", got)
			}
		}},
		{"a repeated change returns the first verdict and changes nothing", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			p.wantVerdicts(ledger.StockChange{ID: "up", Delta: 5}, ledger.VerdictApplied)
			p.wantVerdicts(ledger.StockChange{ID: "down", Delta: -20}, ledger.VerdictRefused)
			p.wantVerdicts(ledger.StockChange{ID: "more", Delta: 50}, ledger.VerdictApplied)
			q := f.process(p.shard) // another instance sends it again
			q.wantVerdicts(ledger.StockChange{ID: "up", Delta: 5}, ledger.VerdictApplied)
			q.wantVerdicts(ledger.StockChange{ID: "down", Delta: -20}, ledger.VerdictRefused)
			if got := f.read(p.shard); got.Available != 65 || got.Allotted != 65 {
				f.Errorf("%+v", got)
			}
		}},
		{"ids of stock changes are per shard", func(f *fixture) {
			left := f.sale(10, 5)
			right := left
			right.Index = 1
			f.installAndOpen(right, 10, 5)
			f.process(left).wantVerdicts(ledger.StockChange{ID: "c", Delta: 1}, ledger.VerdictApplied)
			f.process(right).wantVerdicts(ledger.StockChange{ID: "c", Delta: 1}, ledger.VerdictApplied)
			if got := f.read(right); got.Available != 11 {
				f.Errorf("%+v", got)
			}
		}},
	}
}
