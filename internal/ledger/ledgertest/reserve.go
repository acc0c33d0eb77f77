package ledgertest

import (
	"slices"

	"seckill"
	"seckill/internal/ledger"
)

func reserveStories() []story {
	return []story{
		{"an accepted claim deducts its units and writes the mark", func(f *fixture) {
			p := f.process(f.sale(10, 3))
			claim := f.claim(p.shard, "ann", 3, "")
			result := p.wantVerdicts(reserve(claim), ledger.VerdictAccepted)
			if result.Verdicts[0].OrderNo != claim.OrderNo || result.Free != 7 {
				f.Errorf("%+v", result)
			}
			if got := f.read(p.shard); got.Available != 7 || got.Marked != 3 || got.Orders != 1 || got.Allotted != 10 {
				f.Errorf("%+v", got)
			}
		}},
		{"claims of a batch are decided in order, each after those before it", func(f *fixture) {
			p := f.process(f.sale(4, 2))
			ann, bob, cat := f.claim(p.shard, "ann", 1, ""), f.claim(p.shard, "bob", 2, ""), f.claim(p.shard, "cat", 1, "")
			result := p.wantVerdicts(reserve(
				ann,
				bob,
				f.claim(p.shard, "ann", 2, ""), // 1 + 2 > 2
				f.claim(p.shard, "cat", 2, ""), // 1 free
				cat,
				f.claim(p.shard, "dan", 1, ""), // 0 free
			), ledger.VerdictAccepted, ledger.VerdictAccepted, ledger.VerdictOverLimit, ledger.VerdictSoldOut,
				ledger.VerdictAccepted, ledger.VerdictSoldOut)
			if result.Free != 0 || !slices.Equal(result.Verdicts[2].Held, []seckill.OrderNo{ann.OrderNo}) {
				f.Errorf("%+v", result)
			}
		}},
		{"a quantity above the free units is sold out, and a smaller one is not", func(f *fixture) {
			p := f.process(f.sale(2, 5))
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 3, "")), ledger.VerdictSoldOut)
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 2, "")), ledger.VerdictAccepted)
			p.wantVerdicts(reserve(f.claim(p.shard, "bob", 1, "")), ledger.VerdictSoldOut)
		}},
		{"a limit above one counts units, and names the live orders newest first", func(f *fixture) {
			p := f.process(f.sale(100, 5))
			first, second := f.claim(p.shard, "ann", 2, ""), f.claim(p.shard, "ann", 2, "")
			p.wantVerdicts(reserve(first), ledger.VerdictAccepted)
			p.wantVerdicts(reserve(second), ledger.VerdictAccepted)
			result := p.wantVerdicts(reserve(f.claim(p.shard, "ann", 2, "")), ledger.VerdictOverLimit)
			if want := []seckill.OrderNo{second.OrderNo, first.OrderNo}; !slices.Equal(result.Verdicts[0].Held, want) {
				f.Errorf("held %v, want %v", result.Verdicts[0].Held, want)
			}
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "")), ledger.VerdictAccepted)
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "")), ledger.VerdictOverLimit)
			p.wantVerdicts(release(first), ledger.VerdictReleased)
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 2, "")), ledger.VerdictAccepted)
		}},
		{"buyers are compared byte by byte", func(f *fixture) {
			p := f.process(f.sale(10, 1))
			for _, buyer := range []string{"Bob", "bob", "bob ", "é", "e\u0301", "a:b", "{b1}", `"`, "张三"} {
				p.wantVerdicts(reserve(f.claim(p.shard, buyer, 1, "k")), ledger.VerdictAccepted)
			}
		}},
		{"products of a group share one limit", func(f *fixture) {
			shoe42, shoe43 := f.sale(10, 2), f.product()
			shoe43.Group = shoe42.Group
			f.installAndOpen(shoe43, 10, 2)
			p, q := f.process(shoe42), f.process(shoe43)
			small, large := f.claim(shoe42, "ann", 1, ""), f.claim(shoe43, "ann", 1, "")
			p.wantVerdicts(reserve(small), ledger.VerdictAccepted)
			q.wantVerdicts(reserve(large), ledger.VerdictAccepted)
			for _, r := range []*process{p, q} {
				result := r.wantVerdicts(reserve(f.claim(r.shard, "ann", 1, "")), ledger.VerdictOverLimit)
				if want := []seckill.OrderNo{large.OrderNo, small.OrderNo}; !slices.Equal(result.Verdicts[0].Held, want) {
					f.Errorf("held %v, want %v", result.Verdicts[0].Held, want)
				}
			}
			// Figures are per product. A release returns units to the group's limit.
			if got := f.read(shoe42); got.Marked != 1 || got.Available != 9 {
				f.Errorf("%+v", got)
			}
			p.wantVerdicts(release(small), ledger.VerdictReleased)
			q.wantVerdicts(reserve(f.claim(shoe43, "ann", 1, "")), ledger.VerdictAccepted)
		}},
		{"products of different groups share no limit and no keys", func(f *fixture) {
			p, q := f.process(f.sale(10, 1)), f.process(f.sale(10, 1))
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "k")), ledger.VerdictAccepted)
			q.wantVerdicts(reserve(f.claim(q.shard, "ann", 1, "k")), ledger.VerdictAccepted)
		}},
		{"a repeated key gives the first order, and changes nothing", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			first := f.claim(p.shard, "ann", 2, "k")
			p.wantVerdicts(reserve(first), ledger.VerdictAccepted)
			result := p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "k")), ledger.VerdictRepeated)
			if result.Verdicts[0].OrderNo != first.OrderNo || result.Free != 8 {
				f.Errorf("%+v", result)
			}
			p.wantVerdicts(reserve(f.claim(p.shard, "bob", 1, "k")), ledger.VerdictAccepted) // another's key
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "K")), ledger.VerdictAccepted) // another key
			if got := f.read(p.shard); got.Marked != 4 || got.Orders != 3 {
				f.Errorf("%+v", got)
			}
		}},
		{"a delayed claim does not buy again after a release, because keys are kept", func(f *fixture) {
			p := f.process(f.sale(10, 1))
			first := f.claim(p.shard, "ann", 1, "k")
			p.wantVerdicts(reserve(first), ledger.VerdictAccepted)
			p.wantVerdicts(release(first), ledger.VerdictReleased)
			result := p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "k")), ledger.VerdictRepeated)
			if result.Verdicts[0].OrderNo != first.OrderNo || result.Free != 10 {
				f.Errorf("%+v", result)
			}
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "other")), ledger.VerdictAccepted)
		}},
		{"a key repeated within one batch returns the first order", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			first := f.claim(p.shard, "ann", 1, "k")
			result := p.wantVerdicts(reserve(first, f.claim(p.shard, "ann", 1, "k")), ledger.VerdictAccepted, ledger.VerdictRepeated)
			if result.Verdicts[1].OrderNo != first.OrderNo || result.Free != 9 {
				f.Errorf("%+v", result)
			}
		}},
		{"a key of a refused claim is not known", func(f *fixture) {
			p := f.process(f.sale(1, 5))
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 2, "k")), ledger.VerdictSoldOut)
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "k")), ledger.VerdictAccepted)
		}},
		{"the number of a live order is repeated, also within one batch", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			claim := f.claim(p.shard, "ann", 1, "")
			result := p.wantVerdicts(reserve(claim, claim), ledger.VerdictAccepted, ledger.VerdictRepeated)
			if result.Verdicts[1].OrderNo != claim.OrderNo {
				f.Errorf("%+v", result)
			}
			result = p.wantVerdicts(reserve(claim), ledger.VerdictRepeated)
			if result.Verdicts[0].OrderNo != claim.OrderNo || result.Free != 9 {
				f.Errorf("%+v", result)
			}
		}},
		{"verdicts are checked in order: repeated, paused, limit, sold out", func(f *fixture) {
			p := f.process(f.sale(1, 1))
			first := f.claim(p.shard, "ann", 1, "k")
			p.wantVerdicts(reserve(first), ledger.VerdictAccepted)
			over := func() ledger.Reserve {
				return reserve(f.claim(p.shard, "ann", 1, "k"), f.claim(p.shard, "ann", 1, ""), f.claim(p.shard, "bob", 1, ""))
			}
			p.wantVerdicts(over(), ledger.VerdictRepeated, ledger.VerdictOverLimit, ledger.VerdictSoldOut)
			f.state(p.shard, seckill.SalePaused)
			p.wantVerdicts(over(), ledger.VerdictRepeated, ledger.VerdictPaused, ledger.VerdictPaused)
			f.state(p.shard, seckill.SaleEnded)
			p.wantVerdicts(over(), ledger.VerdictRepeated, ledger.VerdictEnded, ledger.VerdictEnded)
		}},
		{"shards of one product have their own stock and marks", func(f *fixture) {
			left := f.sale(1, 1)
			right := left
			right.Index = 1
			f.installAndOpen(right, 2, 1)
			p, q := f.process(left), f.process(right)
			p.wantVerdicts(reserve(f.claim(left, home(left, 0), 1, "")), ledger.VerdictAccepted)
			p.wantVerdicts(reserve(f.claim(left, home(left, 1), 1, "")), ledger.VerdictSoldOut)
			q.wantVerdicts(reserve(f.claim(right, home(right, 0), 1, "")), ledger.VerdictAccepted)
			if l, r := f.read(left), f.read(right); l.Available != 0 || r.Available != 1 {
				f.Errorf("left %+v, right %+v", l, r)
			}
		}},
	}
}

