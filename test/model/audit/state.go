package main

const (
	orders  = 2
	buyers  = 2
	epochs  = 4      // 1 to 3 are used
	unknown = orders // a number that nobody was given, put into a mark by hand
	forged  = 9      // a key that nobody gave
)

// what became of an entry
const (
	gone    uint8 = iota // acknowledged, or never there
	waiting              // not settled by any worker
	refused              // refused adoption: to be written as failed
	copied               // the same, as the duplicate of another order
	settled              // row, letter or adoption is there, the acknowledgement is not
)

// what became of an order in the store
const (
	none uint8 = iota
	live
	cancelled
	failed
)

// order is what queue and store know of a number.
type order struct {
	asked   bool
	entry   [epochs]uint8
	letter  uint8 // epoch of the letter's claim, 0 without one
	carried bool  // the letter's claim was adopted: it is to be closed
	row     row
	owed    uint8 // epoch under which the release is owed, 0 if it is not
	told    uint8 // epoch under which the ledger was told, and the store has not heard
}

type row struct {
	state, buyer, key uint8
	counter           bool // sold by the store itself
}

// ours tells whether the ledger's mark of the order is rightly there.
func (r row) ours() bool { return r.state == live && !r.counter }

// mark is the order that a buyer's mark holds. Its place is that of the order
// for which it was written, and so is the entry that it points to; by hand
// everything else may be changed.
type mark struct {
	held              bool
	buyer, number     uint8
	key               uint8
	entered, returned bool // points to an entry; released, and the key is known still
}

// rebuilding
const (
	quiet    uint8 = iota
	flagged        // the product is marked, the ledger closed
	bumped         // the store has the next epoch, and a snapshot was taken
	laid           // the snapshot is installed
	unmarked       // the product is no longer marked, the ledger is still closed
)

// copy is a delivery that a slow worker has, or a promise that an instance
// remembers: whatever became of it, it may be carried out once more.
type copy struct{ order, epoch, at uint8 }

type S struct {
	epoch, ledger uint8 // of the store and of the ledger
	rebuild       uint8
	snapshot      [orders]row
	rebuilds      uint8

	orders [orders]order
	marks  [orders]mark
	late   copy
	lates  uint8
	drift  uint8
	audit  audit
}

func (s *S) marked() bool { return s.rebuild == flagged || s.rebuild == bumped || s.rebuild == laid }
func (s *S) open() bool   { return s.rebuild == quiet && s.ledger == s.epoch }

// find looks for a number in a buyer's mark.
func (s *S) find(buyer, number uint8) (place int, found bool) {
	for i := range s.marks {
		if m := &s.marks[i]; m.held && m.buyer == buyer && m.number == number {
			return i, true
		}
	}
	return 0, false
}

// holds looks for an order in a buyer's mark as it was seen there: by hand a
// number may be in it twice.
func (s *S) holds(buyer, number, key uint8) (place int, found bool) {
	for i := range s.marks {
		if m := &s.marks[i]; m.held && m.buyer == buyer && m.number == number && m.key == key {
			return i, true
		}
	}
	return 0, false
}

// queued tells whether the entry of a held order waits and carries that order.
func (s *S) queued(place int) bool {
	m := &s.marks[place]
	return m.entered && s.orders[place].entry[s.ledger] != gone &&
		*m == mark{held: true, buyer: buyerOf(place), number: uint8(place), key: keyOf(place), entered: true, returned: m.returned}
}

// keyKnown finds another order of o's key in the ledger.
func (s *S) keyKnown(o int) bool {
	for i, m := range s.marks {
		if i != o && keyOf(o) != 0 && (m.held || m.returned) && m.buyer == buyerOf(o) && m.key == keyOf(o) {
			return true
		}
	}
	return false
}

// keyTaken finds another order of o's key in the store.
func (s *S) keyTaken(o int) bool {
	for i := range s.orders {
		if r := &s.orders[i].row; i != o && keyOf(o) != 0 && r.state != none && r.buyer == buyerOf(o) && r.key == keyOf(o) {
			return true
		}
	}
	return false
}
