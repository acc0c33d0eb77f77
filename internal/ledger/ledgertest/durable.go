package ledgertest

import (
	"slices"

	"seckill"
	"seckill/internal/ledger"
)

// needCallersThatLive skips a story if callers die with the ledger.
func (f *fixture) needCallersThatLive() {
	f.Helper()
	if f.CallersDie {
		f.Skip("no caller outlives this ledger")
	}
}

func durableStories() []story {
	return []story{
		{"a restart keeps instructions", func(f *fixture) {
			none, pause, end := seckill.Instruction{}, instruction(seckill.SalePaused, "pause-1"), instruction(seckill.SaleEnded, "end-1")
			shard, never := f.sale(10, 5), f.product()
			f.instructed(shard, pause)
			f.instructed(never, end)
			f.reopen()
			f.wantState(shard, seckill.SalePaused, pause)
			f.wantState(never, seckill.SaleOpen, end)
			f.settled(shard, pause.ID)
			f.reopen()
			f.wantState(shard, seckill.SalePaused, none)
		}},
		{"figures, state and openness survive a restart", func(f *fixture) {
			shard := f.sale(10, 3)
			shut, paused := f.sale(4, 1), f.sale(5, 1)
			p := f.process(shard)
			claim := f.claim(shard, "ann", 2, "")
			p.do(reserve(claim, f.claim(shard, "bob", 1, "")))
			p.do(release(claim))
			p.do(ledger.StockChange{ID: "c", Delta: 7})
			f.closed(shut)
			f.state(paused, seckill.SalePaused)
			shards := []ledger.Shard{shard, shut, paused, f.product()}
			var before []ledger.Figures
			for _, s := range shards {
				before = append(before, f.read(s))
			}
			f.reopen()
			for i, s := range shards {
				if got := f.read(s); !sameFigures(got, before[i]) {
					f.Errorf("%+v became %+v", before[i], got)
				}
			}
		}},
		{"installed keys of dead orders survive a restart", func(f *fixture) {
			shard := f.product()
			gone := f.claim(shard, "ann", 1, "k")
			f.installAndOpen(shard, 3, 1, dead(gone), mark(f.claim(shard, "bob", 1, "")))
			f.reopen()
			if got := f.read(shard); got.Available != 3 || got.Marked != 1 || got.Orders != 1 || !got.Open {
				f.Errorf("%+v", got)
			}
			p := f.process(shard)
			if result := p.wantVerdicts(reserve(f.claim(shard, "ann", 1, "k")), ledger.VerdictRepeated); result.Verdicts[0].OrderNo != gone.OrderNo {
				f.Errorf("%+v", result)
			}
		}},
		{"record and kept verdicts survive a restart between write and ask", func(f *fixture) {
			f.needCallersThatLive()
			p := f.process(f.sale(10, 3))
			p.expect(ledger.OutcomeApplied, 1, 0, reserve(f.claim(p.shard, "ann", 1, "")))
			second := p.expect(ledger.OutcomeApplied, 2, 1, reserve(f.claim(p.shard, "ann", 1, ""), f.claim(p.shard, "ann", 3, ""))).Result
			f.reopen()
			p.expect(ledger.OutcomeStale, 2, 1, reserve(f.claim(p.shard, "ann", 1, "")))
			reply := p.expect(ledger.OutcomeApplied, 3, 1, nil)
			if !slices.Equal(kept(reply), []uint64{2}) || !sameResult(reply.Kept[0].Result, second) {
				f.Errorf("kept %+v, replied %+v", reply.Kept, second)
			}
		}},
		{"a number used by an ask stays used after a restart", func(f *fixture) {
			f.needCallersThatLive()
			p := f.process(f.sale(10, 3))
			p.expect(ledger.OutcomeApplied, 5, 0, nil)
			f.reopen()
			p.expect(ledger.OutcomeStale, 5, 5, reserve(f.claim(p.shard, "ann", 1, "")))
			p.expect(ledger.OutcomeApplied, 6, 5, reserve(f.claim(p.shard, "ann", 1, "")))
		}},
		{"a caller whose record is lost by a restart gets lost", func(f *fixture) {
			if !f.CallersDie {
				f.Skip("records survive here")
			}
			p := f.process(f.sale(10, 3))
			p.do(reserve(f.claim(p.shard, "ann", 1, "")))
			f.reopen()
			p.expect(ledger.OutcomeLost, 2, 1, nil)
		}},
		{"a shard that closed itself stays closed", func(f *fixture) {
			p := f.process(f.sale(10, 3))
			p.expect(ledger.OutcomeLost, 2, 1, nil)
			f.reopen()
			f.process(p.shard).expect(ledger.OutcomeClosed, 1, 0, nil)
		}},
		{"marks and keys survive a restart, also of released and installed orders", func(f *fixture) {
			shard := f.product()
			carried := f.claim(shard, "cat", 1, "k-cat")
			f.installAndOpen(shard, 10, 1, mark(carried))
			p := f.process(shard)
			ann, bob := f.claim(shard, "ann", 1, "k-ann"), f.claim(shard, "bob", 1, "k-bob")
			p.do(reserve(ann, bob))
			p.do(release(bob))
			f.reopen()
			result := f.process(shard).wantVerdicts(reserve(
				f.claim(shard, "ann", 1, "k-ann"), f.claim(shard, "bob", 1, "k-bob"), f.claim(shard, "cat", 1, "k-cat"),
				f.claim(shard, "ann", 1, ""), f.claim(shard, "bob", 1, ""), f.claim(shard, "cat", 1, "")),
				ledger.VerdictRepeated, ledger.VerdictRepeated, ledger.VerdictRepeated,
				ledger.VerdictOverLimit, ledger.VerdictAccepted, ledger.VerdictOverLimit)
			for i, want := range []seckill.Claim{ann, bob, carried} {
				if result.Verdicts[i].OrderNo != want.OrderNo {
					f.Errorf("key %q: %+v", want.Key, result.Verdicts[i])
				}
			}
		}},
		{"stock change ids survive a restart", func(f *fixture) {
			p := f.process(f.sale(10, 3))
			p.wantVerdicts(ledger.StockChange{ID: "up", Delta: 1}, ledger.VerdictApplied)
			p.wantVerdicts(ledger.StockChange{ID: "down", Delta: -50}, ledger.VerdictRefused)
			p.wantVerdicts(ledger.StockChange{ID: "more", Delta: 50}, ledger.VerdictApplied)
			f.reopen()
			p = f.process(p.shard)
			p.wantVerdicts(ledger.StockChange{ID: "up", Delta: 1}, ledger.VerdictApplied)
			p.wantVerdicts(ledger.StockChange{ID: "down", Delta: -50}, ledger.VerdictRefused)
			if got := f.read(p.shard); got.Available != 61 {
				f.Errorf("%+v", got)
			}
		}},
		{"a transfer survives a restart between its steps", func(f *fixture) {
			donor, receiver := f.pair(10, 0)
			donor.do(ledger.Debit{To: 1, N: 1, ID: 71, Units: 4})
			f.reopen()
			donor, receiver = f.process(donor.shard), f.process(receiver.shard)
			donor.transfer(ledger.Debit{To: 1, N: 1, ID: 72, Units: 9}, ledger.Transfer{Peer: 1, N: 1, ID: 71, Units: 4})
			receiver.do(ledger.Credit{From: 0, N: 1, ID: 71, Units: 4})
			f.reopen()
			donor, receiver = f.process(donor.shard), f.process(receiver.shard)
			receiver.transfer(ledger.Credit{From: 0, N: 1, ID: 71, Units: 4}, ledger.Transfer{Peer: 0, N: 1, ID: 71})
			donor.do(ledger.Clear{To: 1, N: 1, ID: 71})
			f.reopen()
			if l, r := f.read(donor.shard), f.read(receiver.shard); l.Available != 6 || r.Available != 4 || len(l.Out) != 0 {
				f.Errorf("left %+v, right %+v", l, r)
			}
		}},
		{"after a restart only unacknowledged entries are delivered", func(f *fixture) {
			p := f.process(f.sale(10, 3))
			done, open := f.claim(p.shard, "ann", 1, ""), f.claim(p.shard, "bob", 2, "k")
			p.do(reserve(done))
			f.receiveAndAck(p.shard.Product, 1)
			w := reserve(open)
			p.do(w)
			before := f.entries(p.shard.Product, 1)[0]
			f.reopen()
			held, err := f.Ledger.Held(f.ctx(), p.shard, "bob")
			f.check(err, "held")
			if len(held) != 1 || !sameEntry(held[0].Entry, before.Entry) {
				f.Errorf("bob holds %+v", held)
			}
			held, err = f.Ledger.Held(f.ctx(), p.shard, "ann")
			f.check(err, "held")
			if len(held) != 1 || held[0].Entry.ProductID != 0 {
				f.Errorf("ann holds %+v", held)
			}
			after := f.receiveAndAck(p.shard.Product, 1)[0]
			if after.ID != before.ID || !sameEntry(after.Entry, before.Entry) {
				f.Errorf("%+v became %+v", before, after)
			}
			f.reopen()
			f.entries(p.shard.Product, 0)
		}},
		{"a newer epoch and older outbox entries survive a restart", func(f *fixture) {
			shard := f.sale(10, 3)
			f.process(shard).do(reserve(f.claim(shard, "ann", 1, "")))
			shard.Epoch = 2
			f.install(shard, 9, 3)
			f.reopen()
			if got := f.read(shard); got.Epoch != 2 || got.Open || got.Available != 9 || got.Marked != 0 {
				f.Errorf("%+v", got)
			}
			if got := f.entries(shard.Product, 1)[0].Entry; got.Epoch != 1 {
				f.Errorf("entry %+v", got)
			}
		}},
	}
}
