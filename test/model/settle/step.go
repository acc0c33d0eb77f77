// The steps of ledger, direct sales, releaser and recovery.
package main

import (
	"fmt"

	"model/mc"
)

type adder func(fault bool, n S, text string, args ...any)

func next(s S) (r []mc.Step[S]) {
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
	return r
}

// sellers has the steps of the ledger, of direct sales by the store, and of an
// order's end in the store.
func sellers(s S, o int, add adder) {
	it := &s.orders[o]
	n := s
	n.orders[o].asked = true
	if !it.asked && s.selling() && !s.keyKnown(o) {
		n.reserve(o)
		add(true, n, "o%d reserved: mark and entry of epoch %d", o, s.ledger)
	}
	if it.row.state == none && *direct && !s.keyTaken(o) {
		n = s
		n.orders[o].asked = true
		n.orders[o].row = row{state: live, buyer: buyerOf(o), key: keyOf(o), direct: true}
		add(true, n, "o%d sold directly", o)
	}
	if it.row.state == live {
		n = s
		n.orders[o].row.state = cancelled
		if it.row.ours() {
			n.disown(o)
		}
		add(true, n, "o%d cancelled in the store", o)
	}
}

func (s *S) reserve(o int) {
	s.marks[o] = written(o)
	s.orders[o].entry[s.ledger] = waiting
}

// disown records that a release is owed for an order that the ledger must not
// hold.
func (s *S) disown(o int) {
	it := &s.orders[o]
	if it.row.state == none || it.row.ours() {
		return
	}
	it.owed = s.epoch
	it.again = it.told != 0 && on("debt")
}

// release sends owed releases to the ledger until the ledger confirms them
// (protocol 4).
func release(s S, o int, add adder) {
	it := &s.orders[o]
	n := s
	switch {
	case it.told != 0:
		if it.owed == it.told && !it.again {
			n.orders[o].owed = 0
		}
		n.orders[o].told, n.orders[o].again = 0, false
		add(false, n, "the store hears of the release of o%d", o)
	case it.owed == 0:
	case s.ledger > it.owed:
		n.orders[o].told = it.owed
		add(false, n, "release of o%d: the ledger is beyond epoch %d", o, it.owed)
	case s.ledger == it.owed && s.selling():
		n.orders[o].told = it.owed
		if place, found := s.find(it.row.buyer, uint8(o)); found {
			n.marks[place] = returned(s.marks[place])
		}
		add(false, n, "the ledger releases o%d", o)
	}
}

// hold reserves the units of a parked claim in the new epoch, and its letter
// then belongs to that epoch. It skips a claim that would be a duplicate.
func (s *S) hold(o int) {
	it := &s.orders[o]
	if it.letter == 0 || it.row.state != none || s.keyTaken(o) || s.heldKey(o) {
		return
	}
	it.kept = true
	if !on("hold") {
		return
	}
	s.snapshot[o] = row{state: live, buyer: buyerOf(o), key: keyOf(o)}
	if on("lift") {
		it.letter = s.epoch
	}
}

// heldKey finds another claim of o's key that the new epoch holds for its letter.
func (s *S) heldKey(o int) bool {
	for i := range o {
		if keyOf(o) != 0 && s.orders[i].row.state == none && s.snapshot[i].ours() && buyerOf(i) == buyerOf(o) && keyOf(i) == keyOf(o) {
			return true
		}
	}
	return false
}

// returned is an order in a mark after its release: only the key is left.
func returned(m mark) mark {
	if m.key == 0 || !on("keep") {
		return mark{}
	}
	return mark{returned: true, buyer: m.buyer, number: m.number, key: m.key}
}

// rebuild is protocol 3.
func rebuild(s S, add adder) {
	n := s
	switch s.rebuild {
	case quiet:
		if int(s.rebuilds) < *rebuilds {
			n.rebuild, n.rebuilds = requested, s.rebuilds+1
			add(true, n, "REBUILD requested in the store")
		}
	case requested:
		n.rebuild, n.epoch = bumped, s.epoch+1
		for o := range s.orders {
			n.snapshot[o] = s.orders[o].row
			n.hold(o)
		}
		add(false, n, "REBUILD epoch %d, snapshot", n.epoch)
	case bumped:
		n.rebuild, n.ledger = laid, s.epoch
		n.snapshot = [orders]row{}
		for o, r := range s.snapshot {
			m := mark{held: true, buyer: r.buyer, number: uint8(o), key: r.key}
			switch {
			case r.ours():
				n.marks[o] = m
			case r.state == none || r.state == live || !on("install"):
				n.marks[o] = mark{}
			default:
				n.marks[o] = returned(m)
			}
		}
		add(false, n, "REBUILD installed")
	case laid:
		n.rebuild = cleared
		add(false, n, "REBUILD no longer due")
	case cleared:
		n.rebuild = quiet
		add(false, n, "REBUILD open")
	}
}
