// Model of the audit: order by order, marks against rows, while traffic goes on.
//
// The ledger reserves, workers write rows or letters and acknowledge, orders
// die in the store and are released, the counter sells, the ledger is rebuilt.
// An audit reads all rows at one instant and then the marks, one by one. It must
// not raise an alarm unless somebody changed something by hand, and must if so.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"model/mc"
)

var (
	off      = flag.String("off", "", "rules to switch off: begin, queue, letter, order, row, bare, live, origin, epoch")
	claims   = flag.Int("claims", 1, "order numbers")
	keys     = flag.String("keys", "own", "own, none, or one for both orders, which are then one buyer's")
	oneBuyer = flag.Bool("one", false, "both orders are one buyer's")
	counter  = flag.Bool("counter", true, "the store sells too")
	rebuilds = flag.Int("rebuilds", 1, "rebuilds")
	lates    = flag.Int("lates", 1, "claims that somebody carries out again")
	drifts   = flag.Int("drifts", 0, "changes by hand")
	audits   = flag.Bool("audits", true, "audits go on beside")
	sums     = flag.Bool("sums", true, "the sums of the cut are compared, too")
	leaks    = flag.Bool("leaks", false, "a mark that stays without anybody's hand is a violation, too")
	most     = flag.Int("max", 20_000_000, "states")
)

func on(rule string) bool {
	for _, r := range strings.Split(*off, ",") {
		if r == rule {
			return false
		}
	}
	return true
}

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

func (r row) String() string {
	text := []string{"not there", "live", "cancelled", "failed"}[r.state]
	if r.state == none {
		return text
	}
	if r.counter {
		text += ", the counter's"
	}
	return fmt.Sprintf("%s, buyer %c, key %d", text, 'A'+rune(r.buyer), r.key)
}

func falseAlarm(s S) string {
	if s.audit.at == alarmed && s.drift == 0 {
		return "FALSE ALARM"
	}
	return ""
}

// truth is what an audit at rest must tell.
func truth(s S) string {
	if s.audit.at == alarmed {
		return ""
	}
	marked, ours, same := 0, 0, true
	for i, m := range s.marks {
		r := s.orders[i].row
		if m.held {
			marked++
		}
		if r.ours() {
			ours++
		}
		same = same && m.held == r.ours() && (!m.held || m.number == uint8(i) && m.buyer == r.buyer && m.key == r.key)
	}
	switch found := alarms(s) || *sums && marked != ours; {
	case s.drift == 0 && !same && *leaks:
		return "marks and rows differ, and nobody changed anything by hand"
	case s.drift == 0 && alarms(s):
		return "FALSE ALARM"
	case !found && !same:
		return "a change by hand is not found"
	}
	return ""
}

func main() {
	flag.Parse()
	name := fmt.Sprintf("audit claims=%d keys=%s drifts=%d off=%s", *claims, *keys, *drifts, *off)
	if !mc.Run(name, S{epoch: 1, ledger: 1}, next, falseAlarm, truth, *most, func(s S) string { return fmt.Sprintf("%+v", s) }) {
		os.Exit(1)
	}
}
