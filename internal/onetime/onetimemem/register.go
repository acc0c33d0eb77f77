// Package onetimemem is a onetime.Register in the memory of one instance.
package onetimemem

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"seckill"
	"seckill/internal/onetime"
)

// capacity bounds the remembered uses. A use takes about 64 bytes, so a full
// register has about 64 MiB. That is five minutes at 3,500 answers per second.
const capacity = 1 << 20

// errFull refuses a use that there is no room to remember. Forgetting another
// use would allow that one again.
var errFull = seckill.Errorf(seckill.CodeTooHot, "too many answers at once")

// Register is a onetime.Register of fixed capacity. It is safe for concurrent use.
type Register struct {
	now      func() time.Time
	capacity int

	mu   sync.Mutex
	uses map[key]onetime.Outcome
	ends ends
}

var _ onetime.Register = (*Register)(nil)

// New makes an empty register.
func New(now func() time.Time) *Register {
	return &Register{now: now, capacity: capacity, uses: make(map[key]onetime.Outcome)}
}

// Spend implements onetime.Register.
func (r *Register) Spend(_ context.Context, id string, until time.Time) (bool, error) {
	_, first, err := r.use(id, 0, until)
	return first, err
}

// Settle implements onetime.Register.
func (r *Register) Settle(_ context.Context, id string, outcome onetime.Outcome, until time.Time) (onetime.Outcome, error) {
	standing, _, err := r.use(id, outcome, until)
	return standing, err
}

func (r *Register) use(id string, outcome onetime.Outcome, until time.Time) (standing onetime.Outcome, first bool, err error) {
	// A digest has a fixed size for any id.
	digest := sha256.Sum256([]byte(id))
	k := key(digest[:])
	now := r.now()
	if soonest := now.Add(onetime.MinLife); until.Before(soonest) {
		until = soonest
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetUntil(now.UnixNano())
	if standing, used := r.uses[k]; used {
		return standing, false, nil
	}
	if len(r.uses) >= r.capacity {
		return 0, false, errFull
	}
	r.uses[k] = outcome
	heap.Push(&r.ends, end{at: until.UnixNano(), key: k})
	return outcome, true, nil
}

// forgetUntil removes the uses that have ended. Each use is removed once, so on
// average a call removes as many as it adds.
func (r *Register) forgetUntil(now int64) {
	for len(r.ends) > 0 && r.ends[0].at <= now {
		delete(r.uses, heap.Pop(&r.ends).(end).key)
	}
}

// key is the first half of a digest, long enough to be unique.
type key [16]byte

// end is the time from which a use may be forgotten.
type end struct {
	at  int64 // Unix nanoseconds
	key key
}

// ends is a heap with the earliest end first.
type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
