// Model of settling a claim: its mark, row, entry and letter must agree at
// rest.
//
// The ledger reserves; workers write rows or letters and acknowledge; letters
// are retried and discarded; orders die in the store and are released; the
// store sells directly under the same numbers; the ledger is rebuilt, and
// claims of before are adopted. Two processes may work on the same claim or
// letter.
//
// At rest every claim has a row, and every mark agrees with its row: each mark
// has its row, and each dead order that the ledger sold has its key. A parked
// claim may not lose its unit in a rebuild.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"model/mc"
)

var (
	off = flag.String("off", "", `rules to switch off, of those who settle claims:
fail    who fails a claim that was refused adoption owes the release, if that closes a letter
park    so does who parks a claim, if it has a row
discard and who discards a letter, if it has a row
raise   a claim of a newer epoch is parked over the letter of an older one
own     an adoption closes the letter that was adopted, not one that was written since
debt    a release that was heard settles what was owed when it was told, not what is owed since
and of the ledger:
keep    a release leaves the order's key
install a rebuild installs the keys of dead orders
hold    and parked claims
lift    whose letters are of the new epoch then
`)
	claims   = flag.Int("claims", 1, "order numbers, 1 or 2")
	keys     = flag.String("keys", "own", "own, none, or one for both orders, which are then one buyer's")
	oneBuyer = flag.Bool("buyer", false, "both orders are one buyer's")
	direct   = flag.Bool("direct", true, "the store sells too")
	rebuilds = flag.Int("rebuilds", 1, "rebuilds, at most 2")
	lates    = flag.Int("lates", 1, "claims and letters that are in a second hand, one at a time")
	most     = flag.Int("max", 20_000_000, "states")
)

// on reports whether a rule is switched on.
func on(rule string) bool { return !slices.Contains(strings.Split(*off, ","), rule) }

// broken is checked in every state.
func broken(s S) string {
	for o := range s.orders {
		if s.orders[o].lost {
			return fmt.Sprintf("o%d was parked, and lost its unit to a rebuild", o)
		}
	}
	return ""
}

// truth is checked when traffic rests.
func truth(s S) string {
	for o, m := range s.marks {
		it := &s.orders[o]
		switch {
		case it.asked && it.row.state == none:
			return fmt.Sprintf("o%d ended as nothing", o)
		case m.held != it.row.ours() || !s.right(o):
			return "a mark and its row differ"
		case it.row.known() && !s.remembers(uint8(o), it.row):
			return "the key of a dead order is forgotten"
		}
	}
	return ""
}

// right reports whether an order's part of a mark is correct.
func (s *S) right(place int) bool {
	m := s.marks[place]
	return m == mark{} || m.agrees(s.orders[m.number].row)
}

func main() {
	flag.Parse()
	name := fmt.Sprintf("settle claims=%d keys=%s rebuilds=%d lates=%d off=%s", *claims, *keys, *rebuilds, *lates, *off)
	if !mc.Run(name, S{epoch: 1, ledger: 1}, next, broken, truth, *most, nil) {
		os.Exit(1)
	}
}
