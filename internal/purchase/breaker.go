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
	// silences is how many calls in a row go unanswered before a shard counts as
	// down: the two of its lanes under load, or a call and the ask after it.
	silences = 2
	// maxAskBackoff bounds the pause between the asks of a lane that hears
	// nothing, and with it how long a ledger has been back before it is noticed.
	maxAskBackoff = 250 * time.Millisecond
)

// breaker is open while a shard of the ledger does not answer. Then claims are
// refused at once, those that wait are answered, and the lanes go on asking
// (protocol 1 has them ask before they write in any case); the first answer
// that any of them hears closes it.
type breaker struct {
	silent atomic.Int32 // calls without answer since the last answer
	open   atomic.Bool

	mu  sync.Mutex
	now atomic.Pointer[lease] // its context ends when the breaker opens
}

// lease is the time between two openings; what waits for the ledger waits no
// longer than its context.
type lease struct {
	ctx context.Context
	end context.CancelFunc
}

// heard takes whether a call was answered.
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

// Silent is how many shards of open sales do not answer, as far as this
// instance has asked.
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
