package recovery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"seckill"
	"seckill/internal/fault"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

// An adoption reserves a promise of an older epoch again, under its old order
// number, or fails it explicitly (protocol 3). The worker that meets the entry may
// adopt it, and so may the instance that remembers the answer. Both at once is safe.

// AdoptionStore is the part of the store that an adoption uses.
type AdoptionStore interface {
	Product(ctx context.Context, id uint32) (seckill.Product, error)
	Fail(ctx context.Context, items []store.Item, reason string) error
	CloseLetter(ctx context.Context, id int64, epoch uint64) error
	Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error)
}

// Gatherer brings units of a product to one shard. It returns how many are free
// there. none means: it is proven that the missing units do not exist.
type Gatherer interface {
	Gather(ctx context.Context, p *seckill.Product, to int, want int64) (have int64, none bool, err error)
}

// Adopter adopts promises.
type Adopter struct {
	Store AdoptionStore
	Lanes ledger.Writer
	Now   func() time.Time // the clock of the ledger
	// Gatherer is needed for products with several shards. A new epoch spreads
	// the units evenly, but the home shards of old promises are not spread
	// evenly.
	Gatherer Gatherer
	// ExpireAfter is the time to pay of orders that are written while the store
	// is the seller.
	ExpireAfter time.Duration
}

// Outcome lists the settled claims, in no order. Claims in neither list are
// unsettled, and the error says why.
type Outcome struct {
	Epoch   uint64          // the epoch that adopted them
	Adopted []store.Item    // an entry of that epoch has them, or they are written
	Failed  []FailedPromise // they are written as failed orders
}

// Adopt settles claims of one product. A promise never ends as nothing (I4).
// After an error, call it again with the same claims.
func (a *Adopter) Adopt(ctx context.Context, items []store.Item) (Outcome, error) {
	if len(items) == 0 {
		return Outcome{}, nil
	}
	product, err := a.Store.Product(ctx, items[0].ProductID)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Epoch: product.Epoch}
	if product.SoldByStore() {
		err := a.write(ctx, items, &out)
		return out, err
	}
	for _, s := range steps(&product, items) {
		for len(s.items) > 0 { // every step decides its first claim
			short, undecided, err := a.adopt(ctx, s, &out)
			if err == nil {
				err = a.adoptShort(ctx, &product, s.shard, short, &out)
			}
			if err != nil {
				return out, err
			}
			s.items = undecided
		}
	}
	return out, nil
}

// write lets the store decide while it is the seller (protocol 5, rule 9). If
// the store cannot write a claim, the others are still written.
func (a *Adopter) write(ctx context.Context, items []store.Item, out *Outcome) error {
	endsAll := func(err error) bool { return store.EndsAll(ctx, err) }
	return store.ByHalves(items, endsAll, func(items []store.Item) error {
		outcomes, err := a.Store.Confirm(ctx, store.ConfirmRequest{ProductID: items[0].ProductID, Items: items, ExpireAfter: a.ExpireAfter})
		for i, outcome := range outcomes {
			switch reason := outcome.FailedFor(); {
			case outcome == store.ConfirmOldEpoch:
				err = fmt.Errorf("%w: the product has returned to the ledger", store.ErrEpoch)
			case reason != "":
				out.Failed = append(out.Failed, FailedPromise{Item: items[i], Reason: reason})
			default:
				out.Adopted = append(out.Adopted, items[i])
			}
		}
		return err
	})
}

// step holds claims that one ledger step can adopt: of one shard, promised on
// the same terms, at most MaxClaims.
type step struct {
	shard ledger.Shard
	items []store.Item
}

