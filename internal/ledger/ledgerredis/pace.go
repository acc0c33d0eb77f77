package ledgerredis

import "strconv"

// A walk over all marks begins with few marks per step, and keeps to steps that read about
// paceBytes. Most marks have a hundred bytes, but those of buyers with many orders and
// cancellations have ten thousand and more.
const (
	paceFirst = 8
	paceBytes = 64 << 10 // about a millisecond
)

// pace is the number of marks in the next step of a walk, at most most. Positions of marks in a
// hash are random, so one step predicts the next.
type pace struct{ most, next int }

func newPace(most int) *pace { return &pace{most: most, next: min(paceFirst, most)} }

// count returns the argument of the next step.
func (p *pace) count() string { return strconv.Itoa(p.next) }

// saw takes the size of the marks that a step has read.
func (p *pace) saw(bytes int64) {
	switch {
	case bytes > paceBytes:
		p.next = max(1, p.next/2)
	case bytes <= paceBytes/2:
		p.next = min(p.most, 2*p.next)
	}
}
