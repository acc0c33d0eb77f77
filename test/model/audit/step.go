package main

import (
	"fmt"

	"model/mc"
)

type adder func(fault bool, n S, text string, args ...any)

func next(s S) (r []mc.Step[S]) {
	if s.audit.at == alarmed {
		return nil
	}
	add := func(fault bool, n S, text string, args ...any) {
		r = append(r, mc.Step[S]{L: fmt.Sprintf(text, args...), S: n, Fault: fault})
	}
	for o := range *claims {
		sellers(s, o, add)
		for e := uint8(1); e <= s.epoch; e++ {
			consume(s, o, e, add)
		}
		climb(s, o, add)
		release(s, o, add)
	}
	slow(s, add)
	rebuild(s, add)
	if int(s.drift) < *drifts {
		byHand(s, add)
	}
	if *audits {
		walk(s, func(n S, text string, args ...any) { add(true, n, "AUDIT "+text, args...) })
	}
	return r
}

// sellers is the ledger, the counter, and the order's end in the store.
func sellers(s S, o int, add adder) {
	if it := &s.orders[o]; !it.asked && s.open() && !s.keyKnown(o) {
		n := s
		n.orders[o].asked = true
		n.reserve(o)
		add(true, n, "o%d reserved: mark and entry of epoch %d", o, s.ledger)
	}
	if s.orders[o].row.state == none && *counter && !s.keyTaken(o) {
		n := s
		n.orders[o].row = row{state: live, buyer: buyerOf(o), key: keyOf(o), counter: true}
		n.orders[o].asked = true
		add(true, n, "o%d sold over the counter", o)
	}
	if s.orders[o].row.state == live {
		n := s
		n.orders[o].row.state = cancelled
		if !s.orders[o].row.counter {
			n.orders[o].owed = s.epoch
		}
		add(true, n, "o%d cancelled in the store", o)
	}
}

func (s *S) reserve(o int) {
	s.marks[o] = mark{held: true, buyer: buyerOf(o), number: uint8(o), key: keyOf(o), entered: true}
	s.orders[o].entry[s.ledger] = waiting
}

// consume is a worker with an entry: the store first, then the acknowledgement.
func consume(s S, o int, e uint8, add adder) {
	at := s.orders[o].entry[e]
	if at == gone {
		return
	}
	if at == settled {
		n := s
		n.orders[o].entry[e] = gone
		add(false, n, "entry of o%d epoch %d acknowledged", o, e)
	}
	// What is settled may be delivered again.
	for _, out := range outcomes(s, o, e, at) {
		n := out.s
		if out.at != gone {
			n.orders[o].entry[e] = out.at
		}
		add(at == settled || out.fault, n, "worker, entry of o%d epoch %d: %s", o, e, out.text)
	}
}

type outcome struct {
	s     S
	at    uint8 // what becomes of the entry
	text  string
	fault bool
}

// outcomes is what comes of a claim of epoch e, whoever has it.
func outcomes(s S, o int, e, at uint8) (all []outcome) {
	out := func(n S, at uint8, fault bool, text string) { all = append(all, outcome{n, at, text, fault}) }
	n := s
	it := &n.orders[o]
	switch {
	case at == refused || at == copied:
		n.fail(o, at == copied || s.keyTaken(o), false)
		out(n, settled, false, "written as failed, if it has no row")
	case it.row.state != none:
		if !it.row.ours() {
			it.owed = s.epoch
		}
		it.letter, it.carried = 0, false
		out(n, settled, false, "replay")
	case e < s.epoch:
		if s.open() {
			adopt(s, o, out)
		}
	case s.keyTaken(o):
		n.fail(o, true, true)
		out(n, settled, false, "failed as a duplicate, without its key; release owed")
	default:
		it.row = row{state: live, buyer: buyerOf(o), key: keyOf(o)}
		it.letter, it.carried = 0, false
		out(n, settled, false, "row written")
		n = s
		n.fail(o, false, true)
		out(n, settled, true, "failed by the limit; release owed")
		if s.orders[o].letter == 0 {
			n = s
			n.orders[o].letter = e
			out(n, settled, true, "parked")
		}
	}
	return all
}

// adopt offers a claim of an older epoch to the ledger: marked and entered anew,
// known, or refused.
func adopt(s S, o int, out func(S, uint8, bool, string)) {
	n := s
	m := &s.marks[o]
	_, held := s.find(buyerOf(o), uint8(o))
	switch {
	case held || m.returned && keyOf(o) != 0:
		out(n, settled, false, "known to the ledger of the epoch")
	case s.keyKnown(o):
		out(n, copied, false, "refused adoption as a duplicate")
	default:
		n.reserve(o)
		out(n, settled, false, fmt.Sprintf("adopted: mark and entry of epoch %d", s.ledger))
		out(s, refused, true, "refused adoption")
	}
}

// fail writes a failed order in the place of a claim, unless it has its row.
func (s *S) fail(o int, bare, owes bool) {
	it := &s.orders[o]
	it.letter, it.carried = 0, false
	if it.row.state != none {
		return
	}
	it.row = row{state: failed, buyer: buyerOf(o), key: keyOf(o)}
	if bare {
		it.row.key = 0
	}
	if owes {
		it.owed = s.epoch
	}
}

