package sale

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	errs := make([]error, p.LedgerShards())
	places := make(chan struct{}, shardsAtOnce)
	var working sync.WaitGroup
	for i := range errs {
		places <- struct{}{}
		working.Go(func() {
			defer func() { <-places }()
			errs[i] = do(ledger.ShardOf(p, i))
		})
	}
	working.Wait()
	return errors.Join(errs...)
}

// shardsOf are a product's shards.
func shardsOf(p *seckill.Product) []ledger.Shard {
	shards := make([]ledger.Shard, p.LedgerShards())
	for i := range shards {
		shards[i] = ledger.ShardOf(p, i)
	}
	return shards
}

// read reads every shard of a product.
func (d *Desk) read(ctx context.Context, p *seckill.Product) ([]ledger.Figures, error) {
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

// look reports whether every shard is open at the store's epoch and under the
// product's limit, which the first preheat has fixed: another one was written
// by hand. A direct product has none that could be lost.
func (d *Desk) look(ctx context.Context, p *seckill.Product) (seen, error) {
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
		s.live = s.live && f.Epoch == p.Epoch && f.Open && f.Limit == p.PerUserLimit
		s.told = s.told && f.State == p.State
	}
	if s.live {
		s.live, err = d.allSound(ctx, p) // who rebuilds it tells of the damage
	}
	return s, err
}

// live is look, for those who want to know no more.
func (d *Desk) live(ctx context.Context, p *seckill.Product) (bool, error) {
	s, err := d.look(ctx, p)
	return s.live, err
}

// allSound reports whether every shard is kept in what the ledger wrote, as far
// as that can be told.
func (d *Desk) allSound(ctx context.Context, p *seckill.Product) (bool, error) {
	err := eachShard(p, func(shard ledger.Shard) error { return d.sound(ctx, shard) })
	if errors.Is(err, ledger.ErrDamaged) {
		return false, nil
	}
	return err == nil, err
}

// sound is ErrDamaged of a shard that is kept in what no ledger wrote.
func (d *Desk) sound(ctx context.Context, shard ledger.Shard) error {
	inspecting, ok := d.ledger.(ledger.Inspecting)
	if !ok {
		return nil
	}
	sound, err := inspecting.Sound(ctx, shard)
	if err != nil {
		return seckill.Errorf(seckill.CodeBusy, "look at the ledger: %w", err)
	}
	if !sound {
		return fmt.Errorf("%w: something else is in the place of shard %d", ledger.ErrDamaged, shard.Index)
	}
	return nil
}

// tellDamage tells when a ledger that is about to be rebuilt holds what no
// ledger wrote. Every rebuild asks: whoever came first may have seen no more
// than a shard of another epoch. One that cannot be asked is not said to be
// damaged.
func (d *Desk) tellDamage(ctx context.Context, p *seckill.Product) {
	ctx, cancel := context.WithTimeout(ctx, lookDeadline)
	defer cancel()
	for i := range p.LedgerShards() {
		if err := d.sound(ctx, ledger.ShardOf(p, i)); errors.Is(err, ledger.ErrDamaged) {
			d.damaged(p.ID, err)
			return
		}
	}
}

// highestEpoch is the highest that a shard of the product has. What no ledger
// wrote is left to Install, which goes over it.
func (d *Desk) highestEpoch(ctx context.Context, p *seckill.Product) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, lookDeadline)
	defer cancel()
	figures, err := d.read(ctx, p)
	if err != nil {
		return 0, err
	}
	highest, most := uint64(0), p.Epoch+1+ledger.MaxEpochLead
	for i := range figures {
		if epoch := figures[i].Epoch; epoch <= most {
			highest = max(highest, epoch)
		}
	}
	return highest, nil
}
