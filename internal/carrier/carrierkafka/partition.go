package carrierkafka

import (
	"cmp"
	"slices"
)

// partition tracks which messages of one partition are settled, while this
// process owns it. Kafka remembers one offset per group and partition: all below
// it are settled. Messages are settled in any order, so the settled ones above
// the first unsettled one are remembered here only.
type partition struct {
	number int32
	// lost says that the partition has another owner, or that its log was set
	// back. Messages of it are no longer settled here.
	lost      bool
	first     int64  // where reading began; -1 if that is not known
	unsettled []slot // in order of offsets, from the first unsettled one on
	last      int64  // offset of the newest message; -1 before the first
	committed int64  // what the broker was told last; -1 for nothing
	held      int    // messages that are not settled
	bytes     int    // of them
}

type slot struct {
	offset  int64
	settled bool
}

func newPartition(number int32) *partition {
	return &partition{number: number, first: -1, last: -1, committed: -1}
}

// isSetBack reports whether a message stands at or below an earlier one: the
// log was lost and began again.
func (p *partition) isSetBack(offset int64) bool { return offset <= p.last }

// add appends a message, which is not settled. The position behind it is next.
// Offsets may have gaps.
func (p *partition) add(offset, next int64) {
	p.unsettled = append(p.unsettled, slot{offset: offset})
	p.last = next - 1
}

// settle settles a message. It returns how many messages at its beginning
// are settled and were removed from it.
func (p *partition) settle(offset int64) int {
	i, found := slices.BinarySearchFunc(p.unsettled, offset, func(s slot, offset int64) int { return cmp.Compare(s.offset, offset) })
	if !found {
		return 0
	}
	p.unsettled[i].settled = true
	n := 0
	for n < len(p.unsettled) && p.unsettled[n].settled {
		n++
	}
	p.unsettled = p.unsettled[n:] // append moves the rest when the array is used up
	return n
}

// next is the offset that is read next; -1 if that is not known.
func (p *partition) next() int64 {
	if p.last < 0 {
		return p.first
	}
	return p.last + 1
}

// position is the offset below which all are settled. It is false before the
// first message.
func (p *partition) position() (int64, bool) {
	if len(p.unsettled) > 0 {
		return p.unsettled[0].offset, true
	}
	return p.last + 1, p.last >= 0
}
