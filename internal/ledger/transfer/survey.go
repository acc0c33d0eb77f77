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

// readsAtOnce bounds the shards that a survey reads at a time.
const readsAtOnce = 32

// Survey has the figures of all shards of a product in one epoch, each read once, in any order.
type Survey struct {
	At     time.Time // before the first read
	Shards []ledger.Figures
}

// Free returns the unsold units of the survey, including those in transit: a transfer changes
// no shard's available + sent − received.
func (s *Survey) Free() (units int64) {
	for i := range s.Shards {
		f := &s.Shards[i]
		units += f.Unsold()
	}
	return units
}

// OnShards returns the units that were on shards.
func (s *Survey) OnShards() (units int64) {
	for i := range s.Shards {
		units += s.Shards[i].Available
	}
	return units
}

// Survey reads the shards once. A shard that is closed or has another epoch gives
// ledger.ErrClosed or an *ledger.EpochError, like a lane. After an error the survey has the
// shards that could be read, and the others are empty: it can be used to bring units, but it
// proves nothing.
func (m *Mover) Survey(ctx context.Context, p *seckill.Product) (*Survey, error) {
	s := &Survey{At: time.Now(), Shards: make([]ledger.Figures, p.Shards)}
	return s, m.read(ctx, p, s.Shards, 0)
}

// Prove reports whether at some instant since first.At at most first.Free units were unsold, on
// shards and in transit together. One survey does not prove it: units may have returned to a
// shard after it was read, and been sold from one before it was read. A second survey proves it
// if it shows that nothing returned in between.
//
// Units return by releases, which each shard counts, and by stock changes, which happen at
// shard 0 and change its allotment. A change up followed by an equal change down leaves no
// trace there. So the second survey reads shard 0 before the others: at that instant shard 0
// had no more than in the first survey.
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

// read fills figures with the shards from first on.
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
