// Package transfertest tests protocol 2 on any ledger. Whatever the order of the steps, and
// whichever process dies between them, no unit is lost, doubled, or reported as sold while it
// is not.
package transfertest

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/ledger/transfer"
)

// runs is the number of random histories.
const runs = 15

// Run runs the suite on a ledger that open returns. Each subtest uses its own product.
func Run(t *testing.T, open func(t *testing.T) ledger.Ledger) {
	s := &suite{open: open}
	s.product.Store(1 + rand.Uint32N(1<<31))
	for _, story := range stories() {
		t.Run(story.name, func(t *testing.T) { story.tell(s.fixture(t, story.stock...)) })
	}
	t.Run("random order of steps, with processes that die", func(t *testing.T) {
		for seed := range uint64(runs) {
			play(s.fixture(t, 3, 0, 5, 1), seed)
		}
	})
}

type suite struct {
	open    func(t *testing.T) ledger.Ledger
	product atomic.Uint32
}

// fixture is a product with units on each of its shards.
type fixture struct {
	*testing.T
	ledger ledger.Ledger
	terms  *seckill.Product
	mover  *transfer.Mover // of a live process
}

func (s *suite) fixture(t *testing.T, stock ...int64) *fixture {
	t.Helper()
	id := s.product.Add(1)
	f := &fixture{T: t, ledger: s.open(t), terms: &seckill.Product{ID: id, Group: id, Shards: len(stock), Epoch: 1}}
	for i, units := range stock {
		shard := f.shard(i)
		if _, err := f.ledger.Install(t.Context(), ledger.Allotment{Shard: shard, Available: units, Limit: seckill.MaxPerUserLimit}, nil); err != nil {
			t.Fatal(err)
		}
		if opened, err := f.ledger.Open(t.Context(), shard); err != nil || !opened {
			t.Fatalf("open: %v, %v", opened, err)
		}
	}
	f.mover = transfer.New(f.ledger, newLanes(f.ledger), rand.Uint64)
	return f
}

func (f *fixture) shard(index int) ledger.Shard {
	return ledger.ShardOf(f.terms, index)
}

func (f *fixture) survey() *transfer.Survey {
	f.Helper()
	s, err := f.mover.Survey(context.Background(), f.terms)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// wantAvailable expects these free units on the shards, and none in transit.
func (f *fixture) wantAvailable(want ...int64) {
	f.Helper()
	s := f.survey()
	for i := range s.Shards {
		if got := s.Shards[i].Available; got != want[i] {
			f.Errorf("shard %d has %d units, want %d", i, got, want[i])
		}
		if len(s.Shards[i].Out) != 0 {
			f.Errorf("shard %d has open records %+v", i, s.Shards[i].Out)
		}
	}
}

// lanes has one process's lanes, one per shard.
type lanes struct {
	ledger ledger.Ledger
	lanes  map[ledger.Shard]*ledger.Lane
}

func newLanes(l ledger.Ledger) *lanes {
	return &lanes{ledger: l, lanes: make(map[ledger.Shard]*ledger.Lane)}
}

// Do performs one write. Only one goroutine may call it.
func (l *lanes) Do(ctx context.Context, shard ledger.Shard, write ledger.Write) (ledger.Result, error) {
	lane := l.lanes[shard]
	if lane == nil {
		lane = ledger.NewLane(l.ledger, shard, ledger.LaneOptions{})
		l.lanes[shard] = lane
	}
	return lane.Do(ctx, write)
}