func steps(p *seckill.Product, items []store.Item) []step {
	type terms struct {
		shard          int
		price          int64
		currency, name string
	}
	index := make(map[terms]int)
	var alike []step
	for _, item := range items {
		home := seckill.HomeShard(p, item.Claim.Buyer)
		key := terms{home, item.PriceCents, item.Currency, item.Name}
		i, ok := index[key]
		if !ok {
			i = len(alike)
			index[key] = i
			alike = append(alike, step{shard: ledger.ShardOf(p, home)})
		}
		alike[i].items = append(alike[i].items, item)
	}
	var bounded []step
	for _, s := range alike {
		for some := range slices.Chunk(s.items, ledger.MaxClaims) {
			bounded = append(bounded, step{s.shard, some})
		}
	}
	return bounded
}

// adopt makes one ledger step and records its outcome. It returns the claims
// for which the shard has no units, and the claims that the ledger left
// undecided.
func (a *Adopter) adopt(ctx context.Context, s step, out *Outcome) (short, undecided []store.Item, err error) {
	first := &s.items[0]
	claims := make([]seckill.Claim, len(s.items))
	for i := range s.items {
		claims[i] = s.items[i].Claim
	}
	result, err := a.Lanes.Do(ctx, s.shard, ledger.Adopt{
		At: a.Now(), PriceCents: first.PriceCents, Currency: first.Currency, Name: first.Name, Claims: claims,
	})
	if err != nil {
		return nil, nil, err // closed, lost or a newer epoch: try later, under the epoch of then
	}
	if len(result.Verdicts) != len(claims) {
		return nil, nil, fmt.Errorf("ledger gave %d verdicts on %d claims to adopt", len(result.Verdicts), len(claims))
	}
	if result.Verdicts[0].Code == ledger.VerdictUndecided {
		return nil, nil, fmt.Errorf("ledger decided nothing of %d claims to adopt", len(claims))
	}
	fault.Point("worker.after_adopt")
	refused := make(map[string][]store.Item)
	for i, item := range s.items {
		if result.Verdicts[i].Code == ledger.VerdictUndecided {
			undecided = append(undecided, item)
			continue
		}
		switch reason := refusal(&result.Verdicts[i], item.Claim.OrderNo); reason {
		case "":
			if item.LetterID != 0 {
				if err := a.Store.CloseLetter(ctx, item.LetterID, item.Epoch); err != nil {
					return nil, nil, err
				}
			}
			out.Adopted = append(out.Adopted, item)
		case seckill.ReasonLost:
			short = append(short, item)
		default:
			refused[reason] = append(refused[reason], item)
		}
	}
	for reason, items := range refused {
		if err := a.fail(ctx, items, reason, out); err != nil {
			return nil, nil, err
		}
	}
	return short, undecided, nil
}

func (a *Adopter) fail(ctx context.Context, items []store.Item, reason string, out *Outcome) error {
	if err := a.Store.Fail(ctx, items, reason); err != nil {
		return err
	}
	for _, item := range items {
		out.Failed = append(out.Failed, FailedPromise{Item: item, Reason: reason})
	}
	return nil
}

// adoptShort settles claims for which their shard has no units. If the product
// has one shard, they are lost. Otherwise a claim is lost only if it is proven
// that no other shard has units.
func (a *Adopter) adoptShort(ctx context.Context, p *seckill.Product, shard ledger.Shard, short []store.Item, out *Outcome) error {
	if len(short) == 0 {
		return nil
	}
	if p.Shards == 1 {
		return a.fail(ctx, short, seckill.ReasonLost, out)
	}
	for _, item := range short {
		have, none, err := a.Gatherer.Gather(ctx, p, shard.Index, int64(item.Claim.Quantity))
		if err != nil {
			return fmt.Errorf("gather units to adopt: %w", err)
		}
		one := []store.Item{item}
		if none {
			if err := a.fail(ctx, one, seckill.ReasonLost, out); err != nil {
				return err
			}
			continue
		}
		left, _, err := a.adopt(ctx, step{shard: shard, items: one}, out)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return fmt.Errorf("adopt %s: %d units are on their way or were taken, %d came", item.Claim.OrderNo, item.Claim.Quantity, have)
		}
	}
	return nil
}

// refusal returns why a claim was not adopted, or "" if a new entry of the
// ledger has it.
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