// climb retries or discards a letter.
func climb(s S, o int, add adder) {
	it := &s.orders[o]
	if it.letter == 0 {
		return
	}
	if it.carried {
		n := s
		n.orders[o].letter, n.orders[o].carried = 0, false
		add(false, n, "letter of o%d closed: it was adopted", o)
		return
	}
	for _, out := range outcomes(s, o, it.letter, waiting) {
		n := out.s
		switch {
		case out.at == refused || out.at == copied:
			n.fail(o, out.at == copied || s.keyTaken(o), false)
		case n.orders[o].letter != 0:
			n.orders[o].carried = true
		}
		add(out.fault, n, "letter of o%d retried: %s", o, out.text)
	}
	if it.row.state == none {
		n := s
		n.fail(o, s.keyTaken(o), true)
		add(true, n, "letter of o%d discarded: failed, release owed", o)
	}
}

// release tells the ledger what is owed, until heard.
func release(s S, o int, add adder) {
	it := &s.orders[o]
	if it.owed != 0 && it.told == 0 {
		n := s
		switch {
		case s.ledger > it.owed:
			n.orders[o].told = it.owed
			add(false, n, "release of o%d: the ledger is beyond epoch %d", o, it.owed)
		case s.ledger == it.owed && s.open():
			n.orders[o].told = it.owed
			if place, held := s.find(it.row.buyer, uint8(o)); held {
				m := &n.marks[place]
				*m = mark{returned: m.key != 0, buyer: m.buyer, number: m.number, key: m.key}
				if !m.returned {
					*m = mark{}
				}
			}
			add(false, n, "the ledger releases o%d", o)
		}
	}
	if it.told != 0 {
		n := s
		if it.owed == it.told {
			n.orders[o].owed = 0
		}
		n.orders[o].told = 0
		add(false, n, "the store hears of the release of o%d", o)
	}
}

// slow is whoever has a copy of a claim and comes late.
func slow(s S, add adder) {
	if s.late == (copy{}) {
		for o := range *claims {
			for e := uint8(1); e <= s.epoch && int(s.lates) < *lates; e++ {
				if at := s.orders[o].entry[e]; at == waiting || at == settled {
					n := s
					n.lates++
					n.late = copy{uint8(o), e, waiting}
					add(true, n, "somebody else has o%d of epoch %d in hand", o, e)
				}
			}
		}
		return
	}
	c := s.late
	for _, out := range outcomes(s, int(c.order), c.epoch, c.at) {
		n := out.s
		n.late.at = out.at
		if out.at == settled {
			n.late = copy{}
		}
		add(true, n, "the other one, o%d of epoch %d: %s", c.order, c.epoch, out.text)
	}
}

// rebuild is protocol 3.
func rebuild(s S, add adder) {
	n := s
	switch s.rebuild {
	case quiet:
		if int(s.rebuilds) < *rebuilds {
			n.rebuild, n.rebuilds = flagged, s.rebuilds+1
			add(true, n, "REBUILD marked in the store, ledger closed")
		}
	case flagged:
		n.rebuild, n.epoch = bumped, s.epoch+1
		for o := range s.orders {
			n.snapshot[o] = s.orders[o].row
		}
		add(false, n, "REBUILD epoch %d, snapshot", n.epoch)
	case bumped:
		n.rebuild, n.ledger = laid, s.epoch
		for o, r := range s.snapshot {
			n.marks[o] = mark{held: r.ours(), buyer: r.buyer, number: uint8(o), key: r.key, returned: r.state > live && r.key != 0}
			if !n.marks[o].held && !n.marks[o].returned {
				n.marks[o] = mark{}
			}
		}
		n.snapshot = [orders]row{}
		add(false, n, "REBUILD installed")
	case laid:
		n.rebuild = unmarked
		add(false, n, "REBUILD no longer marked")
	case unmarked:
		n.rebuild = quiet
		add(false, n, "REBUILD open")
	}
}

// byHand is what somebody does to ledger, queue and store.
func byHand(s S, add adder) {
	hand := func(n S, text string, args ...any) {
		n.drift++
		add(true, n, "BY HAND "+text, args...)
	}
	for i := range s.marks {
		m := s.marks[i]
		if !m.held {
			continue
		}
		n := s
		n.marks[i].buyer = 1 - m.buyer
		hand(n, "o%d moved into the mark of buyer %c", i, 'A'+rune(1-m.buyer))
		for number := range uint8(unknown + 1) {
			if number != m.number {
				n = s
				n.marks[i].number = number
				hand(n, "the number of o%d in its mark is now o%d", i, number)
			}
		}
		n = s
		n.marks[i].key = forged
		hand(n, "the key, or quantity, of o%d in its mark is another", i)
		n = s
		n.marks[i] = mark{}
		hand(n, "o%d deleted from its mark", i)
	}
	for o := range *claims {
		if r := s.orders[o].row; r.state != none {
			n := s
			n.orders[o].row.buyer = 1 - r.buyer
			hand(n, "row of o%d moved to buyer %c", o, 'A'+rune(1-r.buyer))
		}
		if !s.orders[o].asked {
			n := s
			n.orders[o].asked = true
			n.orders[o].entry[s.epoch] = waiting
			hand(n, "an entry for o%d added to the stream", o)
		}
	}
}
