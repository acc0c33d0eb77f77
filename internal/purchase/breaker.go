package purchase

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"seckill/internal/ledger"
	"seckill/internal/sale"
)

const (
	// silences is how many calls in a row may stay unanswered until a shard counts
	// as down: one on each of its two lanes, or a call and the ask after it.
	silences = 2
	// maxAskBackoff bounds the pause between the asks of a silent lane, and so the
	// time until a ledger that is back is noticed.
	maxAskBackoff = 250 * time.Millisecond
)

// breaker is open while a shard of the ledger does not answer. Then new claims are
// refused at once, waiting claims are answered, and the lanes keep asking (by protocol
// 1 they ask before they write anyway). The first answer on any lane closes it.
type breaker struct {
	silent atomic.Int32 // calls without answer since the last answer
	open   atomic.Bool

	mu  sync.Mutex
	now atomic.Pointer[lease] // its context ends when the breaker opens
}

// lease is the time until the breaker opens next. Waits for the ledger end with its
// context.
type lease struct {
	ctx context.Context
	end context.CancelFunc
}

// heard records whether a call was answered.
func (b *breaker) heard(answered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case answered && b.open.Load():
		b.close()
	case answered:
		b.silent.Store(0)
	case b.silent.Add(1) >= silences && !b.open.Load():
		b.open.Store(true)
		b.now.Load().end()
	}
}

func (b *breaker) close() {
	ctx, end := context.WithCancel(context.Background())
	b.now.Store(&lease{ctx, end})
	b.silent.Store(0)
	b.open.Store(false)
}

// listen asks on a lane until the ledger answers or the group stops.
func (b *batcher) listen(lane *ledger.Lane) {
	if err := lane.Probe(b.group.ctx); sale.LaneFinished(err) {
		b.fail(err)
	}
}

// Silent returns the number of shards of open sales that do not answer this instance.
func (s *Stage) Silent() int {
	silent := 0
	for _, g := range s.openGroups() {
		for _, b := range g.batchers {
			if b.breaker.open.Load() {
				silent++
			}
		}
	}
	return silent
}
