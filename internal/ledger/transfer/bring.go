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
	last  uint64 // number of its last transfer to the receiver
	tie   uint64
}

// Bring takes units to a shard until it has want of them, by what a survey
// showed. It returns how many the shard has free; that may be fewer, and
// another survey may then show more.
//
// First it finishes what is open towards the shard, then it takes from the
// richest: half of what is there, so that neither comes back for every unit,
// but no less than is missing. When that is not enough because the rest is in
// transit to other shards, it finishes those transfers: whoever began them may
// be dead.
func (m *Mover) Bring(ctx context.Context, p *seckill.Product, seen *Survey, to int, want int64) (have int64, err error) {
	if seen.Shards[to].Epoch != p.Epoch {
		return 0, nil // not seen: what is sent there may stay in transit
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

// donors are the shards with free units, richest first. Among equals chance
// decides: or many receivers would all turn to the same.
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

// finishAll finishes every transfer that a survey showed open.
func (m *Mover) finishAll(ctx context.Context, p *seckill.Product, seen *Survey) error {
	var errs []error // one pair's trouble must not hold up another's
	for from := range seen.Shards {
		for _, record := range seen.Shards[from].Out {
			if _, err := m.finish(ctx, p, from, record); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Finish finishes what is open now between the shards of a product.
func (m *Mover) Finish(ctx context.Context, p *seckill.Product) error {
	seen, err := m.Survey(ctx, p)
	if err != nil {
		return err
	}
	return m.finishAll(ctx, p, seen)
}

const (
	// gatherTries bounds how often Gather looks again for units that others
	// took, or that were on their way.
	gatherTries = 10
	gatherPause = 10 * time.Millisecond
)

// Gather brings units to a shard, looking again as long as there are some. It
// returns how many the shard has free, and whether those missing are proven not
// to be there: otherwise they may be in transit, or just returned.
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
