package challenge

import (
	"sync"
	"time"
)

// meter measures a rate over the last second: the count of the current second,
// plus the part of the previous second that is less than a second ago.
type meter struct {
	mu                sync.Mutex
	second            int64 // the current one, Unix
	current, previous float64
}

// count counts n events and returns the rate with them.
func (m *meter) count(n float64, now time.Time) (perSecond float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch second := now.Unix(); {
	case second == m.second+1:
		m.second, m.previous, m.current = second, m.current, 0
	case second != m.second: // a pause, or the clock was set
		m.second, m.previous, m.current = second, 0, 0
	}
	m.current += n
	passed := float64(now.Nanosecond()) / float64(time.Second)
	return m.current + m.previous*(1-passed)
}
