package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// readsAtOnce bounds the shards that one pass reads at a time.
const readsAtOnce = 32

// Survey is one pass over the shards of a product at one epoch: each read once,
// in any order.
type Survey struct {
	At     time.Time // the instant before the first reading
	Shards []ledger.Figures
}

// Free is how many units the pass showed unsold, those in transit included: a
// transfer changes no shard's available + sent − received.
func (s *Survey) Free() (units int64) {
	for i := range s.Shards {
		f := &s.Shards[i]
		units += f.Unsold()
	}
	return units
}

// OnShards is how many units the pass showed on shards.
func (s *Survey) OnShards() (units int64) {
	for i := range s.Shards {
		units += s.Shards[i].Available
	}
	return units
}

// Survey reads the shards once. A shard that is closed or of another epoch is
// an error, as a lane would find it: ledger.ErrClosed, *ledger.EpochError. With
// an error the survey shows the shards that could be read, and the others as
// empty: units may be brought by it, and nothing proven.
func (m *Mover) Survey(ctx context.Context, p *seckill.Product) (*Survey, error) {
	s := &Survey{At: time.Now(), Shards: make([]ledger.Figures, p.Shards)}
	return s, m.read(ctx, p, s.Shards, 0)
}

// Prove reports whether at some instant since first.At no more than first.Free
// units were unsold, and nowhere in transit. One pass does not tell: units may
// have been returned to a shard behind it, and sold from one before it. It is
// proven by a second pass that shows nothing returned since.
//
// Units come back by releases, which each shard counts, and by stock changes,
// which happen at shard 0 and show in what is allotted. A change up that one
// down has undone leaves no trace there, so the second pass reads shard 0
// before the others: at that instant it had no more than in the first.
func (m *Mover) Prove(ctx context.Context, p *seckill.Product, first *Survey) (bool, error) {
	second := make([]ledger.Figures, len(first.Shards))
	if err := m.read(ctx, p, second[:1], 0); err != nil {
		return false, err
	}
	if err := m.read(ctx, p, second[1:], 1); err != nil {
		return false, err
	}
	for i := range second {
		then, now := &first.Shards[i], &second[i]
		if now.Releases != then.Releases || now.Allotted != then.Allotted {
			return false, nil
		}
	}
	return true, nil
}

// read fills figures with the shards from the first on.
func (m *Mover) read(ctx context.Context, p *seckill.Product, figures []ledger.Figures, first int) error {
	errs := make([]error, len(figures))
	places := make(chan struct{}, readsAtOnce)
	var reading sync.WaitGroup
	for i := range figures {
		places <- struct{}{}
		reading.Go(func() {
			defer func() { <-places }()
			figures[i], errs[i] = m.readShard(ctx, ledger.ShardOf(p, first+i))
		})
	}
	reading.Wait()
	return errors.Join(errs...)
}

func (m *Mover) readShard(ctx context.Context, shard ledger.Shard) (ledger.Figures, error) {
	f, err := m.shards.Read(ctx, shard)
	switch {
	case err != nil:
		return ledger.Figures{}, fmt.Errorf("read shard %d: %w", shard.Index, err)
	case f.Epoch != shard.Epoch:
		return ledger.Figures{}, fmt.Errorf("read shard %d: %w", shard.Index, &ledger.EpochError{Epoch: f.Epoch})
	case !f.Open:
		return ledger.Figures{}, fmt.Errorf("read shard %d: %w", shard.Index, ledger.ErrClosed)
	}
	return f, nil
}
