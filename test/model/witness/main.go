// Model of the queue's witness and the recoveries after its loss. All processes
// that could detect the loss by numbered calls are dead, so only the witness
// shows it.
package main

import (
	"flag"
	"fmt"
	"model/mc"
	"os"
	"strings"
)

const (
	NO = 3 // orders: 0 and 2 of product 0, 1 of product 1
	NS = 5 // entries of the stream
)

var productOf = [NO]uint8{0, 1, 0}

const (
	none = iota
	pending
)

// Ent is an entry. Its tag distinguishes it from a later entry with the same
// number.
type Ent struct{ o, ep, tag uint8 }

// ID identifies an entry; seq 0 means none.
type ID struct{ seq, tag uint8 }

// Prod is a product's shard.
type Prod struct {
	ep   uint8
	open bool
	mark uint8
}

// Red is the data of one bucket, which is lost together.
type Red struct {
	n    uint8
	s    [NS + 1]Ent
	pend uint8 // bit seq
	wit  ID    // the highest in an acknowledgement
	P    [2]Prod
}

// Wk is a worker. It keeps its entry if the stream is lost.
type Wk struct {
	pc, seq uint8
	e       Ent
	wit     ID
	eps     [2]uint8
}

// Rec is a recoverer of product p.
type Rec struct {
	pc, p, seen, ep uint8
	lost            ID
	eps             [2]uint8
	marks           uint8
}

type S struct {
	L, K                     Red
	sEp                      [2]uint8
	reb                      [2]bool
	row                      [NO]uint8
	wit                      ID
	W                        [2]Wk
	R                        [2]Rec
	by, tags                 uint8
	loss, crash, persist, rc uint8
	capped                   bool
}

// Rules; false switches a rule off.
var F = map[string]bool{
	"forget":     true, // after the loss is detected and a rebuild requested, the witness is deleted
	"once":       true, // request and deletion are one transaction of the process that still finds the witness
	"check":      true, // recovery reads the witness before it opens an epoch
	"clearfirst": true, // and clears rebuilding before the ledger opens
}

var (
	maxLoss    = flag.Int("loss", 1, "")
	maxCrash   = flag.Int("crash", 1, "workers and recoverers that die")
	maxPersist = flag.Int("persist", 1, "times that a replica or a file is brought up to date")
	maxRec     = flag.Int("rec", 1, "recoveries without need")
	nw         = flag.Int("w", 1, "workers")
	only       = flag.Int("only", 7, "bit mask of orders")
	maxEp      = flag.Int("ep", 5, "")
	idle       = flag.Bool("idle", false, "a loss meets no entry in hand; then it costs each product one epoch")
	off        = flag.String("off", "", "rules switched off, comma separated")
	max        = flag.Int("max", 12000000, "")
	name       = flag.String("name", "", "")
)

func main() {
	flag.Parse()
	for _, f := range strings.Split(*off, ",") {
		if f != "" {
			if _, ok := F[f]; !ok {
				panic(f)
			}
			F[f] = false
		}
	}
	var s S
	s.sEp = [2]uint8{1, 1}
	s.L.P = [2]Prod{{ep: 1, open: true}, {ep: 1, open: true}}
	s.K = s.L
	nm := *name
	if nm == "" {
		nm = "off=" + *off
	}
	if !mc.Run(nm, s, next, inv, final, *max, func(s S) string { return fmt.Sprintf("%+v", s) }) {
		os.Exit(1)
	}
}

func live(s *S, p uint8) (m uint8) {
	for o := range s.row {
		if s.row[o] == pending && productOf[o] == p {
			m |= 1 << o
		}
	}
	return m
}

func (r *Red) has(id ID) bool { return id.seq <= r.n && r.s[id.seq].tag == id.tag }

func (r *Red) append(o, tag uint8) {
	r.n++
	r.s[r.n] = Ent{o, r.P[productOf[o]].ep, tag}
	r.pend |= 1 << r.n
}

func raise(to *ID, id ID) {
	if id.seq > to.seq {
		*to = id
	}
}

func inv(S) string { return "" }

func final(s S) string {
	if s.capped {
		return ""
	}
	for p := uint8(0); p < 2; p++ {
		l := s.L.P[p]
		if l.ep != s.sEp[p] || !l.open || s.reb[p] {
			return fmt.Sprintf("product %d is not open at the store's epoch", p)
		}
		if l.mark != live(&s, p) {
			return fmt.Sprintf("I3: product %d has marks %03b, live rows %03b", p, l.mark, live(&s, p))
		}
		if *idle && s.sEp[p] > 1+s.loss+s.rc {
			return fmt.Sprintf("product %d was rebuilt twice for one loss: epoch %d", p, s.sEp[p])
		}
	}
	return ""
}