// home returns the nth buyer whose home, of two shards, is this one.
func home(shard ledger.Shard, n int) string {
	for i := 0; ; i++ {
		buyer := "buyer-" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		if seckill.HomeShard(&seckill.Product{Shards: 2}, buyer) != shard.Index {
			continue
		}
		if n == 0 {
			return buyer
		}
		n--
	}
}

func outboxStories() []story {
	return []story{
		{"a batch makes one entry, with exactly the accepted claims and the data for the worker", func(f *fixture) {
			shoe42 := f.sale(2, 2)
			shard := f.product()
			shard.Group, shard.Index, shard.Epoch = shoe42.Group, 1, 7
			f.installAndOpen(shard, 3, 2)
			p := f.process(shard)
			ann, bob := f.claim(shard, home(shard, 0), 2, "key 1"), f.claim(shard, home(shard, 1), 1, "")
			w := reserve(ann, f.claim(shard, ann.Buyer, 1, ""), bob, f.claim(shard, home(shard, 2), 1, ""))
			p.wantVerdicts(w, ledger.VerdictAccepted, ledger.VerdictOverLimit, ledger.VerdictAccepted, ledger.VerdictSoldOut)
			got := f.entries(shard.Product, 1)[0].Entry
			want := seckill.Entry{
				ProductID: shard.Product, Group: shard.Group, Shard: 1, Epoch: 7, At: w.At, PriceCents: w.PriceCents,
				Currency: w.Currency, Name: w.Name, Limit: 2, Claims: []seckill.Claim{ann, bob},
			}
			if !sameEntry(got, want) {
				f.Errorf("entry %+v\nwant  %+v", got, want)
			}
		}},
		{"a shard is intact with entries that wait, without any, and before it is installed", func(f *fixture) {
			intact := func(shard ledger.Shard) {
				f.Helper()
				shard.Epoch = 0 // ignored
				if ok, err := f.Ledger.Intact(f.ctx(), shard); err != nil || !ok {
					f.Errorf("intact: %v, %v", ok, err)
				}
			}
			intact(f.product())
			p := f.process(f.sale(9, 9))
			intact(p.shard)
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "")), ledger.VerdictAccepted)
			intact(p.shard)
			f.entries(p.shard.Product, 1)
			intact(p.shard)
		}},
		{"a batch without an accepted claim makes no entry", func(f *fixture) {
			p := f.process(f.sale(1, 1))
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 2, "")), ledger.VerdictOverLimit)
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "k")), ledger.VerdictAccepted)
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "k"), f.claim(p.shard, "bob", 1, "")), ledger.VerdictRepeated, ledger.VerdictSoldOut)
			f.entries(p.shard.Product, 1)
		}},
		{"entries come in the order of the batches", func(f *fixture) {
			p := f.process(f.sale(100, 1))
			var want []seckill.OrderNo
			for i := range 10 {
				claim := f.claim(p.shard, string(rune('a'+i)), 1, "")
				want = append(want, claim.OrderNo)
				p.do(reserve(claim))
			}
			var got []seckill.OrderNo
			for _, d := range f.receiveAndAck(p.shard.Product, 10) {
				got = append(got, d.Entry.Claims[0].OrderNo)
			}
			if !slices.Equal(got, want) {
				f.Errorf("order %v, want %v", got, want)
			}
			f.entries(p.shard.Product, 0)
		}},
		{"release and stock change write no entry", func(f *fixture) {
			p := f.process(f.sale(10, 1))
			claim := f.claim(p.shard, "ann", 1, "")
			p.do(reserve(claim))
			p.do(release(claim))
			p.do(ledger.StockChange{ID: "c", Delta: 1})
			f.entries(p.shard.Product, 1)
		}},
		{"a batch of a thousand claims is one step", func(f *fixture) {
			p := f.process(f.sale(900, 1))
			var claims []seckill.Claim
			for i := range 1000 {
				claims = append(claims, f.claim(p.shard, "buyer-"+string(rune('0'+i/100))+string(rune('0'+i/10%10))+string(rune('0'+i%10)), 1, ""))
			}
			result := p.do(reserve(claims...))
			if len(result.Verdicts) != 1000 || result.Free != 0 ||
				result.Verdicts[899].Code != ledger.VerdictAccepted || result.Verdicts[900].Code != ledger.VerdictSoldOut {
				f.Fatalf("%d verdicts, %d free", len(result.Verdicts), result.Free)
			}
			if got := f.entries(p.shard.Product, 1)[0].Entry.Claims; !slices.Equal(got, claims[:900]) {
				f.Errorf("the entry has %d claims", len(got))
			}
		}},
	}
}

