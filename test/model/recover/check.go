// Invariants of every state, and of states at rest.
package main

import (
	"fmt"
)

func inv(s S) string {
	if s.stock < 0 || s.stock+pop(live(&s)) != int8(*N) {
		return "I1/I2"
	}
	if s.again {
		return "a key whose order the snapshot had is sold again"
	}
	for b := 0; b < 2; b++ {
		if held(live(&s), b) > 1 {
			return "I3 in the store"
		}
	}
	return ""
}
func final(s S) string {
	if s.capped {
		return ""
	}
	for o := 0; o < NO; o++ {
		if s.by[o] != 0 && s.row[o] == none {
			if s.wiped>>o&1 == 1 && !s.alive[s.by[o]-1] {
				continue // unsaveable: entry lost with the ledger and the instance that knew is dead
			}
			return fmt.Sprintf("I4: o%d promised, nothing in the store", o)
		}
	}
	if s.row[0] == duplicate && s.row[2] == duplicate {
		return "one key, two numbers, each failed as the other's duplicate"
	}
	if s.L.ep != s.sEp || !s.L.open {
		return "ledger not open at the store's epoch"
	}
	if *strict || s.death == 0 {
		if s.L.mark != live(&s) {
			return fmt.Sprintf("I3/I5: marks %03b, live rows %03b", s.L.mark, live(&s))
		}
		if s.L.avail != s.stock {
			return fmt.Sprintf("I5: ledger sells %d, store has %d", s.L.avail, s.stock)
		}
	}
	return ""
}
