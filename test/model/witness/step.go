// The possible next steps of a state.
package main

import (
	"fmt"
	"model/mc"
)

type adder func(fault bool, n S, f string, a ...any)

func next(s S) (r []mc.Step[S]) {
	if s.capped {
		return
	}
	add := func(fault bool, n S, f string, a ...any) {
		if n.loss >= uint8(*maxLoss) {
			n.K, n.persist = Red{}, 0
		}
		if a, b := n.R[0], n.R[1]; a.pc < b.pc || a.pc == b.pc && a.p < b.p {
			n.R[0], n.R[1] = b, a
		}
		r = append(r, mc.Step[S]{L: fmt.Sprintf(f, a...), S: n, Fault: fault})
	}
	sell(s, add)
	lose(s, add)
	for k := 0; k < *nw; k++ {
		work(s, k, add)
	}
	for k := range s.R {
		recoverer(s, k, add)
	}
	return
}

func sell(s S, add adder) {
	for o := uint8(0); o < NO; o++ {
		if *only>>o&1 == 0 || s.by>>o&1 == 1 || !s.L.P[productOf[o]].open || s.L.n >= NS {
			continue
		}
		n := s
		n.by |= 1 << o
		n.tags++
		n.L.P[productOf[o]].mark |= 1 << o
		n.L.append(o, n.tags)
		add(true, n, "o%d is reserved: entry %d, epoch %d; who sold it dies", o, n.L.n, s.L.P[productOf[o]].ep)
	}
}

func lose(s S, add adder) {
	if s.loss >= uint8(*maxLoss) {
		return
	}
	if s.persist < uint8(*maxPersist) && s.K != s.L {
		n := s
		n.persist++
		n.K = s.L
		add(true, n, "replica is at this state")
	}
	if *idle && (s.L.pend != 0 || s.W[0].pc != 0 || s.W[1].pc != 0) {
		return
	}
	n := s
	n.loss++
	n.L = Red{}
	add(true, n, "FLUSHALL")
	if s.K != s.L {
		n = s
		n.loss++
		n.L = s.K
		add(true, n, "rolled back")
	}
}

// requestRebuilds marks products for recovery if their epoch is still the one
// that was read.
func requestRebuilds(s *S, eps [2]uint8) {
	for p := range s.reb {
		if s.sEp[p] == eps[p] {
			s.reb[p] = true
		}
	}
}

// lost marks every product for recovery and deletes the witness in one
// transaction, if the witness has not changed.
func lost(s *S, id ID) bool {
	if s.wit != id {
		return false
	}
	s.wit = ID{}
	requestRebuilds(s, s.sEp)
	return true
}

// takeOver raises the store's witness to the highest entry that the queue has
// and remembers.
func takeOver(s *S) {
	if s.L.wit.seq != 0 && s.L.has(s.L.wit) {
		raise(&s.wit, s.L.wit)
	}
}

func work(s S, k int, add adder) {
	w := s.W[k]
	if w.pc != 0 && w.pc != 7 && s.crash < uint8(*maxCrash) {
		n := s
		n.crash++
		n.W[k] = Wk{pc: 7}
		add(true, n, "worker %d dies", k)
	}
	switch w.pc {
	case 0:
		receive(s, k, add)
	case 1:
		confirm(s, k, add)
	case 2:
		adopt(s, k, add)
	case 3:
		acknowledge(s, k, add)
	case 7: // begins by reading the store's confirmed entries
		n := s
		n.W[k] = Wk{pc: 3, wit: s.wit}
		add(false, n, "worker %d starts; the store's witness is %v", k, s.wit)
	default:
		queueLost(s, k, add)
	}
}

