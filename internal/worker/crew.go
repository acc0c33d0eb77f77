package worker

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/queue"
)

// Crew is the workers of one instance: while one waits for the store, others
// read, decode and acknowledge.
type Crew []*Worker

// NewCrew makes a crew of n workers with the same settings. The first has the
// settings' name, the others a number behind it.
func NewCrew(n int, q queue.Queue, s Store, lanes ledger.Writer, opt Options) Crew {
	crew := make(Crew, n)
	for i := range crew {
		each := opt
		if i > 0 {
			each.Name += "." + strconv.Itoa(i+1)
		}
		crew[i] = New(q, s, lanes, each)
	}
	crew.Share(n)
	return crew
}

// Share divides the rate among so many workers, those of other instances
// included, and reports whether that is another number than before. There are at
// least those of the crew, also before they are counted.
func (c Crew) Share(workers int) (changed bool) {
	sharers := int64(max(workers, len(c)))
	for _, w := range c {
		changed = w.sharers.Swap(sharers) != sharers || changed
	}
	return changed
}

// Run has each of the crew run, in a goroutine of its own, and waits for all.
func (c Crew) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, w := range c {
		running.Go(func() { _ = w.Run(ctx) }) // it fails only when ctx has ended
	}
	running.Wait()
}

// MayBeStored is Worker.MayBeStored for all of them.
func (c Crew) MayBeStored(no seckill.OrderNo) bool {
	return slices.ContainsFunc(c, func(w *Worker) bool { return w.MayBeStored(no) })
}
