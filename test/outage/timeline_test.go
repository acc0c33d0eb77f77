package outage

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// timeline is a number that changes at instants.
type timeline struct {
	base    int64
	changes []change
}

type change struct {
	at    time.Time
	delta int64
	total int64 // from here to the next
}

func (t *timeline) add(at time.Time, delta int64) {
	t.changes = append(t.changes, change{at: at, delta: delta})
}

// hold takes units away for a while, or for good if that has no end.
func (t *timeline) hold(from, to time.Time, units int64) {
	if !to.IsZero() && to.Before(from) {
		return
	}
	t.add(from, -units)
	if !to.IsZero() {
		t.add(to, units)
	}
}

// sum makes it readable. Of changes at one instant, those down come first.
func (t *timeline) sum() {
	slices.SortFunc(t.changes, func(a, b change) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.delta, b.delta))
	})
	total := t.base
	for i := range t.changes {
		total += t.changes[i].delta
		t.changes[i].total = total
	}
}

// least is the lowest total of a while.
func (t *timeline) least(from, to time.Time) int64 {
	lowest := t.base
	first := sort.Search(len(t.changes), func(i int) bool { return t.changes[i].at.After(from) })
	if first > 0 {
		lowest = t.changes[first-1].total
	}
	for _, c := range t.changes[first:] {
		if c.at.After(to) {
			break
		}
		lowest = min(lowest, c.total)
	}
	return lowest
}
