// Model of a limit group in takeovers. Two products share the limit of one
// buyer, and the buyer wants one unit of each.
//
// The store takes products over and opens them. A rebuilder returns them to the
// ledger, and the ledger counts its marks of both products. The rebuilder may
// die at any step, and the next one begins. Takeovers may begin at any time.
// Another instance may start, or return after its lease expired; it
// acknowledges epochs that are not open yet. Promises of the ledger are written
// at once. A promise fails if the buyer is at the limit, and this must not
// happen.
package main

import (
	"flag"
	"fmt"
	"os"

	"model/mc"
)

const products = 2

var (
	off       = flag.String("off", "", "a rule to switch off: together (the ledger opens only if the store sells nothing of the group), opened (who comes later need not acknowledge a product that is open)")
	late      = flag.Bool("late", false, "another instance comes, once")
	takeovers = flag.Int("takeovers", 3, "takeovers in all")
	rebuilds  = flag.Int("rebuilds", 3, "rebuilds in all")
)

type terms struct {
	epoch      uint8
	store      bool // the seller
	open       bool // the store
	rebuilding bool
}

type product struct {
	row    terms
	known  terms // to the instance that sells
	acked  uint8 // epoch
	orders uint8 // of the buyer

	ledger, marks uint8 // epoch, and the buyer's units
	selling       bool  // the ledger is open
}

// steps of a rebuilder
const (
	idle uint8 = iota
	snapshot
	install
	look
	snapshotOther
	installOther
	takeBack
	open
	openOther
)

type rebuilder struct {
	at, first uint8
	seen      uint8           // epoch of the product that is built next
	built     [products]uint8 // epochs; 0 for none
	orders    uint8           // of the snapshot
}

type S struct {
	p         [products]product
	r         rebuilder
	late      bool            // another instance has come
	lateAcked [products]uint8 // its epochs
	takeovers uint8
	rebuilds  uint8
	failed    bool
}

func next(s S) (r []mc.Step[S]) {
	add := func(fault bool, n S, text string, args ...any) {
		r = append(r, mc.Step[S]{L: fmt.Sprintf(text, args...), S: n, Fault: fault})
	}
	for i := range s.p {
		sell(s, i, add)
		takeOver(s, i, add)
	}
	if *late && !s.late {
		n := s
		n.late = true
		add(true, n, "another instance comes")
	}
	rebuild(s, add)
	return r
}

// sell has the steps of the buyer and the instance.
func sell(s S, i int, add func(bool, S, string, ...any)) {
	p, held := &s.p[i], s.p[0].orders+s.p[1].orders
	// A rebuild that has begun adopts the promises of the epoch before (protocol
	// 3).
	adopted := !p.row.store && p.row.epoch != p.ledger
	if k := p.known; !k.store && !k.rebuilding && k.epoch == p.ledger && p.selling && !adopted && s.p[0].marks+s.p[1].marks == 0 {
		n := s
		n.p[i].marks++
		n.failed = held > 0
		if held == 0 {
			n.p[i].orders++
		}
		add(true, n, "the ledger sells product %d", i)
	}
	if p.row.store && p.row.open && held == 0 {
		n := s
		n.p[i].orders++
		add(true, n, "the store sells product %d", i)
	}
	n := s
	n.p[i].known = p.row
	add(false, n, "the instance reads product %d: %+v", i, p.row)
	if k := p.known; k.store && !k.open {
		n := s
		n.p[i].acked = max(p.acked, k.epoch)
		add(false, n, "the instance acknowledges epoch %d of product %d", k.epoch, i)
	}
}

func takeOver(s S, i int, add func(bool, S, string, ...any)) {
	row := s.p[i].row
	if !row.store && int(s.takeovers) < *takeovers {
		n := s
		n.takeovers++
		n.p[i].row = terms{epoch: row.epoch + 1, store: true}
		add(true, n, "product %d is taken over: epoch %d", i, row.epoch+1)
	}
	if s.late && row.store && !row.open {
		n := s
		n.lateAcked[i] = row.epoch
		add(false, n, "the other instance acknowledges epoch %d of product %d", row.epoch, i)
	}
	for k := range s.p {
		q := &s.p[k]
		acked := q.acked == q.row.epoch && (!s.late || s.lateAcked[k] == q.row.epoch) || q.row.open && *off != "opened"
		if !q.row.store || !acked {
			return
		}
	}
	n := s
	n.p[i].row.open = true
	add(false, n, "the store opens for product %d", i)
}

