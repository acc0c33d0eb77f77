package ledgerredis

import "strconv"

// A walk over all marks begins with few a step, and keeps to steps that read
// about paceBytes: most marks have a hundred bytes, but those of buyers who
// bought and cancelled much have ten thousand and more.
const (
	paceFirst = 8
	paceBytes = 64 << 10 // about a millisecond
)

// pace is how many marks the next step of a walk looks at, of most at most.
// Where a mark is in a hash is nobody's choice, so one step tells of the next.
type pace struct{ most, next int }

func newPace(most int) *pace { return &pace{most: most, next: min(paceFirst, most)} }

// count is the argument of the step.
func (p *pace) count() string { return strconv.Itoa(p.next) }

// saw takes the bytes of the marks that a step has looked at.
func (p *pace) saw(bytes int64) {
	switch {
	case bytes > paceBytes:
		p.next = max(1, p.next/2)
	case bytes <= paceBytes/2:
		p.next = min(p.most, 2*p.next)
	}
}
