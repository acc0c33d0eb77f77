package ledgerredis

import (
	"errors"
	"fmt"
	"slices"

	"seckill"
	"seckill/internal/ledger"
)

var errReply = errors.New("the ledger's reply cannot be read")

// decodeReply reads what a numbered call answered (script/numbered.lua).
func decodeReply(text string, w ledger.Write) (ledger.Reply, error) {
	d := decoder{b: text}
	reply := ledger.Reply{Outcome: ledger.Outcome(d.byte()), Epoch: d.uint(8)}
	switch {
	case reply.Outcome != ledger.OutcomeApplied:
	case w == nil:
		for d.err == nil && len(d.b) > 0 {
			reply.Kept = append(reply.Kept, d.kept())
		}
	default:
		reply.Result = d.result()
		accept(reply.Result.Verdicts, claimsOf(w))
	}
	if err := d.end(); err != nil {
		return ledger.Reply{}, fmt.Errorf("%w: %w", errReply, err)
	}
	return reply, nil
}

// kept reads a kept verdict: the result that the reply had and, behind it, the
// numbers of the claims if any was accepted.
func (d *decoder) kept() ledger.Kept {
	kept := ledger.Kept{Number: d.uint(8)}
	verdict := decoder{b: d.take(int(d.uint(4)))}
	kept.Result = verdict.result()
	if numbers := verdict.b; numbers != "" {
		for i := range kept.Result.Verdicts {
			if no := verdict.orderNo(); kept.Result.Verdicts[i].Code == ledger.VerdictAccepted {
				kept.Result.Verdicts[i].OrderNo = no
			}
		}
	}
	if err := verdict.end(); err != nil && d.err == nil {
		d.err = err
	}
	return kept
}

// result reads what a write did (script/write.lua), without the numbers of
// accepted claims.
func (d *decoder) result() ledger.Result {
	result := ledger.Result{Free: int64(d.uint(8))}
	if count := int(d.uint(4)); count > 0 {
		codes := d.take(count)
		result.Verdicts = make([]ledger.Verdict, len(codes))
		for i := range codes {
			result.Verdicts[i] = d.verdict(ledger.VerdictCode(codes[i]))
		}
	}
	if d.byte() == 1 {
		result.Transfer = ledger.Transfer{Peer: int(d.uint(4)), N: d.uint(8), ID: d.uint(8), Units: int64(d.uint(8))}
	}
	return result
}

func (d *decoder) verdict(code ledger.VerdictCode) ledger.Verdict {
	v := ledger.Verdict{Code: code}
	switch code {
	case ledger.VerdictRepeated:
		v.OrderNo = d.orderNo()
	case ledger.VerdictOverLimit:
		held := d.take(int(d.uint(2)) * orderBytes)
		for numbers := (decoder{b: held}); numbers.b != ""; {
			v.Held = append(v.Held, numbers.orderNo())
		}
		slices.SortFunc(v.Held, seckill.NewestFirst)
	}
	return v
}

// accept gives accepted claims their numbers.
func accept(verdicts []ledger.Verdict, claims []seckill.Claim) {
	for i := range min(len(verdicts), len(claims)) {
		if verdicts[i].Code == ledger.VerdictAccepted {
			verdicts[i].OrderNo = claims[i].OrderNo
		}
	}
}

func claimsOf(w ledger.Write) []seckill.Claim {
	switch w := w.(type) {
	case ledger.Reserve:
		return w.Claims
	case ledger.Adopt:
		return w.Claims
	}
	return nil
}