func receive(s S, k int, add adder) {
	w := s.W[k]
	for seq := uint8(1); seq <= s.L.n; seq++ {
		if s.L.pend>>seq&1 == 0 || s.W[1-k].pc != 0 && s.W[1-k].seq == seq {
			continue
		}
		n := s
		n.W[k] = Wk{pc: 1, seq: seq, e: s.L.s[seq], wit: w.wit}
		add(false, n, "worker %d reads entry %d", k, seq)
		break // a stream is read in order
	}
	if s.wit.seq != 0 && !s.L.has(s.wit) {
		n := s
		n.W[k] = Wk{pc: 4, wit: s.wit}
		add(false, n, "worker %d starts, and asks for the store's witness %v: lost", k, s.wit)
	}
}

func confirm(s S, k int, add adder) {
	w, n := s.W[k], s
	raise(&n.wit, ID{w.seq, w.e.tag})
	if s.row[w.e.o] == none && w.e.ep != s.sEp[productOf[w.e.o]] {
		n.W[k].pc = 2
		add(false, n, "worker %d: o%d is of epoch %d, to be adopted; witness %v", k, w.e.o, w.e.ep, n.wit)
		return
	}
	n.row[w.e.o] = pending
	n.W[k].pc = 3
	raise(&n.W[k].wit, ID{w.seq, w.e.tag})
	add(false, n, "worker %d: o%d has its row; witness %v", k, w.e.o, n.wit)
}

func adopt(s S, k int, add adder) {
	w, n := s.W[k], s
	p := productOf[w.e.o]
	l := &n.L.P[p]
	switch {
	case !l.open || l.ep != s.sEp[p] || n.L.n >= NS:
		if n.L.n >= NS {
			n.capped = true
		}
		n.W[k].pc = 1
		add(false, n, "worker %d: o%d not adopted now", k, w.e.o)
		return
	case l.mark>>w.e.o&1 == 0:
		l.mark |= 1 << w.e.o
		n.tags++
		n.L.append(w.e.o, n.tags)
	}
	n.W[k].pc = 3
	raise(&n.W[k].wit, ID{w.seq, w.e.tag})
	add(false, n, "worker %d: o%d is adopted under epoch %d", k, w.e.o, l.ep)
}

func acknowledge(s S, k int, add adder) {
	w, n := s.W[k], s
	if w.wit.seq != 0 && !s.L.has(w.wit) {
		n.W[k].pc = 4
		add(false, n, "worker %d: witness %v is lost", k, w.wit)
		return
	}
	if w.wit.seq != 0 {
		raise(&n.L.wit, w.wit)
	}
	if w.e.tag != 0 && s.L.has(ID{w.seq, w.e.tag}) {
		n.L.pend &^= 1 << w.seq
	}
	n.W[k] = Wk{wit: w.wit}
	add(false, n, "worker %d acknowledges entry %d", k, w.seq)
}

func queueLost(s S, k int, add adder) {
	w, n := s.W[k], s
	nw := &n.W[k]
	switch w.pc {
	case 4:
		if s.wit != w.wit {
			nw.wit, nw.pc = s.wit, 3
			add(false, n, "worker %d: another noticed; the witness is %v", k, s.wit)
		} else if F["once"] {
			lost(&n, w.wit)
			takeOver(&n)
			nw.wit, nw.pc = n.wit, 3
			add(false, n, "worker %d requests all rebuilds and forgets %v", k, w.wit)
		} else {
			nw.pc, nw.eps = 5, s.sEp
			add(false, n, "worker %d reads epochs %v", k, s.sEp)
		}
	case 5:
		requestRebuilds(&n, w.eps)
		nw.pc = 6
		add(false, n, "worker %d requests all rebuilds", k)
	case 6:
		if s.wit == w.wit && F["forget"] {
			n.wit = ID{}
		}
		takeOver(&n)
		nw.wit, nw.pc, nw.eps = n.wit, 3, [2]uint8{}
		add(false, n, "worker %d forgets %v", k, w.wit)
	}
}