func rebuild(s S, add func(bool, S, string, ...any)) {
	r := s.r
	mine, other := int(r.first), 1-int(r.first)
	step := func(fault bool, at uint8, change func(n *S, m *rebuilder), text string, args ...any) {
		n := s
		n.r.at = at
		if change != nil {
			change(&n, &n.r)
		}
		if at == idle {
			n.r = rebuilder{}
		}
		add(fault, n, "the rebuilder "+text, args...)
	}
	if r.at != idle {
		step(true, idle, nil, "dies")
	}
	begin := func(p int, then uint8) {
		if row := s.p[p].row; row.epoch == r.seen {
			step(false, then, func(n *S, m *rebuilder) {
				n.p[p].row = terms{epoch: row.epoch + 1, rebuilding: true}
				m.built[p], m.orders = row.epoch+1, s.p[p].orders
			}, "opens epoch %d of product %d", row.epoch+1, p)
		} else {
			step(false, idle, nil, "finds another epoch of product %d", p)
		}
	}
	put := func(p int, then uint8) {
		if s.p[p].ledger < r.built[p] {
			step(false, then, func(n *S, m *rebuilder) {
				n.p[p].ledger, n.p[p].marks, n.p[p].selling = r.built[p], r.orders, false
				m.orders = 0
			}, "installs epoch %d of product %d", r.built[p], p)
		} else {
			step(false, idle, nil, "finds a higher epoch of product %d in the ledger", p)
		}
	}
	sells := func(p int, then uint8) {
		if s.p[p].ledger == r.built[p] {
			step(false, then, func(n *S, _ *rebuilder) { n.p[p].selling = true }, "opens the ledger of product %d", p)
		} else {
			step(false, then, nil, "does not open the ledger of product %d", p)
		}
	}
	switch r.at {
	case idle:
		for p := range s.p {
			if int(s.rebuilds) < *rebuilds {
				step(true, snapshot, func(n *S, m *rebuilder) {
					n.rebuilds++
					m.first, m.seen = uint8(p), s.p[p].row.epoch
					n.p[p].selling = false
				}, "begins with product %d, and closes it", p)
			}
		}
	case snapshot:
		begin(mine, install)
	case install:
		put(mine, look)
	case look:
		if q := s.p[other].row; q.store || q.rebuilding {
			step(false, snapshotOther, func(n *S, m *rebuilder) {
				m.seen, n.p[other].selling = q.epoch, false
			}, "takes product %d along, and closes it", other)
		} else {
			step(false, takeBack, nil, "leaves product %d alone", other)
		}
	case snapshotOther:
		begin(other, installOther)
	case installOther:
		put(other, takeBack)
	case takeBack:
		refused := false
		for p, row := range [products]terms{s.p[0].row, s.p[1].row} {
			if built := r.built[p]; built != 0 {
				refused = refused || row.epoch != built
			} else {
				refused = refused || row.store
			}
		}
		if refused && *off != "together" {
			step(false, idle, nil, "is refused the opening")
			return
		}
		step(false, open, func(n *S, _ *rebuilder) {
			for p := range n.p {
				if row := &n.p[p].row; row.epoch == r.built[p] && !row.store {
					row.rebuilding = false
				}
			}
		}, "takes the marks back")
	case open:
		sells(mine, openOther)
	case openOther:
		sells(other, idle)
	}
}

func main() {
	flag.Parse()
	one := product{row: terms{epoch: 1}, known: terms{epoch: 1}, ledger: 1, selling: true}
	found := func(s S) string {
		if s.failed {
			return "a promise of the ledger fails: the buyer is at the limit by an order that the ledger does not know"
		}
		return ""
	}
	atRest := func(s S) string {
		if a, b := s.p[0].row, s.p[1].row; a.store && b.store && !(a.open && b.open) {
			return "both products are taken over, and the store does not open for one of them"
		}
		return ""
	}
	if !mc.Run("group, off="+*off, S{p: [products]product{one, one}}, next, found, atRest, 20_000_000, func(s S) string { return fmt.Sprintf("%+v", s) }) {
		os.Exit(1)
	}
}
