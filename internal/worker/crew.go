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

// Crew is the workers of one instance. While one waits for the store, others
// read, decode and acknowledge.
type Crew []*Worker

// NewCrew makes n workers with the same settings. The first keeps the name of
// the settings, the others append a number.
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

// Share divides the rate among the workers of all instances, and reports
// whether their number has changed. Until others are counted, it is at least
// the size of the crew.
func (c Crew) Share(workers int) (changed bool) {
	sharers := int64(max(workers, len(c)))
	for _, w := range c {
		changed = w.sharers.Swap(sharers) != sharers || changed
	}
	return changed
}

// Run runs each worker in its own goroutine, and waits for all.
func (c Crew) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, w := range c {
		running.Go(func() { _ = w.Run(ctx) }) // it fails only when ctx has ended
	}
	running.Wait()
}

// MayBeStored reports whether Worker.MayBeStored is true for any of them.
func (c Crew) MayBeStored(no seckill.OrderNo) bool {
	return slices.ContainsFunc(c, func(w *Worker) bool { return w.MayBeStored(no) })
}
