package transfer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// donor is a shard that may give units.
type donor struct {
	index int
	free  int64
	last  uint64 // number of its last debit towards the receiver
	tie   uint64
}

// Bring moves units to a shard until it has want of them, according to a survey. It returns the
// shard's free units. If they are fewer, another survey may show more.
//
// First it finishes transfers that are open towards the shard. Then it takes from the shard
// with the most units: half of them, so that neither shard needs the next transfer soon, but no
// less than is missing. If that is not enough, it finishes open transfers to other shards,
// because the processes that began them may be dead.
func (m *Mover) Bring(ctx context.Context, p *seckill.Product, seen *Survey, to int, want int64) (have int64, err error) {
	if seen.Shards[to].Epoch != p.Epoch {
		return 0, nil // not surveyed: units that are sent there may stay in transit
	}
	have = seen.Shards[to].Available
	for from := range seen.Shards {
		for _, record := range seen.Shards[from].Out {
			if record.Peer != to {
				continue
			}
			if have, err = m.finish(ctx, p, from, record); err != nil {
				return have, err
			}
		}
	}
	for _, d := range m.donors(seen, to) {
		if have >= want {
			return have, nil
		}
		free, moved, err := m.move(ctx, p, d.index, to, d.last, max(want-have, (d.free+1)/2))
		if moved {
			have = free
		}
		if err != nil {
			return have, err
		}
	}
	if have < want && seen.OnShards() < want {
		return have, m.finishAll(ctx, p, seen)
	}
	return have, nil
}

// donors returns the shards with free units, most units first. Equal ones are in random order,
// so that not all receivers turn to the same shard.
func (m *Mover) donors(seen *Survey, to int) []donor {
	var donors []donor
	for i := range seen.Shards {
		f := &seen.Shards[i]
		if i == to || f.Available == 0 {
			continue
		}
		d := donor{index: i, free: f.Available, tie: m.random()}
		if at := slices.IndexFunc(f.LastOut, func(t ledger.Transfer) bool { return t.Peer == to }); at >= 0 {
			d.last = f.LastOut[at].N
		}
		donors = append(donors, d)
	}
	slices.SortFunc(donors, func(a, b donor) int { return cmp.Or(cmp.Compare(b.free, a.free), cmp.Compare(a.tie, b.tie)) })
	return donors
}

// finishAll finishes every transfer that a survey showed as open.
func (m *Mover) finishAll(ctx context.Context, p *seckill.Product, seen *Survey) error {
	var errs []error // an error of one pair must not stop the others
	for from := range seen.Shards {
		for _, record := range seen.Shards[from].Out {
			if _, err := m.finish(ctx, p, from, record); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Finish finishes the open transfers between the shards of a product.
func (m *Mover) Finish(ctx context.Context, p *seckill.Product) error {
	seen, err := m.Survey(ctx, p)
	if err != nil {
		return err
	}
	return m.finishAll(ctx, p, seen)
}

const (
	// gatherTries bounds how often Gather surveys again, for units that other shards took or
	// that were in transit.
	gatherTries = 10
	gatherPause = 10 * time.Millisecond
)

// Gather brings units to a shard, and surveys again while there are some. It returns the
// shard's free units, and whether it is proven that no more exist. Otherwise the missing units
// may be in transit or just returned.
func (m *Mover) Gather(ctx context.Context, p *seckill.Product, to int, want int64) (have int64, none bool, err error) {
	pause := time.NewTicker(gatherPause)
	defer pause.Stop()
	for range gatherTries {
		seen, err := m.Survey(ctx, p)
		if err != nil {
			return have, false, err
		}
		if seen.Free() < want {
			if none, err := m.Prove(ctx, p, seen); none || err != nil {
				return seen.Shards[to].Available, none, err
			}
		}
		if have, err = m.Bring(ctx, p, seen, to, want); err != nil || have >= want {
			return have, false, err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return have, false, ctx.Err()
		}
	}
	return have, false, nil
}
