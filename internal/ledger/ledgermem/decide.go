package ledgermem

import (
	"fmt"

	"seckill/internal/ledger"
)

// notExecuted wraps err to say that the call changed nothing.
func notExecuted(err error) error { return fmt.Errorf("%w: %w", ledger.ErrNotExecuted, err) }

// do decides a numbered call by the rules of ledger.Ledger, in their order.
func (r *round) do(req *ledger.Request) (ledger.Reply, error) {
	if err := req.Check(); err != nil {
		return ledger.Reply{}, notExecuted(err)
	}
	sh, outcome := r.shardOf(req.Shard)
	reply := ledger.Reply{Outcome: outcome}
	if sh != nil {
		reply.Epoch = sh.epoch
	}
	if outcome != 0 {
		return reply, nil
	}
	rec, ok := r.dropSeen(sh, req.Call)
	switch {
	case !ok:
		reply.Outcome = ledger.OutcomeLost
	case req.Call.Number <= rec.last:
		reply.Outcome = ledger.OutcomeStale
	case req.Write == nil:
		rec.last = req.Call.Number
		reply.Outcome, reply.Kept = ledger.OutcomeApplied, append([]ledger.Kept(nil), rec.kept...)
	case req.Call.Number != rec.last+1:
		reply.Outcome = ledger.OutcomeGap
	default:
		reply.Outcome, reply.Result = r.apply(sh, req.Write)
		if reply.Outcome != ledger.OutcomeApplied {
			break
		}
		rec.last = req.Call.Number
		rec.kept = append(rec.kept, ledger.Kept{Number: req.Call.Number, Result: reply.Result})
	}
	return reply, nil
}

// shardOf returns an open shard of the given epoch, or the outcome that explains why there is
// none.
func (r *round) shardOf(want ledger.Shard) (*shard, ledger.Outcome) {
	sh := r.state.shards[keyOf(want)]
	switch {
	case sh == nil:
		return nil, ledger.OutcomeEpoch
	case sh.epoch != want.Epoch:
		return sh, ledger.OutcomeEpoch
	case !sh.open:
		return sh, ledger.OutcomeClosed
	}
	return sh, 0
}

// dropSeen processes the highest reply that the process has received. If that is more than the
// ledger ever answered, it closes the shard and reports false. Otherwise it drops the received
// verdicts and returns the process's record.
func (r *round) dropSeen(sh *shard, call ledger.Call) (*record, bool) {
	rec := sh.records[call.Process]
	if rec == nil {
		if call.Seen > 0 {
			r.setSwitch(sh, false, sh.state)
			return nil, false
		}
		rec = &record{}
		if sh.records == nil {
			sh.records = map[ledger.ProcessID]*record{}
		}
		records := sh.records
		records[call.Process] = rec
		r.undo.add(func() { delete(records, call.Process) })
		return rec, true
	}
	if call.Seen > rec.last {
		r.setSwitch(sh, false, sh.state)
		return nil, false
	}
	old := *rec
	r.undo.add(func() { *rec = old })
	heard := 0
	for heard < len(rec.kept) && rec.kept[heard].Number <= call.Seen {
		heard++
	}
	rec.kept = rec.kept[heard:]
	return rec, true
}

// beat decides one heartbeat. It makes no record, because a process without replies cannot lose
// any. It drops no verdicts, because calls do.
func (r *round) beat(b ledger.Beat) ledger.Outcome {
	sh, outcome := r.shardOf(b.Shard)
	if outcome != 0 {
		return outcome
	}
	var last uint64
	if rec := sh.records[b.Process]; rec != nil {
		last = rec.last
	}
	if b.Seen > last {
		r.setSwitch(sh, false, sh.state)
		return ledger.OutcomeLost
	}
	return ledger.OutcomeApplied
}

func (r *round) apply(sh *shard, w ledger.Write) (ledger.Outcome, ledger.Result) {
	r.undo.figures(sh)
	outcome := ledger.OutcomeApplied
	var res ledger.Result
	switch w := w.(type) {
	case ledger.Reserve:
		res.Verdicts = r.reserve(sh, sale{w.At, w.PriceCents, w.Currency, w.Name}, w.Claims, false)
	case ledger.Adopt:
		res.Verdicts = r.reserve(sh, sale{w.At, w.PriceCents, w.Currency, w.Name}, w.Claims, true)
	case ledger.Release:
		res.Verdicts = r.release(sh, w.Orders)
	case ledger.StockChange:
		res.Verdicts = []ledger.Verdict{{Code: r.change(sh, w)}}
	case ledger.Debit:
		res.Transfer = r.debit(sh, w)
	case ledger.Credit:
		res.Transfer, outcome = r.credit(sh, w)
	case ledger.Clear:
		res.Transfer, outcome = r.clear(sh, w)
	}
	if outcome != ledger.OutcomeApplied {
		return outcome, ledger.Result{}
	}
	res.Free = sh.available
	return outcome, res
}
