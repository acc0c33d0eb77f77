package carrierkafka

import (
	"cmp"
	"slices"
)

// partition tracks the settled messages of one partition, while this process
// owns it. Kafka stores one offset per group and partition: all messages below
// it are settled. Messages are settled in any order, so the settled ones above
// the first unsettled one are only known here.
type partition struct {
	number int32
	// lost means that the partition has another owner, or that its log was set
	// back. Its messages can no longer be settled here.
	lost      bool
	first     int64  // where reading began; -1 if unknown
	unsettled []slot // slots in order, from the first unsettled one
	last      int64  // offset of the newest message; -1 before the first
	committed int64  // last committed position; -1 if none
	held      int    // unsettled messages
	bytes     int    // bytes of unsettled messages
}

type slot struct {
	offset  int64
	settled bool
}

func newPartition(number int32) *partition {
	return &partition{number: number, first: -1, last: -1, committed: -1}
}

// isSetBack reports whether a message is at or below an earlier one: then the
// log was lost and started again.
func (p *partition) isSetBack(offset int64) bool { return offset <= p.last }

// add appends an unsettled message. next is the position after it. Offsets may
// have gaps.
func (p *partition) add(offset, next int64) {
	p.unsettled = append(p.unsettled, slot{offset: offset})
	p.last = next - 1
}

// settle settles a message. It removes settled messages from the beginning, and
// returns their number.
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
	p.unsettled = p.unsettled[n:] // append frees the rest when the array is full
	return n
}

// next returns the next offset to read, or -1 if it is unknown.
func (p *partition) next() int64 {
	if p.last < 0 {
		return p.first
	}
	return p.last + 1
}

// position returns the offset below which all messages are settled. It returns
// false before the first message.
func (p *partition) position() (int64, bool) {
	if len(p.unsettled) > 0 {
		return p.unsettled[0].offset, true
	}
	return p.last + 1, p.last >= 0
}
