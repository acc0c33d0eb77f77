// Model of the audit: marks are compared with rows, order by order, while traffic goes on.
//
// The ledger reserves; workers write rows or letters and acknowledge; letters are retried and discarded; orders die in
// the store and are released; the counter sells under the same numbers; the ledger is rebuilt, and claims of before are
// adopted. Any claim, or letter, may be in two hands. An audit reads all rows at one instant, then the marks one by one,
// and looks again at what does not match. It must not raise an alarm unless somebody changed something by hand, and
// must, with the sums of the cut, if somebody did and that is still there when traffic rests.
//
// So traffic itself must leave no mark that no row accounts for: what it leaves would be an alarm, and rightly. Nor may
// a claim that was parked lose its unit to a rebuild.
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
	off = flag.String("off", "", `rules to switch off, of the audit:
begin   it does not begin while the product is marked for a rebuild
epoch   it ends without a word if the product is marked, or in another epoch, by then
queue   an order whose entry is queued needs no row
letter  nor does one that has a letter
order   the mark is read again before the letter is looked for
row     the row of an order in a mark is read last
bare    a failed order without a key left it to another order
origin  orders of the counter need no mark
live    the row of an order without a mark is read last
key     the key of a dead order has to be known
failed  but that of one that failed
share   and that of one of the counter
first   all rows are read before the marks
of those who settle claims:
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
	counter  = flag.Bool("counter", true, "the store sells too")
	rebuilds = flag.Int("rebuilds", 1, "rebuilds, at most 2")
	lates    = flag.Int("lates", 1, "claims and letters that are in a second hand, one at a time")
	drifts   = flag.Int("drifts", 0, "changes by hand")
	audits   = flag.Bool("audits", true, "audits go on beside; one at rest is made in any case")
	sums     = flag.Bool("sums", true, "what the cut finds counts")
	most     = flag.Int("max", 20_000_000, "states")
)

// on tells whether a rule is kept.
func on(rule string) bool { return !slices.Contains(strings.Split(*off, ","), rule) }

// broken is checked in every state.
func broken(s S) string {
	if s.audit.at == alarmed && s.drift == 0 {
		return "FALSE ALARM"
	}
	for o := range s.orders {
		if s.orders[o].lost && s.drift == 0 {
			return fmt.Sprintf("o%d was parked, and lost its unit to a rebuild", o)
		}
	}
	return ""
}

// truth is checked when traffic rests.
func truth(s S) string {
	if s.audit.at == alarmed {
		return ""
	}
	marked, owned, same := 0, 0, true
	for i, m := range s.marks {
		it := &s.orders[i]
		if it.asked && it.row.state == none && s.drift == 0 {
			return fmt.Sprintf("o%d ended as nothing", i)
		}
		if m.held {
			marked++
		}
		if it.row.ours() {
			owned++
		}
		same = same && m.held == it.row.ours() && s.right(i) && (!it.row.known() || s.remembers(uint8(i), it.row))
	}
	found := alarms(s)
	switch {
	case s.drift == 0 && !same:
		return "a mark and its row differ, and nobody changed anything by hand"
	case s.drift == 0 && found:
		return "FALSE ALARM"
	case !same && !found && !(*sums && marked != owned):
		return "a change by hand is not found"
	}
	return ""
}

// right tells whether what is in an order's place in a mark is true. A key may lead to any order that has it, or has left
// it to another.
func (s *S) right(place int) bool {
	m := s.marks[place]
	return m == mark{} || m.agrees(s.rowOf(m.number)) && (m.returned || m.number == uint8(place))
}

func main() {
	flag.Parse()
	name := fmt.Sprintf("audit claims=%d keys=%s rebuilds=%d lates=%d drifts=%d off=%s", *claims, *keys, *rebuilds, *lates, *drifts, *off)
	if !mc.Run(name, S{epoch: 1, ledger: 1}, next, broken, truth, *most, nil) {
		os.Exit(1)
	}
}