func recoverer(s S, k int, add adder) {
	R := s.R[k]
	n := s
	nr := &n.R[k]
	p := R.p
	if R.pc != 0 && s.crash < uint8(*maxCrash) {
		m := s
		m.crash++
		m.R[k] = Rec{}
		add(true, m, "recoverer %d dies", k)
	}
	switch R.pc {
	case 0:
		begin(s, k, add)
	case 1: // reads the witness
		if !F["check"] || s.wit.seq == 0 || s.L.has(s.wit) {
			nr.pc = 3
			add(false, n, "recoverer %d: the witness %v is there", k, s.wit)
			break
		}
		nr.pc, nr.lost = 2, s.wit
		add(false, n, "recoverer %d: the witness %v is lost", k, s.wit)
	case 2:
		if F["once"] {
			lost(&n, R.lost)
			takeOver(&n)
			nr.pc, nr.lost = 3, ID{}
			add(false, n, "recoverer %d requests all rebuilds and forgets %v, unless another did", k, R.lost)
			break
		}
		nr.pc, nr.eps = 10, s.sEp
		add(false, n, "recoverer %d reads epochs %v", k, s.sEp)
	case 10:
		requestRebuilds(&n, R.eps)
		nr.pc, nr.eps = 11, [2]uint8{}
		add(false, n, "recoverer %d requests all rebuilds", k)
	case 11:
		if s.wit == R.lost {
			n.wit = ID{}
		}
		takeOver(&n)
		nr.pc, nr.lost = 3, ID{}
		add(false, n, "recoverer %d forgets %v", k, R.lost)
	case 3:
		if s.L.P[p].ep <= R.seen {
			n.L.P[p].open = false
		}
		nr.pc = 4
		add(false, n, "recoverer %d closes product %d", k, p)
	case 4:
		if s.sEp[p] != R.seen {
			*nr = Rec{}
			add(false, n, "recoverer %d: epoch moved on, stops", k)
			break
		}
		if s.sEp[p] >= uint8(*maxEp) {
			n.capped = true
			add(false, n, "cap")
			break
		}
		n.sEp[p]++
		n.reb[p] = true
		nr.pc, nr.ep, nr.marks = 5, n.sEp[p], live(&s, p)
		add(false, n, "recoverer %d: product %d has epoch %d, marks %03b", k, p, n.sEp[p], nr.marks)
	case 5:
		if s.L.P[p].ep >= R.ep {
			*nr = Rec{}
			add(false, n, "recoverer %d: product %d has moved on, stops", k, p)
			break
		}
		n.L.P[p] = Prod{ep: R.ep, mark: R.marks}
		nr.pc = 6
		add(false, n, "recoverer %d installs product %d epoch %d marks %03b", k, p, R.ep, R.marks)
	case 6, 7:
		finish(s, k, add)
	}
}

func begin(s S, k int, add adder) {
	for p := uint8(0); p < 2; p++ {
		l := s.L.P[p]
		need := l.ep < s.sEp[p] || !l.open || s.reb[p]
		other := s.R[1-k].pc != 0 && s.R[1-k].p == p
		fault := !need || other
		if k == 1 && s.R[0].pc == 0 || fault && s.rc >= uint8(*maxRec) {
			continue // symmetric
		}
		n := s
		if fault {
			n.rc++
		}
		n.reb[p] = true
		n.R[k] = Rec{pc: 1, p: p, seen: s.sEp[p]}
		add(fault, n, "recoverer %d: product %d is rebuilding, epoch %d seen", k, p, s.sEp[p])
	}
}

// finish clears rebuilding and opens the ledger, in the order of the rule.
func finish(s S, k int, add adder) {
	R, n := s.R[k], s
	p := R.p
	n.R[k].pc++
	if R.pc == 7 {
		n.R[k] = Rec{}
	}
	switch {
	case (R.pc == 6) == F["clearfirst"]:
		if s.sEp[p] == R.ep {
			n.reb[p] = false
		}
		add(false, n, "recoverer %d clears rebuilding of product %d", k, p)
	case s.L.P[p].ep == R.ep:
		n.L.P[p].open = true
		add(false, n, "recoverer %d opens product %d (epoch %d)", k, p, R.ep)
	default:
		n.R[k] = Rec{}
		add(false, n, "recoverer %d: product %d is not its own, stops", k, p)
	}
}
