// What ledger, queue and store know, and small questions about it.
package main

import "fmt"

const (
	orders = 2
	epochs = 4 // 1 to 3 are used
)

// what became of a claim in somebody's hands: of an entry, or of a copy
const (
	gone    uint8 = iota // acknowledged, or never there
	waiting              // not settled by anybody
	bad                  // the store cannot write it: to be parked
	old                  // of an older epoch, and without a row: to be adopted
	refused              // refused adoption: to be written as failed
	copied               // the same, as the duplicate of another order
	adopted              // the ledger has an entry of its epoch for it: its letter is to be closed
	settled              // row, letter or adoption is there: to be acknowledged
)

// what became of an order in the store
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

// ours tells whether the ledger's mark of the order is rightly there.
func (r row) ours() bool { return r.state == live && !r.direct }

// known tells whether the ledger has to know the order's key: it sold it, and it died, but not by failing.
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

// order is what queue and store know of a number.
type order struct {
	asked   bool
	entry   [epochs]uint8
	letter  uint8 // epoch of the letter's claim, 0 without one
	closing uint8 // epoch of the letter that was adopted and is to be closed, 0 without one
	kept    bool  // it had a letter when an epoch began, and no row
	lost    bool  // that promise was not kept
	row     row
	owed    uint8 // epoch under which the release is owed, 0 if it is not
	told    uint8 // epoch under which the ledger was told, and the store has not heard
	again   bool  // the release came to be owed again since
}

// mark is an order in a buyer's mark. Its place is that of the order for which it was written, whose entry it points to
// as well.
type mark struct {
	held, returned     bool // returned: released, and the key is known still
	buyer, number, key uint8
	entered            bool
}

// agrees tells whether a row says the same. One that failed as a duplicate left its key to the other order.
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

// copy is a claim in a second hand: a delivery that a slow worker has, a promise that an instance remembers, a letter
// that was read. Whatever became of it, it may be carried out once more.
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

// selling tells whether the ledger takes calls of its own epoch: that it is closed before it is rebuilt is best effort.
func (s *S) selling() bool { return s.rebuild <= bumped }

// open tells whether it takes those of the store's.
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

// remembers tells whether a buyer's mark has an order under its key, live or dead.
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
