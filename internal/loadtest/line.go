package loadtest

import (
	"container/heap"
	"sync"
	"time"
)

// call is one request that is to be sent.
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
	every  time.Duration // between two first calls; 0 is all at once
	buyers int
	next   int // the buyer who has not called yet
	later  laterHeap
}

func newLine(start time.Time, buyers int, rate float64) *line {
	l := &line{start: start, buyers: buyers}
	if rate > 0 {
		l.every = time.Duration(float64(time.Second) / rate)
	}
	return l
}

// take is the call to send next; its caller waits until it is due. A call that
// waits for its retry goes before a new buyer once it is due, or a long crowd
// would starve it. It reports false when nothing is left: what others still
// have in hand may come back, but to themselves.
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

// put gives a call back for later.
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

// backoff is how long a polite client waits before its next try: twice as long
// each time, spread over half of it by random (0 to 1), and never less than
// the server asked for.
func backoff(try int, asked time.Duration, random float64) time.Duration {
	wait := backoffMost
	if try < 6 { // 50 ms · 2⁶ is above the bound
		wait = min(backoffBase<<try, backoffMost)
	}
	spread := time.Duration(random * float64(wait) / 2)
	return max(wait/2, asked) + spread
}