func heldStories() []story {
	held := func(f *fixture, shard ledger.Shard, buyer string) []ledger.Holding {
		f.Helper()
		shard.Epoch = 0 // ignored
		holdings, err := f.Ledger.Held(f.ctx(), shard, buyer)
		f.check(err, "held")
		return holdings
	}
	return []story{
		{"Held lists live orders of this product, newest first", func(f *fixture) {
			shoe42, shoe43 := f.sale(10, 9), f.product()
			if got := held(f, shoe43, "ann"); len(got) != 0 {
				f.Errorf("a missing shard holds %+v", got)
			}
			shoe43.Group = shoe42.Group
			f.installAndOpen(shoe43, 10, 9)
			p, q := f.process(shoe42), f.process(shoe43)
			first, second, third := f.claim(shoe42, "ann", 1, "k1"), f.claim(shoe42, "ann", 2, ""), f.claim(shoe42, "ann", 3, "k3")
			p.do(reserve(first, second))
			p.do(reserve(third, f.claim(shoe42, "bob", 1, "")))
			q.do(reserve(f.claim(shoe43, "ann", 1, "")))
			p.wantVerdicts(release(second), ledger.VerdictReleased)
			got := held(f, shoe42, "ann")
			if len(got) != 2 || got[0].OrderNo != third.OrderNo || got[0].Quantity != 3 || got[0].Key != "k3" ||
				got[1].OrderNo != first.OrderNo || got[1].Quantity != 1 || got[1].Key != "k1" {
				f.Errorf("ann holds %+v", got)
			}
			if got := held(f, shoe42, "Ann"); len(got) != 0 {
				f.Errorf("Ann holds %+v", got)
			}
		}},
		{"Held returns the order's entry with its claim alone, until it is acknowledged", func(f *fixture) {
			p := f.process(f.sale(10, 9))
			ann, bob := f.claim(p.shard, "ann", 2, "k"), f.claim(p.shard, "bob", 1, "")
			w := reserve(bob, ann)
			p.do(w)
			got := held(f, p.shard, "ann")
			want := seckill.Entry{
				ProductID: p.shard.Product, Group: p.shard.Group, Epoch: 1, At: w.At, PriceCents: w.PriceCents,
				Currency: w.Currency, Name: w.Name, Limit: 9, Claims: []seckill.Claim{ann},
			}
			if len(got) != 1 || !sameEntry(got[0].Entry, want) {
				f.Fatalf("ann holds %+v\nwant entry %+v", got, want)
			}
			f.entries(p.shard.Product, 1) // delivered and returned to the queue, so still there
			if got := held(f, p.shard, "ann"); len(got) != 1 || got[0].Entry.ProductID == 0 {
				f.Errorf("after a delivery ann holds %+v", got)
			}
			f.receiveAndAck(p.shard.Product, 1)
			f.eventually("the acknowledged entry is gone from the holding", func() bool {
				got := held(f, p.shard, "ann")
				if len(got) != 1 {
					f.Fatalf("ann holds %+v", got)
				}
				return got[0].Entry.ProductID == 0
			})
		}},
	}
}
