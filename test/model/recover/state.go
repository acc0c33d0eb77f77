// Predicates of a state, and its normal form, in which equivalent states are
// equal.
package main

func live(s *S) (m uint8) {
	for o := 0; o < NO; o++ {
		if s.row[o] == pending {
			m |= 1 << o
		}
	}
	return
}
func held(m uint8, b int) int {
	c := 0
	for o := 0; o < NO; o++ {
		if m>>o&1 == 1 && buyer[o] == b {
			c++
		}
	}
	return c
}
func pop(m uint8) int8 {
	c := int8(0)
	for ; m > 0; m &= m - 1 {
		c++
	}
	return c
}

// twin is the order of the same key, or none.
func twin(o uint8) (uint8, bool) { return 2 - o, *key && o != 1 }

// keyed are the orders whose rows have the key, dead ones included.
func keyed(s *S) (m uint8) {
	for o := uint8(0); o < NO; o++ {
		if _, shared := twin(o); shared && s.row[o] != none && s.row[o] != duplicate {
			m |= 1 << o
		}
	}
	return
}

// snapshotKeys are the keys with which a new epoch begins.
func snapshotKeys(s *S) uint8 {
	if !F["deadkey"] {
		return keyed(s) & live(s)
	}
	return keyed(s)
}

// taken reports whether the key of o belongs to another order in this set.
func taken(keys uint8, o uint8) bool {
	t, shared := twin(o)
	return shared && keys>>t&1 == 1
}
func less(a, b Wk) bool {
	x := [5]uint8{a.pc, a.o, a.ep, a.src, a.rep}
	y := [5]uint8{b.pc, b.o, b.ep, b.src, b.rep}
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return !a.ver && b.ver
}
func canon(s *S) {
	if less(s.W[0], s.W[1]) {
		s.W[0], s.W[1] = s.W[1], s.W[0]
	}
	for o := 0; o < NO; o++ {
		if s.row[o] != none { // values that no longer matter
			if F["memkeep"] {
				s.mem[o] = 0
			}
			s.wiped &^= 1 << o
			if s.by[o] != 0 {
				s.by[o] = 1
			}
		}
	}
	for i := range s.alive {
		if !s.alive[i] {
			s.view[i], s.iep[i], s.sent[i] = 0, 0, 0
		}
	}
	if s.loss >= uint8(*maxLoss) {
		s.K, s.persist = Led{}, 0
	}
	a, b := s.R[0], s.R[1]
	if a.pc < b.pc || a.pc == b.pc && a.ep < b.ep {
		s.R[0], s.R[1] = b, a
	}
}
func led(s *S, v uint8) *Led {
	if v == 1 {
		return &s.Old
	}
	return &s.L
}
func ack(s *S, w *Wk) {
	switch w.src {
	case 0:
		s.L.out[w.o] &^= 1 << w.ep
	case 1:
		s.Old.out[w.o] &^= 1 << w.ep
	case 2:
		s.brk[w.o] &^= 1 << w.ep
	case 3: // instance memory: forgotten only when the row exists (memkeep), else at once
		if !F["memkeep"] {
			s.mem[w.o] = 0
		}
	}
}
func touched(s *S) { s.W[0].ver, s.W[1].ver = false, false }

func wipe(s *S, was, now Led) {
	for o := 0; o < NO; o++ {
		if was.out[o]&^now.out[o] != 0 {
			s.wiped |= 1 << o
		}
	}
}
