package ledgertest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"seckill"
	"seckill/internal/ledger"
)

func boundStories() []story {
	return []story{
		{"a call may have as many claims or orders as the bound", func(f *fixture) {
			p := f.process(f.sale(3*ledger.MaxClaims, 1))
			reserved, adopted := f.crowd(p.shard, "r", ledger.MaxClaims), f.crowd(p.shard, "a", ledger.MaxClaims)
			accepted := slices.Repeat([]ledger.VerdictCode{ledger.VerdictAccepted}, ledger.MaxClaims)
			p.wantVerdicts(reserve(reserved...), accepted...)
			p.wantVerdicts(ledger.Adopt(reserve(adopted...)), accepted...)
			for _, entry := range f.receiveAndAck(p.shard.Product, 2) {
				if got := len(entry.Entry.Claims); got != ledger.MaxClaims {
					f.Errorf("an entry of %d claims", got)
				}
			}
			p.wantVerdicts(release(reserved...), slices.Repeat([]ledger.VerdictCode{ledger.VerdictReleased}, ledger.MaxClaims)...)
			if got := f.read(p.shard); got.Available != 2*ledger.MaxClaims || got.Orders != ledger.MaxClaims {
				f.Errorf("%+v", got)
			}
		}},
		{"a call beyond a bound is ErrBadCall and changes nothing, not even the record", func(f *fixture) {
			p := f.process(f.sale(3*ledger.MaxClaims, 1))
			p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "")), ledger.VerdictAccepted)
			before := f.read(p.shard)
			many := f.crowd(p.shard, "b", ledger.MaxClaims+1)
			for _, write := range []ledger.Write{reserve(many...), ledger.Adopt(reserve(many...)), release(many...)} {
				_, err := p.Ledger.Do(p.ctx(), ledger.Request{
					Shard: p.shard, Call: ledger.Call{Process: p.id, Number: p.last + 1, Seen: p.last}, Write: write,
				})
				if !errors.Is(err, ledger.ErrBadCall) || !errors.Is(err, ledger.ErrNotExecuted) {
					f.Errorf("%T: %v", write, err)
				}
			}
			if got := f.read(p.shard); !reflect.DeepEqual(got, before) {
				f.Errorf("%+v became %+v", before, got)
			}
			p.wantVerdicts(reserve(many[0]), ledger.VerdictAccepted) // under the same number
		}},
		{"a buyer with MaxReturned dead orders is refused, except for known keys; others can buy", func(f *fixture) {
			p := f.process(f.sale(10, 2))
			var first seckill.Claim
			for i := range ledger.MaxReturned {
				claim := f.claim(p.shard, "ann", 1, fmt.Sprint("key-", i))
				if i == 0 {
					first = claim
				}
				p.wantVerdicts(reserve(claim), ledger.VerdictAccepted)
				p.wantVerdicts(release(claim), ledger.VerdictReleased)
			}
			last := f.claim(p.shard, "ann", 1, "adopted")
			result := p.wantVerdicts(reserve(f.claim(p.shard, "ann", 1, "new"), f.claim(p.shard, "ann", 1, ""), f.claim(p.shard, "ann", 1, first.Key), f.claim(p.shard, "bob", 1, "new")),
				ledger.VerdictRefused, ledger.VerdictRefused, ledger.VerdictRepeated, ledger.VerdictAccepted)
			if result.Verdicts[2].OrderNo != first.OrderNo {
				f.Errorf("the first key finds %s, want %s", result.Verdicts[2].OrderNo, first.OrderNo)
			}
			p.wantVerdicts(adopt(last), ledger.VerdictAccepted)
			result = p.wantVerdicts(reserve(f.claim(p.shard, "ann", 2, "two")), ledger.VerdictOverLimit) // the verdict has more data
			if !slices.Equal(result.Verdicts[0].Held, []seckill.OrderNo{last.OrderNo}) {
				f.Errorf("held: %v", result.Verdicts[0].Held)
			}
		}},
	}
}

// crowd returns a claim for each of n buyers.
func (f *fixture) crowd(shard ledger.Shard, name string, n int) []seckill.Claim {
	claims := make([]seckill.Claim, n)
	for i := range claims {
		claims[i] = f.claim(shard, fmt.Sprintf("%s-%d", name, i), 1, "")
	}
	return claims
}
