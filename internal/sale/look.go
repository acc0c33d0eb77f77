package sale

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

const (
	// shardsAtOnce is how many shards of one product are read or built side by
	// side. What holds one up mostly holds up those of the same server only.
	shardsAtOnce = 8
	// lookDeadline bounds reading a product's shards. A recovery may take minutes
	// and must not spend them on a ledger that is away: others wait for its place.
	lookDeadline = 3 * time.Second
)

// eachShard runs do for every shard of a product that has a ledger, some at
// once, and returns all errors.
func eachShard(p *seckill.Product, do func(shard ledger.Shard) error) error {
	return each(shardsAtOnce, shardsOf(p), do)
}

// each runs do for everything, some at once, and returns all errors.
func each[T any](atOnce int, all []T, do func(T) error) error {
	errs := make([]error, len(all))
	places := make(chan struct{}, atOnce)
	var working sync.WaitGroup
	for i, one := range all {
		places <- struct{}{}
		working.Go(func() {
			defer func() { <-places }()
			errs[i] = do(one)
		})
	}
	working.Wait()
	return errors.Join(errs...)
}

// shardsOf are the shards that sell a product.
func shardsOf(p *seckill.Product) []ledger.Shard { return allShards(p)[:p.LedgerShards()] }

// allShards are a product's shards, also while the store sells it: instructions wait
// there.
func allShards(p *seckill.Product) []ledger.Shard {
	shards := make([]ledger.Shard, p.Shards)
	for i := range shards {
		shards[i] = ledger.ShardOf(p, i)
	}
	return shards
}

// read reads every shard of a product.
func (d *Lifecycle) read(ctx context.Context, p *seckill.Product) ([]ledger.Figures, error) {
	figures := make([]ledger.Figures, p.LedgerShards())
	err := eachShard(p, func(shard ledger.Shard) (err error) {
		figures[shard.Index], err = d.ledger.Read(ctx, shard)
		return err
	})
	if err != nil {
		return nil, seckill.Errorf(seckill.CodeBusy, "read ledger: %w", err)
	}
	return figures, nil
}

// seen is what a look at a product's ledger showed.
type seen struct {
	live bool // every shard is what the store says, and open
	told bool // every shard has the sale's state
}

// look reports whether every shard is open at the store's epoch, adds up, has the
// product's limit, and misses no entry. Anything else is a loss, and there is one
// answer to a loss: the product is rebuilt. A direct product has none that could
// be lost.
func (d *Lifecycle) look(ctx context.Context, p *seckill.Product) (seen, error) {
	if p.HasLedger() && p.SoldByStore() {
		return seen{live: true, told: true}, nil // its return ends a takeover, not this
	}
	if p.Rebuilding {
		return seen{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookDeadline)
	defer cancel()
	figures, err := d.read(ctx, p)
	if err != nil {
		return seen{}, err
	}
	s := seen{live: true, told: true}
	for i := range figures {
		f := &figures[i]
		d.noteInstruction(p.ID, f)
		s.live = s.live && f.Epoch == p.Epoch && f.Open && f.Limit == p.PerUserLimit && f.Balanced()
		s.told = s.told && f.State == p.State
	}
	if s.live {
		s.live, err = d.intact(ctx, p)
	}
	return s, err
}

// live is look, for those who want to know no more.
func (d *Lifecycle) live(ctx context.Context, p *seckill.Product) (bool, error) {
	s, err := d.look(ctx, p)
	return s.live, err
}

// intact reports whether no shard misses an entry.
func (d *Lifecycle) intact(ctx context.Context, p *seckill.Product) (bool, error) {
	var missing atomic.Bool
	err := eachShard(p, func(shard ledger.Shard) error {
		intact, err := d.ledger.Intact(ctx, shard)
		if err != nil {
			return seckill.Errorf(seckill.CodeBusy, "look at the ledger: %w", err)
		}
		if !intact {
			d.log.Warn("a shard waits for an entry that is gone, or that no worker is given", "product", p.ID, "shard", shard.Index)
			missing.Store(true)
		}
		return nil
	})
	return err == nil && !missing.Load(), err
}

// highestEpoch is the highest that a shard of the product has.
func (d *Lifecycle) highestEpoch(ctx context.Context, p *seckill.Product) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, lookDeadline)
	defer cancel()
	figures, err := d.read(ctx, p)
	if err != nil {
		return 0, err
	}
	var highest uint64
	for i := range figures {
		highest = max(highest, figures[i].Epoch)
	}
	return highest, nil
}
