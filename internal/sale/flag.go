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
	// heardLife is the same for what another instance was told. How long its
	// word was on the way is known by the ledger's clock only, which two
	// instances may know differently by as much as is kept back here.
	heardLife = soldOutLife / 2
	// heardAhead is how far in the future another's word may seem to be before
	// the two clocks are not to be compared.
	heardAhead = 50 * time.Millisecond
	// tellEvery is how often a flag that is raised again and again is told to
	// others: often enough that theirs does not fall in between.
	tellEvery = heardLife / 4
	// raiseStep is by how much longer a flag has to stand to be raised again:
	// each raising has this instance catch up with the others.
	raiseStep = tellEvery
)

// flag says that all of a sale is sold. It is raised only when no unit was free,
// and falls by itself.
type flag struct {
	until atomic.Int64 // nanoseconds since flagStart until which it stands
	told  atomic.Int64 // when others were last told

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

// news reports whether others should be told now that nothing is free.
func (f *flag) news() bool {
	now, told := int64(time.Since(flagStart)), f.told.Load()
	return (told == 0 || now-told >= int64(tellEvery)) && f.told.CompareAndSwap(told, now)
}

// RaiseSoldOut raises the sold-out flag for the second that follows asked, the
// instant before the ledger was asked and said that no unit is free.
func (s *Sale) RaiseSoldOut(asked time.Time) {
	if s.flag.news() {
		s.catalog.Peers.SoldOut(s.ID, asked)
	}
	s.raise(asked, soldOutLife)
}

// HearSoldOut raises the flag on another instance's word: age is how long ago,
// by the ledger's clock, that instance asked.
func (s *Sale) HearSoldOut(age time.Duration) {
	if age < -heardAhead || age >= heardLife {
		return
	}
	s.raise(time.Now().Add(-max(0, age)), heardLife)
}

// raise raises the flag when this instance knows everybody who had bought by
// then, at any instance: the flag turns away whom it does not know, and who
// bought the last unit and asks again must find the order. Others' buyers are
// caught up with, and its own are those of the calls that are under way. Until
// then claims are the ledger's to answer, and if it comes to nothing, the next
// answer tries again.
func (s *Sale) raise(asked time.Time, life time.Duration) {
	until := asked.Add(life)
	s.empty.raise(asked, until)
	if !s.flag.outlasts(until, raiseStep) {
		return
	}
	s.catalog.Peers.CatchUp(s, func() {
		s.after(func() { s.flag.raise(asked, until) })
	})
}

// ClearSoldOut lowers the flag: units have come back.
func (s *Sale) ClearSoldOut() {
	s.lower()
	s.flag.told.Store(0) // the next time it is raised is news
	s.catalog.Peers.UnitsBack(s.ID)
}

// HearUnitsBack lowers the flag on another instance's word.
func (s *Sale) HearUnitsBack() { s.lower() }

func (s *Sale) lower() {
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
