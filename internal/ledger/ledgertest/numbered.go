package ledgertest

import (
	"context"
	"reflect"
	"slices"

	"seckill/internal/ledger"
)

func numberedStories() []story {
	return []story{
		{"an unknown shard answers epoch 0", func(f *fixture) {
			p := f.process(f.product())
			if reply := p.expect(ledger.OutcomeEpoch, 1, 0, reserve(f.claim(p.shard, "ann", 1, ""))); reply.Epoch != 0 {
				f.Errorf("epoch %d", reply.Epoch)
			}
			if got := f.read(p.shard); !reflect.DeepEqual(got, ledger.Figures{}) {
				f.Errorf("the refused call left %+v", got)
			}
		}},
		{"another epoch is checked first, and the present one returned", func(f *fixture) {
			shard := f.product()
			shard.Epoch = 5
			f.install(shard, 10, 1) // closed, but the epoch is checked first
			for _, epoch := range []uint64{4, 6} {
				other := shard
				other.Epoch = epoch
				if reply := f.process(other).expect(ledger.OutcomeEpoch, 1, 9, nil); reply.Epoch != 5 {
					f.Errorf("epoch %d told", reply.Epoch)
				}
			}
			if got := f.read(shard); got.Available != 10 || got.Open {
				f.Errorf("the refused calls left %+v", got)
			}
		}},
		{"a closed shard returns closed and changes nothing, not even the record", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			p.expect(ledger.OutcomeApplied, 1, 0, reserve(f.claim(p.shard, "ann", 1, "")))
			f.closed(p.shard)
			before := f.read(p.shard)
			if reply := p.expect(ledger.OutcomeClosed, 2, 1, reserve(f.claim(p.shard, "ann", 1, ""))); reply.Epoch != 1 {
				f.Errorf("epoch %d told", reply.Epoch)
			}
			p.expect(ledger.OutcomeClosed, 3, 7, nil) // closed comes before lost
			if got := f.read(p.shard); !reflect.DeepEqual(got, before) {
				f.Errorf("%+v became %+v", before, got)
			}
			f.opened(p.shard)
			p.expect(ledger.OutcomeApplied, 2, 0, reserve(f.claim(p.shard, "ann", 1, "")))
			if got := kept(p.expect(ledger.OutcomeApplied, 3, 0, nil)); !slices.Equal(got, []uint64{1, 2}) {
				f.Errorf("kept %v", got)
			}
		}},
		{"seen above last closes the shard and returns lost", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			p.do(reserve(f.claim(p.shard, "ann", 1, "")))
			if reply := p.expect(ledger.OutcomeLost, 3, 2, reserve(f.claim(p.shard, "ann", 1, ""))); reply.Epoch != 1 {
				f.Errorf("epoch %d told", reply.Epoch)
			}
			if got := f.read(p.shard); got.Open || got.Available != 9 {
				f.Errorf("after lost: %+v", got)
			}
			p.expect(ledger.OutcomeClosed, 2, 1, nil)
			f.process(p.shard).expect(ledger.OutcomeClosed, 1, 0, nil)
		}},
		{"a forgotten number of an answered ask returns lost", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			// Another ledger, which is gone, has answered the process's ask 1. This one has no
			// record of it.
			p.expect(ledger.OutcomeLost, 2, 1, reserve(f.claim(p.shard, "ann", 1, "")))
		}},
		{"lost is checked before stale", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			p.do(reserve(f.claim(p.shard, "ann", 1, "")))
			p.expect(ledger.OutcomeLost, 1, 2, nil)
		}},
		{"an unknown process with seen above 0 gets lost by an ask", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			p.expect(ledger.OutcomeLost, 9, 8, nil)
		}},
		{"a used number is stale, and is not applied again", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			claim := f.claim(p.shard, "ann", 1, "")
			p.expect(ledger.OutcomeApplied, 1, 0, reserve(claim))
			if reply := p.expect(ledger.OutcomeStale, 1, 0, reserve(f.claim(p.shard, "ann", 1, ""))); reply.Epoch != 1 {
				f.Errorf("epoch %d told", reply.Epoch)
			}
			p.expect(ledger.OutcomeStale, 1, 0, nil)
			p.expect(ledger.OutcomeStale, 0, 0, nil)
			if got := f.read(p.shard); got.Available != 9 {
				f.Errorf("sold twice: %+v", got)
			}
		}},
		{"a gap changes nothing", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			if reply := p.expect(ledger.OutcomeGap, 2, 0, reserve(f.claim(p.shard, "ann", 1, ""))); reply.Epoch != 1 {
				f.Errorf("epoch %d told", reply.Epoch)
			}
			if got := f.read(p.shard); got.Available != 10 || !got.Open {
				f.Errorf("after a gap: %+v", got)
			}
			p.expect(ledger.OutcomeApplied, 1, 0, reserve(f.claim(p.shard, "ann", 1, "")))
		}},
		{"a kept verdict equals the result in the reply", func(f *fixture) {
			p := f.process(f.sale(10, 2))
			ann, bob := f.claim(p.shard, "ann", 2, "k"), f.claim(p.shard, "bob", 3, "")
			first := p.expect(ledger.OutcomeApplied, 1, 0, reserve(ann, bob)).Result
			second := p.expect(ledger.OutcomeApplied, 2, 0, reserve(f.claim(p.shard, "ann", 1, ""))).Result
			third := p.expect(ledger.OutcomeApplied, 3, 0, ledger.Debit{To: 1, N: 1, ID: 77, Units: 3}).Result
			reply := p.expect(ledger.OutcomeApplied, 4, 0, nil)
			want := map[uint64]ledger.Result{1: first, 2: second, 3: third}
			if len(reply.Kept) != len(want) {
				f.Fatalf("kept %+v", reply.Kept)
			}
			for _, k := range reply.Kept {
				if !sameResult(k.Result, want[k.Number]) {
					f.Errorf("number %d: kept %+v, replied %+v", k.Number, k.Result, want[k.Number])
				}
			}
		}},
		{"an ask may skip numbers, which then never happen", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			p.expect(ledger.OutcomeApplied, 1, 0, reserve(f.claim(p.shard, "ann", 1, "")))
			// Number 2 is delayed. 3 is the ask.
			if got := kept(p.expect(ledger.OutcomeApplied, 3, 1, nil)); got != nil {
				f.Errorf("kept %v", got)
			}
			p.expect(ledger.OutcomeStale, 2, 1, reserve(f.claim(p.shard, "ann", 1, "")))
			if got := f.read(p.shard); got.Available != 9 {
				f.Errorf("a number happened after its ask: %+v", got)
			}
			p.expect(ledger.OutcomeApplied, 4, 3, reserve(f.claim(p.shard, "ann", 1, "")))
		}},
		{"a late ask is stale", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			p.expect(ledger.OutcomeApplied, 1, 0, reserve(f.claim(p.shard, "ann", 1, "")))
			if got := kept(p.expect(ledger.OutcomeApplied, 3, 0, nil)); !slices.Equal(got, []uint64{1}) {
				f.Errorf("kept %v", got)
			}
			p.expect(ledger.OutcomeStale, 2, 0, nil)
		}},
		{"an ask does not drop verdicts above seen", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			p.expect(ledger.OutcomeApplied, 1, 0, reserve(f.claim(p.shard, "ann", 1, "")))
			for number := uint64(2); number < 6; number++ {
				if got := kept(p.expect(ledger.OutcomeApplied, number, 0, nil)); !slices.Equal(got, []uint64{1}) {
					f.Errorf("ask %d: kept %v", number, got)
				}
			}
		}},
		{"verdicts up to seen are dropped, by writes, asks, gaps and stales", func(f *fixture) {
			for name, drop := range map[string]func(p *process){
				"write": func(p *process) {
					p.expect(ledger.OutcomeApplied, 3, 1, reserve(f.claim(p.shard, "ann", 1, "")))
				},
				"ask":   func(p *process) { p.expect(ledger.OutcomeApplied, 3, 1, nil) },
				"gap":   func(p *process) { p.expect(ledger.OutcomeGap, 7, 1, reserve(f.claim(p.shard, "ann", 1, ""))) },
				"stale": func(p *process) { p.expect(ledger.OutcomeStale, 2, 1, nil) },
			} {
				p := f.process(f.sale(10, 5))
				p.expect(ledger.OutcomeApplied, 1, 0, reserve(f.claim(p.shard, "ann", 1, "")))
				p.expect(ledger.OutcomeApplied, 2, 0, reserve(f.claim(p.shard, "ann", 1, "")))
				drop(p)
				got := kept(p.expect(ledger.OutcomeApplied, 9, 0, nil))
				if slices.Contains(got, 1) || !slices.Contains(got, 2) {
					f.Errorf("after a %s with seen 1: kept %v", name, got)
				}
			}
		}},
		{"records are per process and per shard", func(f *fixture) {
			shard := f.sale(10, 5)
			p, q := f.process(shard), f.process(shard)
			p.do(reserve(f.claim(shard, "ann", 1, "")))
			q.do(reserve(f.claim(shard, "bob", 1, "")))
			elsewhere := *p
			elsewhere.shard = f.sale(10, 5)
			elsewhere.expect(ledger.OutcomeApplied, 1, 0, reserve(f.claim(elsewhere.shard, "ann", 1, "")))
		}},
		{"records live as long as the epoch", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			p.do(reserve(f.claim(p.shard, "ann", 1, "")))
			p.shard.Epoch = 2
			f.installAndOpen(p.shard, 9, 5)
			p.expect(ledger.OutcomeApplied, 1, 0, reserve(f.claim(p.shard, "ann", 1, "")))
			if got := kept(p.expect(ledger.OutcomeApplied, 2, 0, nil)); !slices.Equal(got, []uint64{1}) {
				f.Errorf("kept %v", got)
			}
		}},
		{"numbers are exact up to 2^53", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			const most = 1<<53 - 1
			p.expect(ledger.OutcomeApplied, most-1, 0, nil)
			p.expect(ledger.OutcomeStale, most-1, most-1, nil)
			p.expect(ledger.OutcomeApplied, most, most-1, reserve(f.claim(p.shard, "ann", 1, "")))
		}},
		{"a call with an ended context returns, and an ask shows its outcome", func(f *fixture) {
			p := f.process(f.sale(10, 5))
			ctx, cancel := context.WithCancel(f.ctx())
			cancel()
			_, _ = p.Ledger.Do(ctx, ledger.Request{
				Shard: p.shard, Call: ledger.Call{Process: p.id, Number: 1}, Write: reserve(f.claim(p.shard, "ann", 1, "")),
			})
			happened := len(p.expect(ledger.OutcomeApplied, 2, 0, nil).Kept)
			if got := f.read(p.shard).Marked; got != int64(happened) {
				f.Errorf("%d verdicts kept and %d units marked", happened, got)
			}
		}},
		{"lanes settle lost replies on this ledger", func(f *fixture) {
			shard := f.sale(10, 1)
			lane := ledger.NewLane(&replyLoser{Ledger: f.Ledger}, shard, ledger.LaneOptions{CallTimeout: callTimeout})
			for _, buyer := range []string{"ann", "bob", "cat", "dan"} {
				claim := f.claim(shard, buyer, 1, "")
				result, err := lane.Do(f.ctx(), reserve(claim))
				f.check(err, "lane")
				f.sameCodes(result, ledger.VerdictAccepted)
			}
			if got := f.read(shard); got.Marked != 4 || !got.Open {
				f.Errorf("after four claims: %+v", got)
			}
		}},
	}
}

