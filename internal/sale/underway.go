package sale

import (
	"slices"
	"sync"
)

// underway are the calls of this instance that may be selling at this moment,
// to buyers whom it will know when they end. The zero underway has none.
type underway struct {
	mu   sync.Mutex
	last uint64   // begun
	open []uint64 // rising; as many as there are lanes and tills
	// waiting is to be done when all calls up to until have ended; or nil.
	waiting func()
	until   uint64
}

// Begin says that a call begins which may sell, and gives the number under which
// it ends.
func (u *underway) Begin() (call uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last++
	u.open = append(u.open, u.last)
	return u.last
}

// End says that everybody is remembered to whom the call may have sold.
func (u *underway) End(call uint64) {
	u.mu.Lock()
	if i := slices.Index(u.open, call); i >= 0 {
		u.open = slices.Delete(u.open, i, i+1)
	}
	var do func()
	if u.waiting != nil && (len(u.open) == 0 || u.open[0] > u.until) {
		do, u.waiting = u.waiting, nil
	}
	u.mu.Unlock()
	if do != nil {
		do()
	}
}

// after does something when every call has ended that is under way now: at once
// if there is none. One thing waits at a time; what comes meanwhile is dropped,
// because it would be the same, later.
func (u *underway) after(do func()) {
	u.mu.Lock()
	if len(u.open) > 0 {
		if u.waiting == nil {
			u.waiting, u.until = do, u.last
		}
		u.mu.Unlock()
		return
	}
	u.mu.Unlock()
	do()
}
