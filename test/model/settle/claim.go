// The possible results of a claim.
package main

import "fmt"

// consume is a worker with an entry: the store first, then the acknowledgement.
func consume(s S, o int, e uint8, add adder) {
	at := s.orders[o].entry[e]
	if at == gone {
		return
	}
	again := at == settled
	if again {
		n := s
		n.orders[o].entry[e] = gone
		add(false, n, "entry of o%d epoch %d acknowledged", o, e)
		at = waiting // the entry may be delivered again before that
	}
	for _, out := range outcomes(s, o, e, at) {
		n := out.s
		n.orders[o].entry[e] = out.at
		if out.at == adopted {
			n.orders[o].entry[e] = settled
		}
		add(again || out.fault, n, "worker, entry of o%d epoch %d: %s", o, e, out.text)
	}
}

type outcome struct {
	s     S
	at    uint8 // the result of the claim
	text  string
	fault bool
}

// outcomes are the possible next results of a claim of epoch e.
func outcomes(s S, o int, e, at uint8) (all []outcome) {
	out := func(n S, at uint8, fault bool, text string) { all = append(all, outcome{n, at, text, fault}) }
	n := s
	it := &n.orders[o]
	switch {
	case at == bad:
		n.park(o, e)
		out(n, settled, false, "parked, if it has no row")
	case at == old:
		if s.open() {
			adopt(s, o, out)
		}
	case at == refused || at == copied:
		n.refuse(o, at == copied)
		out(n, settled, false, "written as failed, if it has no row")
	case it.row.state != none:
		n.disown(o)
		it.letter = 0
		out(n, settled, false, "replay")
	case e < s.epoch:
		out(n, old, false, "is of an older epoch, and has no row")
	case s.keyTaken(o):
		n.fail(o, true)
		n.disown(o)
		out(n, settled, false, "failed as a duplicate, without its key; release owed")
	default:
		it.row = row{state: live, buyer: buyerOf(o), key: keyOf(o)}
		it.letter = 0
		out(n, settled, false, "row written")
		n = s
		n.fail(o, false)
		n.disown(o)
		out(n, settled, true, "failed by the limit; release owed")
		out(s, bad, true, "cannot be written")
	}
	return all
}

// adopt offers a claim of an older epoch to the ledger: reserved anew, known, or refused.
func adopt(s S, o int, out func(S, uint8, bool, string)) {
	n := s
	_, found := s.find(buyerOf(o), uint8(o))
	switch {
	case found || s.marks[o].returned:
		out(n, adopted, false, "known to the ledger of the epoch")
	case s.keyKnown(o):
		out(n, copied, false, "refused adoption as a duplicate")
	default:
		n.reserve(o)
		out(n, adopted, false, fmt.Sprintf("adopted: mark and entry of epoch %d", s.ledger))
		n = s
		n.orders[o].lost = s.orders[o].kept && s.orders[o].row.state == none
		out(n, refused, true, "refused adoption")
	}
}

// fail writes a failed order in the place of a claim, and closes its letter.
func (s *S) fail(o int, bare bool) {
	it := &s.orders[o]
	it.letter = 0
	it.row = row{state: failed, buyer: buyerOf(o), key: keyOf(o)}
	if bare {
		it.row.key = 0
	}
}

// refuse writes a claim that was refused adoption as failed, unless the claim
// has a row. Another process may have adopted it in the meantime; then the
// letter belongs to that adoption.
func (s *S) refuse(o int, duplicate bool) {
	it := &s.orders[o]
	lettered := it.letter != 0
	if it.row.state == none {
		s.fail(o, duplicate || s.keyTaken(o))
	}
	it.letter = 0
	if lettered && on("fail") {
		s.disown(o)
	}
}

// park writes a dead letter, unless the claim has a row or a letter that is as
// new.
func (s *S) park(o int, e uint8) {
	it := &s.orders[o]
	switch {
	case it.row.state != none:
		if on("park") {
			s.disown(o)
		}
	case it.letter == 0, it.letter < e && on("raise"):
		it.letter = e
	}
}

// shut closes the letter of an adopted claim of epoch e.
func (s *S) shut(o int, e uint8) {
	if it := &s.orders[o]; it.letter == e || !on("own") {
		it.letter = 0
	}
}

// discard discards a letter.
func (s *S) discard(o int) {
	it := &s.orders[o]
	it.letter = 0
	switch {
	case it.row.state == none:
		s.fail(o, s.keyTaken(o))
		s.disown(o)
	case on("discard"):
		s.disown(o)
	}
}

// climb retries or discards a letter.
func climb(s S, o int, add adder) {
	it := &s.orders[o]
	n := s
	if it.closing != 0 {
		n.orders[o].closing = 0
		n.shut(o, it.closing)
		add(false, n, "letter of o%d epoch %d closed: it was adopted", o, it.closing)
		return
	}
	if it.letter == 0 {
		return
	}
	n.discard(o)
	add(true, n, "letter of o%d discarded: failed, if it has no row", o)
	all := outcomes(s, o, it.letter, waiting)
	if all[0].at == old {
		all = outcomes(s, o, it.letter, old)
	}
	for _, out := range all {
		n := out.s
		switch out.at {
		case bad:
			continue // it stays parked
		case adopted:
			n.orders[o].closing = it.letter
		case refused, copied:
			n.refuse(o, out.at == copied)
		}
		add(out.fault, n, "letter of o%d epoch %d retried: %s", o, it.letter, out.text)
	}
}

// slow has the steps of a second, slow process that holds a claim or a letter.
func slow(s S, add adder) {
	n := s
	c := &n.late
	if *c == (copy{}) {
		begin(s, add)
		return
	}
	if c.at == adopted {
		n.shut(int(c.order), c.epoch)
		*c = copy{}
		add(true, n, "the other one closes the letter of o%d epoch %d", s.late.order, s.late.epoch)
		return
	}
	for _, out := range outcomes(s, int(c.order), c.epoch, c.at) {
		n := out.s
		n.late.at = out.at
		if out.at == settled || out.at == adopted && !c.letter || out.at == bad && c.letter {
			n.late = copy{}
		}
		add(true, n, "the other one, o%d epoch %d: %s", c.order, c.epoch, out.text)
	}
}

// begin gives a claim to the second process.
func begin(s S, add adder) {
	if int(s.lates) == *lates {
		return
	}
	n := s
	n.lates++
	for o := range *claims {
		it := &s.orders[o]
		for e := uint8(1); e <= s.epoch; e++ {
			if it.entry[e] != gone {
				n.late = copy{order: uint8(o), epoch: e, at: waiting}
				add(true, n, "somebody else has o%d epoch %d in hand", o, e)
			}
		}
		if it.letter != 0 {
			n.late = copy{order: uint8(o), epoch: it.letter, at: waiting, letter: true}
			add(true, n, "somebody else has the letter of o%d epoch %d in hand", o, it.letter)
		}
	}
}