// replyLoser loses the reply of every other call.
type replyLoser struct {
	ledger.Ledger
	calls int
}

func (l *replyLoser) Do(ctx context.Context, req ledger.Request) (ledger.Reply, error) {
	l.calls++
	reply, err := l.Ledger.Do(ctx, req)
	if l.calls%2 == 1 {
		return ledger.Reply{}, context.DeadlineExceeded
	}
	return reply, err
}

func heartbeatStories() []story {
	beat := func(f *fixture, beats ...ledger.Beat) []ledger.Outcome {
		f.Helper()
		outcomes, err := f.Ledger.Heartbeat(f.ctx(), beats)
		f.check(err, "heartbeat")
		if len(outcomes) != len(beats) {
			f.Fatalf("%d outcomes of %d beats", len(outcomes), len(beats))
		}
		return outcomes
	}
	return []story{
		{"every beat gets an outcome", func(f *fixture) {
			good, shut, old := f.process(f.sale(1, 1)), f.process(f.sale(1, 1)), f.process(f.sale(1, 1))
			good.do(reserve(f.claim(good.shard, "ann", 1, "")))
			f.closed(shut.shard)
			old.shard.Epoch = 9
			none := f.process(f.product())
			got := beat(f,
				ledger.Beat{Shard: good.shard, Process: good.id, Seen: 1},
				ledger.Beat{Shard: shut.shard, Process: shut.id},
				ledger.Beat{Shard: old.shard, Process: old.id},
				ledger.Beat{Shard: none.shard, Process: none.id},
			)
			want := []ledger.Outcome{ledger.OutcomeApplied, ledger.OutcomeClosed, ledger.OutcomeEpoch, ledger.OutcomeEpoch}
			if !slices.Equal(got, want) {
				f.Errorf("outcomes %v, want %v", got, want)
			}
			if len(beat(f)) != 0 {
				f.Error("no beats have outcomes")
			}
		}},
		{"a beat reports a loss, and the shard closes", func(f *fixture) {
			p := f.process(f.sale(3, 1))
			other := f.sale(3, 1)
			p.do(reserve(f.claim(p.shard, "ann", 1, "")))
			got := beat(f, ledger.Beat{Shard: p.shard, Process: p.id, Seen: 2}, ledger.Beat{Shard: other, Process: p.id})
			if !slices.Equal(got, []ledger.Outcome{ledger.OutcomeLost, ledger.OutcomeApplied}) {
				f.Errorf("outcomes %v", got)
			}
			if f.read(p.shard).Open || !f.read(other).Open {
				f.Error("not exactly the shard with the loss is closed")
			}
			p.expect(ledger.OutcomeClosed, 2, 1, nil)
		}},
		{"a beat takes no number", func(f *fixture) {
			p := f.process(f.sale(3, 3))
			beat(f, ledger.Beat{Shard: p.shard, Process: p.id})
			p.do(reserve(f.claim(p.shard, "ann", 1, "")))
			beat(f, ledger.Beat{Shard: p.shard, Process: p.id, Seen: 1})
			p.do(reserve(f.claim(p.shard, "ann", 1, "")))
		}},
		{"the clock does not go back", func(f *fixture) {
			first, err := f.Ledger.Now(f.ctx())
			f.check(err, "now")
			second, err := f.Ledger.Now(f.ctx())
			f.check(err, "now")
			if first.IsZero() || second.Before(first) {
				f.Errorf("%v, then %v", first, second)
			}
		}},
	}
}
