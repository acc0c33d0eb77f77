package sale

import (
	"sync/atomic"
	"time"
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
)

// flag is the sold-out flag of one sale. It is raised only when no unit was
// free, and falls by itself.
type flag struct {
	until atomic.Int64 // nanoseconds since flagStart until which it stands
	told  atomic.Int64 // when others were last told
}

// flagStart anchors the monotonic readings of flags.
var flagStart = time.Now()

func (f *flag) raise(until time.Time) { f.until.Store(int64(until.Sub(flagStart))) }

func (f *flag) lower() { f.until.Store(0) }

func (f *flag) up() bool {
	until := f.until.Load()
	return until != 0 && int64(time.Since(flagStart)) < until
}

// news reports whether others should be told now that it was raised.
func (f *flag) news() bool {
	now, told := int64(time.Since(flagStart)), f.told.Load()
	return (told == 0 || now-told >= int64(tellEvery)) && f.told.CompareAndSwap(told, now)
}

// MarkSoldOut raises the sold-out flag for the second that follows asked, the
// instant before the ledger was asked and said that no unit is free.
func (s *Sale) MarkSoldOut(asked time.Time) {
	s.flag.raise(asked.Add(soldOutLife))
	if s.flag.news() {
		s.catalog.OnSoldOut(s.ID, asked)
	}
}

// HearSoldOut raises the flag on another instance's word: age is how long ago,
// by the ledger's clock, that instance asked.
func (s *Sale) HearSoldOut(age time.Duration) {
	if age < -heardAhead || age >= heardLife {
		return
	}
	until := time.Now().Add(heardLife - max(0, age))
	if !s.flag.up() || int64(until.Sub(flagStart)) > s.flag.until.Load() {
		s.flag.raise(until)
	}
}

// ClearSoldOut lowers the flag: units have come back.
func (s *Sale) ClearSoldOut() {
	s.flag.lower()
	s.flag.told.Store(0) // the next time it is raised is news
	s.catalog.OnUnitsBack(s.ID)
}

// HearUnitsBack lowers the flag on another instance's word.
func (s *Sale) HearUnitsBack() { s.flag.lower() }

// SoldOut reports whether the flag stands.
func (s *Sale) SoldOut() bool { return s.flag.up() }
