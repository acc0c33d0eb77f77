package loadtest

import (
	"container/heap"
	"sync"
	"time"
)

// call is a request to send.
type call struct {
	buyer  int
	try    int // 0 is the first
	repeat bool
	due    time.Time
}

// line hands out the calls of a crowd: each buyer's first one by the schedule,
// retries and repeats when they are due. It holds at most one call per buyer.
type line struct {
	mu     sync.Mutex
	start  time.Time
	every  time.Duration // interval between first calls; 0 sends all at once
	buyers int
	next   int // next buyer without a first call
	later  laterHeap
}

func newLine(start time.Time, buyers int, rate float64) *line {
	l := &line{start: start, buyers: buyers}
	if rate > 0 {
		l.every = time.Duration(float64(time.Second) / rate)
	}
	return l
}

// take returns the next call. The caller waits until it is due. A due retry goes
// before a new buyer, because otherwise a long crowd would starve it. take returns
// false if nothing is left. Calls that other goroutines still hold may be put back;
// those goroutines take them again.
func (l *line) take(now time.Time) (call, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := call{buyer: l.next, due: l.start.Add(time.Duration(l.next) * l.every)}
	switch {
	case len(l.later) == 0 && l.next == l.buyers:
		return call{}, false
	case len(l.later) == 0:
	case l.next == l.buyers || !l.later[0].due.After(now) || l.later[0].due.Before(first.due):
		return heap.Pop(&l.later).(call), true
	}
	l.next++
	return first, true
}

// put queues a call for later.
func (l *line) put(c call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	heap.Push(&l.later, c)
}

type laterHeap []call

func (h laterHeap) Len() int           { return len(h) }
func (h laterHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h laterHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *laterHeap) Push(x any)        { *h = append(*h, x.(call)) }
func (h *laterHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

const (
	backoffBase = 50 * time.Millisecond
	backoffMost = 2 * time.Second
)

// backoff returns the wait before the next try: doubled each time, with jitter by
// random (0 to 1), and never less than the server asked for.
func backoff(try int, asked time.Duration, random float64) time.Duration {
	wait := backoffMost
	if try < 6 { // 50 ms · 2⁶ is above the bound
		wait = min(backoffBase<<try, backoffMost)
	}
	spread := time.Duration(random * float64(wait) / 2)
	return max(wait/2, asked) + spread
}
