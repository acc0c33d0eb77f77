package ledgertest

import "seckill/internal/ledger"

// pair returns processes for two shards of one product.
func (f *fixture) pair(left, right int64) (donor, receiver *process) {
	f.Helper()
	from := f.sale(left, 5)
	to := from
	to.Index = 1
	f.installAndOpen(to, right, 5)
	return f.process(from), f.process(to)
}

func (p *process) transfer(w ledger.Write, want ledger.Transfer) {
	p.Helper()
	got := p.do(w).Transfer
	if _, credit := w.(ledger.Credit); credit {
		got.Units = want.Units // the receiver answers number and id
	}
	if want.Units == 0 {
		got.ID = want.ID // no record is open, so there is no id
	}
	if got != want {
		p.Fatalf("%T: transfer %+v, want %+v", w, got, want)
	}
}

func (p *process) figures(want ledger.Figures) {
	p.Helper()
	got := p.read(p.shard)
	want.Epoch, want.Open, want.Limit = got.Epoch, got.Open, got.Limit
	if !sameFigures(got, want) {
		p.Errorf("shard %d: figures %+v\nwant %+v", p.shard.Index, got, want)
	}
}

// wantLost expects that the write finds a loss: the shard closes, and no unit moves.
func (p *process) wantLost(w ledger.Write) {
	p.Helper()
	before := p.read(p.shard)
	p.expect(ledger.OutcomeLost, p.last+1, p.last, w)
	after := p.read(p.shard)
	if after.Open {
		p.Error("the shard is still open after lost")
	}
	after.Open = true
	if !sameFigures(before, after) {
		p.Errorf("lost changed %+v to %+v", before, after)
	}
	p.expect(ledger.OutcomeClosed, p.last+1, p.last, nil)
}

