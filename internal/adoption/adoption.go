// Package adoption carries promises of an older epoch into the present one
// (protocol 3): each is reserved now under its old order number, or fails
// explicitly. Whoever holds such a promise may adopt it, the worker that meets
// its entry and the instance that remembers having answered it, and both at
// once.
package adoption

import (
	"context"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/fault"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

// Store is what an adoption reads and writes.
type Store interface {
	Product(ctx context.Context, id uint32) (seckill.Product, error)
	Fail(ctx context.Context, items []store.Item, reason string) error
	CloseLetter(ctx context.Context, id int64) error
}

// Lanes performs numbered ledger writes.
type Lanes interface {
	Do(ctx context.Context, shard ledger.Shard, write ledger.Write) (ledger.Result, error)
}

// Adopter adopts.
type Adopter struct {
	Store Store
	Lanes Lanes
	Now   func() time.Time // the ledger's clock
}

// Outcome is what became of claims, in no order. Those of neither list are
// unsettled, and an error says why.
type Outcome struct {
	Epoch   uint64       // into which they were adopted
	Adopted []store.Item // carried on by an entry of that epoch
	Failed  []Failure    // written as failed orders
}

// Failure is a claim that was refused, and why.
type Failure struct {
	store.Item
	Reason string
}

// Adopt settles claims of one product: a promise never ends as nothing (I4).
// When it fails, it may be repeated, whole.
func (a *Adopter) Adopt(ctx context.Context, items []store.Item) (Outcome, error) {
	if len(items) == 0 {
		return Outcome{}, nil
	}
	product, err := a.Store.Product(ctx, items[0].ProductID)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Epoch: product.Epoch}
	for _, group := range byTerms(&product, items) {
		if err := a.adopt(ctx, group, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// step is claims that one ledger step can adopt together: those of one shard
// that were promised on the same terms.
type step struct {
	shard ledger.Shard
	items []store.Item
}

func byTerms(p *seckill.Product, items []store.Item) []step {
	type terms struct {
		shard          int
		price          int64
		currency, name string
	}
	index := make(map[terms]int)
	var steps []step
	for _, item := range items {
		home := seckill.HomeShard(item.Claim.Buyer, p.Shards)
		key := terms{home, item.PriceCents, item.Currency, item.Name}
		i, ok := index[key]
		if !ok {
			i = len(steps)
			index[key] = i
			steps = append(steps, step{shard: ledger.Shard{Product: p.ID, Group: p.Group, Index: home, Epoch: p.Epoch}})
		}
		steps[i].items = append(steps[i].items, item)
	}
	return steps
}

func (a *Adopter) adopt(ctx context.Context, s step, out *Outcome) error {
	first := &s.items[0]
	claims := make([]seckill.Claim, len(s.items))
	for i := range s.items {
		claims[i] = s.items[i].Claim
	}
	result, err := a.Lanes.Do(ctx, s.shard, ledger.Adopt{
		At: a.Now(), PriceCents: first.PriceCents, Currency: first.Currency, Name: first.Name, Claims: claims,
	})
	if err != nil {
		return err // closed, lost or moved on: again later, under the epoch of then
	}
	if len(result.Verdicts) != len(claims) {
		return fmt.Errorf("ledger gave %d verdicts on %d claims to adopt", len(result.Verdicts), len(claims))
	}
	fault.Point("worker.after_adopt")
	refused := make(map[string][]store.Item)
	for i, item := range s.items {
		if reason := refusal(&result.Verdicts[i], item.Claim.OrderNo); reason != "" {
			refused[reason] = append(refused[reason], item)
			continue
		}
		if item.LetterID != 0 {
			if err := a.Store.CloseLetter(ctx, item.LetterID); err != nil {
				return err
			}
		}
		out.Adopted = append(out.Adopted, item)
	}
	for reason, items := range refused {
		if err := a.Store.Fail(ctx, items, reason); err != nil {
			return err
		}
		for _, item := range items {
			out.Failed = append(out.Failed, Failure{item, reason})
		}
	}
	return nil
}

// refusal is why a claim was not adopted; "" when the ledger's new entry
// carries it on.
func refusal(verdict *ledger.Verdict, no seckill.OrderNo) string {
	switch {
	case verdict.Code == ledger.VerdictAccepted, verdict.Code == ledger.VerdictRepeated && verdict.OrderNo == no:
		return ""
	case verdict.Code == ledger.VerdictRepeated:
		return seckill.ReasonDuplicate
	case verdict.Code == ledger.VerdictOverLimit:
		return seckill.ReasonLimit
	}
	return seckill.ReasonLost
}
