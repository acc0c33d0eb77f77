package ledgerredis

import (
	"errors"
	"fmt"
	"slices"

	"seckill"
	"seckill/internal/ledger"
)

var errReply = errors.New("the ledger's reply cannot be read")

// decodeReply decodes the reply of a numbered call (script/numbered.lua).
func decodeReply(text string, w ledger.Write) (ledger.Reply, error) {
	d := ledger.Decoder{B: text}
	reply := ledger.Reply{Outcome: ledger.Outcome(d.Byte()), Epoch: d.Uint(8)}
	switch {
	case reply.Outcome != ledger.OutcomeApplied:
	case w == nil:
		for d.Err == nil && len(d.B) > 0 {
			reply.Kept = append(reply.Kept, readKept(&d))
		}
	default:
		reply.Result = readResult(&d)
		accept(reply.Result.Verdicts, claimsOf(w))
	}
	if err := d.End(); err != nil {
		return ledger.Reply{}, fmt.Errorf("%w: %w", errReply, err)
	}
	return reply, nil
}

// readKept decodes a kept verdict: the result, and the numbers of the claims if any was
// accepted.
func readKept(d *ledger.Decoder) ledger.Kept {
	kept := ledger.Kept{Number: d.Uint(8)}
	verdict := ledger.Decoder{B: d.Take(int(d.Uint(4)))}
	kept.Result = readResult(&verdict)
	if numbers := verdict.B; numbers != "" {
		for i := range kept.Result.Verdicts {
			if no := verdict.OrderNo(); kept.Result.Verdicts[i].Code == ledger.VerdictAccepted {
				kept.Result.Verdicts[i].OrderNo = no
			}
		}
	}
	if err := verdict.End(); err != nil && d.Err == nil {
		d.Err = err
	}
	return kept
}

// readResult decodes the result of a write (script/write.lua), without the numbers of accepted
// claims.
func readResult(d *ledger.Decoder) ledger.Result {
	result := ledger.Result{Free: int64(d.Uint(8))}
	if count := int(d.Uint(4)); count > 0 {
		codes := d.Take(count)
		result.Verdicts = make([]ledger.Verdict, len(codes))
		for i := range codes {
			result.Verdicts[i] = readVerdict(d, ledger.VerdictCode(codes[i]))
		}
	}
	if d.Byte() == 1 {
		result.Transfer = ledger.Transfer{Peer: int(d.Uint(4)), N: d.Uint(8), ID: d.Uint(8), Units: int64(d.Uint(8))}
	}
	return result
}

func readVerdict(d *ledger.Decoder, code ledger.VerdictCode) ledger.Verdict {
	v := ledger.Verdict{Code: code}
	switch code {
	case ledger.VerdictRepeated:
		v.OrderNo = d.OrderNo()
	case ledger.VerdictOverLimit:
		held := d.Take(int(d.Uint(2)) * ledger.NumberBytes)
		for numbers := (ledger.Decoder{B: held}); numbers.B != ""; {
			v.Held = append(v.Held, numbers.OrderNo())
		}
		slices.SortFunc(v.Held, seckill.NewestFirst)
	}
	return v
}

// accept sets the order numbers of accepted claims.
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
