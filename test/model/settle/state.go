// The state of ledger, queue and store, and predicates of it.
package main

import "fmt"

const (
	orders = 2
	epochs = 4 // 1 to 3 are used
)

// the state of an entry or of a copy of a claim
const (
	gone    uint8 = iota // acknowledged or never existed
	waiting              // not settled
	bad                  // the store cannot write it: to be parked
	old                  // of an older epoch, and without a row: to be adopted
	refused              // refused adoption: to be written as failed
	copied               // the same, as the duplicate of another order
	adopted              // the ledger has an entry of its epoch for it: its letter is to be closed
	settled              // row, letter or adoption is there: to be acknowledged
)

// the state of an order in the store
const (
	none uint8 = iota
	live
	cancelled
	failed
)

type row struct {
	state, buyer, key uint8
	direct            bool // sold by the store itself
}

// ours reports whether the ledger must have a mark of the order.
func (r row) ours() bool { return r.state == live && !r.direct }

// known reports whether the ledger must know the order's key: the ledger sold
// the order, and the order died without failing.
func (r row) known() bool { return r.state == cancelled && !r.direct && r.key != 0 }

func (r row) String() string {
	if r.state == none {
		return "not there"
	}
	text := []string{live: "live", cancelled: "cancelled", failed: "failed"}[r.state]
	if r.direct {
		text += ", sold directly"
	}
	return fmt.Sprintf("%s, buyer %s, key %d", text, name(r.buyer), r.key)
}

// order is the state of an order number in queue and store.
type order struct {
	asked   bool
	entry   [epochs]uint8
	letter  uint8 // epoch of the letter's claim, 0 without one
	closing uint8 // epoch of the letter that was adopted and is to be closed, 0 without one
	kept    bool  // it had a letter when an epoch began, and no row
	lost    bool  // that promise was not kept
	row     row
	owed    uint8 // epoch under which the release is owed, 0 if it is not
	told    uint8 // epoch of a release that the ledger has and the store does not know yet
	again   bool  // the release became owed again
}

// mark is one order in a buyer's mark. Its index is the order for which it was
// written, and it points to that order's entry.
type mark struct {
	held, returned     bool // returned: released, and the key is known still
	buyer, number, key uint8
	entered            bool
}

// agrees reports whether a row agrees with the mark. A row that failed as a
// duplicate left its key to the other order.
func (m mark) agrees(r row) bool {
	if r.state == none || r.buyer != m.buyer {
		return false
	}
	return r.key == m.key || r.state == failed && r.key == 0
}

// steps of a rebuild
const (
	quiet     uint8 = iota
	requested       // a rebuild is due
	bumped          // the store has the next epoch, and the snapshot was taken
	laid            // the snapshot is installed, the ledger closed
	cleared         // the rebuild is no longer due, the ledger is still closed
)

// copy is a second copy of a claim: a delivery at a slow worker, a promise in
// an instance's memory, or a letter that was read. It may be processed again,
// whatever the result of the first was.
type copy struct {
	order, epoch, at uint8
	letter           bool
}

type S struct {
	epoch, ledger uint8 // of the store and of the ledger
	rebuild       uint8
	snapshot      [orders]row

	orders [orders]order
	marks  [orders]mark
	late   copy

	rebuilds, lates uint8
}

func (s *S) due() bool { return s.rebuild == requested || s.rebuild == bumped || s.rebuild == laid }

// selling reports whether the ledger takes calls of its own epoch. It may not
// be closed before a rebuild, because closing is best effort.
func (s *S) selling() bool { return s.rebuild <= bumped }

// open reports whether it takes calls of the store's epoch.
func (s *S) open() bool { return s.selling() && s.ledger == s.epoch }

func name(buyer uint8) string { return string('A' + rune(buyer)) }

func buyerOf(o int) uint8 {
	if *oneBuyer || *keys == "one" {
		return 0
	}
	return uint8(o)
}

func keyOf(o int) uint8 {
	switch *keys {
	case "none":
		return 0
	case "one":
		return 1
	}
	return uint8(o) + 1
}

// find looks for a number that a buyer's mark holds.
func (s *S) find(buyer, number uint8) (place int, found bool) {
	for i := range s.marks {
		if m := &s.marks[i]; m.held && m.buyer == buyer && m.number == number {
			return i, true
		}
	}
	return 0, false
}

// remembers reports whether a buyer's mark has an order under its key, live or
// dead.
func (s *S) remembers(number uint8, r row) bool {
	for _, m := range s.marks {
		if (m.held || m.returned) && m.buyer == r.buyer && m.number == number && m.key == r.key {
			return true
		}
	}
	return false
}

// written is the mark of an order as the ledger writes it.
func written(o int) mark {
	return mark{held: true, buyer: buyerOf(o), number: uint8(o), key: keyOf(o), entered: true}
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
