package sale

import (
	"sync"
	"sync/atomic"
	"time"

	"seckill"
)

const (
	// soldOutLife bounds how stale a sold-out answer may be (I7).
	soldOutLife = time.Second
	// raiseStep is by how much longer a flag has to stand to be raised again:
	// each raising has this instance catch up with the others.
	raiseStep = soldOutLife / 8
)

// flag says that all of a sale is sold. It is raised only when no unit was free,
// and falls by itself.
type flag struct {
	until atomic.Int64 // nanoseconds since flagStart until which it stands

	mu      sync.Mutex // of who raises or lowers it
	lowered time.Time  // when it last was
}

// flagStart anchors the monotonic readings of flags.
var flagStart = time.Now()

// raise raises the flag, by a proof that was asked for at an instant, unless it
// was lowered since: the units that came back were not there yet.
func (f *flag) raise(asked, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if asked.Before(f.lowered) {
		return
	}
	if f.outlasts(until, 0) {
		f.until.Store(int64(until.Sub(flagStart)))
	}
}

func (f *flag) lower() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until.Store(0)
	f.lowered = time.Now()
}

func (f *flag) up() bool {
	until := f.until.Load()
	return until != 0 && int64(time.Since(flagStart)) < until
}

// outlasts reports whether an instant is later, by more than step, than the one
// until which the flag stands.
func (f *flag) outlasts(until time.Time, step time.Duration) bool {
	return !f.up() || int64(until.Sub(flagStart)) > f.until.Load()+int64(step)
}

// MarkSoldOut raises the sold-out flag for the second that follows asked, the
// instant before the ledger was asked and said that no unit is free.
//
// It raises the flag when this instance knows everybody who had bought by
// then, at any instance: the flag turns away whom it does not know, and who
// bought the last unit and asks again must find the order. Others' buyers are
// caught up with, and its own are those of the calls that are under way. Until
// then claims are the ledger's to answer, and if it comes to nothing, the next
// answer tries again.
func (s *Sale) MarkSoldOut(asked time.Time) {
	until := asked.Add(soldOutLife)
	s.empty.raise(asked, until)
	if !s.flag.outlasts(until, raiseStep) {
		return
	}
	s.catalog.CatchUp(s, func() {
		s.calls.after(func() { s.flag.raise(asked, until) })
	})
}

// ClearSoldOut lowers the flag: units have come back. At other instances it
// falls by itself.
func (s *Sale) ClearSoldOut() {
	s.empty.lower()
	s.flag.lower()
}

// SoldOut reports whether the flag stands: whom this instance does not know has
// nothing to find, and may be turned away.
func (s *Sale) SoldOut() bool { return s.flag.up() }

// Empty reports whether no unit was free a moment ago. It is so at once where
// the flag still waits, and says nothing about who has bought.
func (s *Sale) Empty() bool { return s.empty.up() }

// Status is what shoppers see of a product at an instant. The flag alone would
// forget a sold-out sale that nobody asks for; the store's stock remembers it. A
// nil sale, which the catalogue does not have yet, has no flag.
func (s *Sale) Status(terms *seckill.Product, now time.Time) seckill.Status {
	return terms.Status(now, s != nil && s.Empty() || terms.Epoch > 0 && terms.Stock == 0)
}
