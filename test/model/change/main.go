// Model of a stock reduction during recoveries. The change goes to the ledger
// first, then to the store.
//
// Several finishers work on one change. Each reads the product's epoch, stamps
// the change with it, sends it to the ledger with that stamp, and writes the
// verdict to the store. The ledger decides once per epoch and repeats its
// verdict. In between, recoveries rebuild the ledger from the store.
package main

import (
	"flag"
	"fmt"
	"os"

	"model/mc"
)

const (
	finishers = 2
	down      = 2 // units to take away
	offered   = 2
	epochs    = 3
)

// verdicts of a ledger
const (
	unheard uint8 = iota
	taken
	refused
)

// steps of a finisher
const (
	idle uint8 = iota
	stamping
	telling
	settling
)

type finisher struct{ at, epoch, verdict uint8 }

type S struct {
	storeEpoch, ledgerEpoch uint8
	stock, free             int8
	queued, rows            int8 // promised units and confirmed units
	settled                 bool
	stamp, verdict          uint8 // the verdict of the current ledger
	fin                     [finishers]finisher
}

var off = flag.String("off", "", "a rule to switch off: verdict (only that of the stamp settles), stamp (it never goes back)")

func next(s S) (r []mc.Step[S]) {
	add := func(fault bool, n S, text string, args ...any) {
		r = append(r, mc.Step[S]{L: fmt.Sprintf(text, args...), S: n, Fault: fault})
	}
	live := s.storeEpoch == s.ledgerEpoch
	if live && s.free > 0 {
		n := s
		n.free--
		n.queued++
		add(true, n, "a unit is promised")
	}
	if live && s.queued > 0 {
		n := s
		n.queued--
		n.rows++
		n.stock--
		add(false, n, "a unit is confirmed")
	}
	if live && s.rows > 0 {
		n := s
		n.rows--
		n.stock++
		n.free++
		add(true, n, "a unit is cancelled and released")
	}
	if live && s.queued == 0 && s.storeEpoch < epochs {
		n := s
		n.storeEpoch++
		add(true, n, "the store opens epoch %d", n.storeEpoch)
	}
	if !live {
		n := s
		n.ledgerEpoch, n.free, n.verdict = s.storeEpoch, s.stock, unheard
		add(false, n, "the ledger is installed with %d free", n.free)
	}
	for k := range s.fin {
		finish(s, k, add)
	}
	return r
}

func finish(s S, k int, add func(bool, S, string, ...any)) {
	n, f := s, &s.fin[k]
	m := &n.fin[k]
	switch f.at {
	case idle:
		if !s.settled {
			*m = finisher{at: stamping, epoch: s.storeEpoch}
			add(false, n, "finisher %d reads epoch %d", k, s.storeEpoch)
		}
	case stamping:
		if s.settled || *off != "stamp" && s.stamp > f.epoch {
			*m = finisher{}
		} else {
			n.stamp, m.at = f.epoch, telling
		}
		add(false, n, "finisher %d stamps %d", k, n.stamp)
	case telling:
		if s.ledgerEpoch != f.epoch {
			*m = finisher{}
		} else {
			if n.verdict == unheard {
				n.verdict = refused
				if n.free >= down {
					n.free -= down
					n.verdict = taken
				}
			}
			m.at, m.verdict = settling, n.verdict
		}
		add(false, n, "finisher %d hears verdict %d of epoch %d", k, m.verdict, f.epoch)
	case settling:
		*m = finisher{}
		void := s.settled || *off != "verdict" && s.stamp != f.epoch
		if f.verdict == taken && s.storeEpoch != s.stamp {
			void = true
		}
		if !void {
			n.settled = true
			if f.verdict == taken {
				n.stock -= down
			}
		}
		add(false, n, "finisher %d settles by verdict %d of epoch %d: %v", k, f.verdict, f.epoch, !void)
	}
}

// balanced is I5: the current ledger has the store's units, minus the units
// that it took for an open change.
func balanced(s S) string {
	want := s.stock - s.queued
	if !s.settled && s.verdict == taken {
		want -= down
	}
	if s.storeEpoch == s.ledgerEpoch && s.free != want {
		return fmt.Sprintf("I5: the ledger has %d free, the store %d", s.free, want)
	}
	return ""
}

func main() {
	flag.Parse()
	start := S{storeEpoch: 1, ledgerEpoch: 1, stock: offered, free: offered, stamp: 1}
	settled := func(s S) string {
		if !s.settled {
			return "the change is never settled"
		}
		return ""
	}
	if !mc.Run("change down, off="+*off, start, next, balanced, settled, 1_000_000, func(s S) string { return fmt.Sprintf("%+v", s) }) {
		os.Exit(1)
	}
}