func transferStories() []story {
	debit := ledger.Debit{To: 1, N: 1, ID: 71, Units: 4}
	credit := ledger.Credit{From: 0, N: 1, ID: 71, Units: 4}
	clear := ledger.Clear{To: 1, N: 1, ID: 71}
	record := ledger.Transfer{Peer: 1, N: 1, ID: 71, Units: 4}
	said := ledger.Transfer{Peer: 0, N: 1, ID: 71}
	return []story{
		{"units move from one shard to another in three steps", func(f *fixture) {
			donor, receiver := f.pair(10, 0)
			donor.transfer(debit, record)
			donor.figures(ledger.Figures{Allotted: 10, Available: 6, Sent: 4,
				Out: []ledger.Transfer{record}, LastOut: []ledger.Transfer{record}})
			receiver.transfer(credit, said)
			receiver.figures(ledger.Figures{Available: 4, Received: 4, In: []ledger.Transfer{said}})
			donor.do(clear)
			donor.figures(ledger.Figures{Allotted: 10, Available: 6, Sent: 4, LastOut: []ledger.Transfer{record}})
			receiver.wantVerdicts(reserve(f.claim(receiver.shard, home(receiver.shard, 0), 4, "")), ledger.VerdictAccepted)
			donor.transfer(ledger.Debit{To: 1, N: 2, ID: 72, Units: 1}, ledger.Transfer{Peer: 1, N: 2, ID: 72, Units: 1})
			receiver.transfer(ledger.Credit{From: 0, N: 2, ID: 72, Units: 1}, ledger.Transfer{Peer: 0, N: 2, ID: 72})
		}},
		{"a debit takes free units, at most Units", func(f *fixture) {
			donor, _ := f.pair(3, 0)
			donor.do(reserve(f.claim(donor.shard, home(donor.shard, 0), 1, "")))
			donor.transfer(debit, ledger.Transfer{Peer: 1, N: 1, ID: 71, Units: 2})
			donor.figures(ledger.Figures{Allotted: 3, Marked: 1, Orders: 1, Sent: 2,
				Out: []ledger.Transfer{{Peer: 1, N: 1, ID: 71, Units: 2}}, LastOut: []ledger.Transfer{{Peer: 1, N: 1}}})
		}},
		{"a debit of no unit opens no record, and its number stays free", func(f *fixture) {
			donor, _ := f.pair(0, 0)
			donor.transfer(debit, ledger.Transfer{Peer: 1})
			donor.figures(ledger.Figures{})
			donor.do(ledger.StockChange{ID: "up", Delta: 4})
			donor.transfer(debit, record)
		}},
		{"a repeated, late or early debit returns the record and takes nothing", func(f *fixture) {
			donor, _ := f.pair(10, 0)
			donor.transfer(ledger.Debit{To: 1, N: 2, ID: 70, Units: 4}, ledger.Transfer{Peer: 1})
			donor.transfer(debit, record)
			for _, again := range []ledger.Debit{debit, {To: 1, N: 1, ID: 99, Units: 1}, {To: 1, N: 2, ID: 72, Units: 4}} {
				donor.transfer(again, record)
			}
			donor.do(clear)
			donor.transfer(debit, ledger.Transfer{Peer: 1, N: 1})
			donor.transfer(ledger.Debit{To: 1, N: 3, ID: 73, Units: 4}, ledger.Transfer{Peer: 1, N: 1})
			donor.figures(ledger.Figures{Allotted: 10, Available: 6, Sent: 4, LastOut: []ledger.Transfer{record}})
		}},
		{"a repeated or late credit arrives once", func(f *fixture) {
			_, receiver := f.pair(10, 0)
			for range 3 {
				receiver.transfer(credit, said)
			}
			receiver.transfer(ledger.Credit{From: 0, N: 1, ID: 99, Units: 7}, said)
			second := ledger.Transfer{Peer: 0, N: 2, ID: 72}
			receiver.transfer(ledger.Credit{From: 0, N: 2, ID: 72, Units: 1}, second)
			receiver.transfer(credit, second)
			receiver.figures(ledger.Figures{Available: 5, Received: 5, In: []ledger.Transfer{second}})
		}},
		{"a credit with a number ahead is lost: the receiver forgot one", func(f *fixture) {
			_, receiver := f.pair(10, 0)
			receiver.wantLost(ledger.Credit{From: 0, N: 2, ID: 72, Units: 4})
		}},
		{"a repeated or late clear is ignored", func(f *fixture) {
			donor, _ := f.pair(10, 0)
			donor.do(debit)
			donor.do(clear)
			donor.do(clear)
			donor.transfer(ledger.Debit{To: 1, N: 2, ID: 72, Units: 2}, ledger.Transfer{Peer: 1, N: 2, ID: 72, Units: 2})
			donor.do(clear)
			donor.figures(ledger.Figures{Allotted: 10, Available: 4, Sent: 6,
				Out: []ledger.Transfer{{Peer: 1, N: 2, ID: 72, Units: 2}}, LastOut: []ledger.Transfer{{Peer: 1, N: 2}}})
		}},
		{"a clear with a number ahead is lost: the donor forgot a debit", func(f *fixture) {
			donor, _ := f.pair(10, 0)
			donor.wantLost(clear)
		}},
		{"a clear with another id is lost: the donor forgot a debit and made another", func(f *fixture) {
			donor, _ := f.pair(10, 0)
			donor.do(debit)
			donor.wantLost(ledger.Clear{To: 1, N: 1, ID: 99})
		}},
		{"a clear with another id is lost, also after the record was cleared", func(f *fixture) {
			donor, _ := f.pair(10, 0)
			donor.do(debit)
			donor.do(clear)
			donor.wantLost(ledger.Clear{To: 1, N: 1, ID: 99})
		}},
		{"both directions, and other peers, have their own numbers", func(f *fixture) {
			left, right := f.pair(10, 10)
			left.transfer(debit, record)
			left.transfer(ledger.Debit{To: 2, N: 1, ID: 81, Units: 1}, ledger.Transfer{Peer: 2, N: 1, ID: 81, Units: 1})
			right.transfer(ledger.Debit{To: 0, N: 1, ID: 91, Units: 3}, ledger.Transfer{Peer: 0, N: 1, ID: 91, Units: 3})
			right.transfer(credit, said)
			left.transfer(ledger.Credit{From: 1, N: 1, ID: 91, Units: 3}, ledger.Transfer{Peer: 1, N: 1, ID: 91})
			left.do(clear)
			left.figures(ledger.Figures{Allotted: 10, Available: 8, Sent: 5, Received: 3,
				Out:     []ledger.Transfer{{Peer: 2, N: 1, ID: 81, Units: 1}},
				In:      []ledger.Transfer{{Peer: 1, N: 1, ID: 91}},
				LastOut: []ledger.Transfer{{Peer: 1, N: 1}, {Peer: 2, N: 1}}})
			right.figures(ledger.Figures{Allotted: 10, Available: 11, Sent: 3, Received: 4,
				Out:     []ledger.Transfer{{Peer: 0, N: 1, ID: 91, Units: 3}},
				In:      []ledger.Transfer{said},
				LastOut: []ledger.Transfer{{Peer: 0, N: 1}}})
		}},
		{"a step of an older epoch moves nothing", func(f *fixture) {
			donor, receiver := f.pair(10, 0)
			donor.do(debit)
			next := receiver.shard
			next.Epoch = 2
			f.installAndOpen(next, 5, 5)
			receiver.expect(ledger.OutcomeEpoch, 1, 0, credit)
			if got := f.read(next); got.Available != 5 || got.Received != 0 {
				f.Errorf("%+v", got)
			}
		}},
	}
}
