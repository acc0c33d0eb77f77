// Model of the sold-out flag: two instances and one ledger that notifies them
// of its buyers.
//
// A ledger step that sells puts the buyer into the notices for the other
// instance, in order, and answers the caller. The answer "nothing free" sets a
// flag, and the first instance makes the other one set its flag too. A flag
// refuses all buyers that its instance does not know. So the instance must know
// every buyer that had bought before the flag was set.
package main

import (
	"flag"
	"fmt"
	"os"

	"model/mc"
)

const (
	instances = 2
	lanes     = 2
	buyers    = 2
	inbox     = 6
)

var (
	off     = flag.String("off", "", "a rule to switch off: fence (notes are heard first), calls (own calls end first), lowered (no proof from before units came back)")
	claims  = flag.Int("claims", 3, "claims in all, repeated ones included")
	returns = flag.Int("returns", 1, "units that come back")
	fences  = flag.Int("fences", 1, "barriers that are published, those that fail included")
)

// steps of a lane's call
const (
	idle uint8 = iota
	sent
	answered
)

type lane struct {
	at, buyer uint8
	sold      bool
	proof     bool  // the answer: nothing free
	had       uint8 // the buyers that had bought by then
	old       bool  // units were returned after the call was sent
}

// steps of raising a flag
const (
	none uint8 = iota
	due
	fenced  // its barrier is sent
	calling // waits for its own calls
)

type raising struct {
	at, barrier uint8
	had         uint8
	calls       uint8 // lanes
	old         bool
}

// word is the other instance's message that nothing was free.
type word struct {
	there, old bool
	had        uint8
}

type instance struct {
	lanes [lanes]lane
	known uint8
	notes [inbox]uint8 // notices in order: buyers from 1, barriers from 100
	raise raising
	word  word
	back  bool // a notice is on its way: units were returned
	up    bool
	had   uint8 // the buyers that had bought when the flag's proof was made
	old   bool
}

type S struct {
	free     uint8
	had      uint8 // buyers in the ledger
	claims   uint8
	returns  uint8
	barriers uint8
	in       [instances]instance
}

func put(notes *[inbox]uint8, note uint8) {
	for i := range notes {
		if notes[i] == 0 {
			notes[i] = note
			return
		}
	}
	panic("the inbox is too small")
}

func (i *instance) begin(had uint8, old bool) {
	if i.raise.at == none { // a waiting request also covers later ones
		i.raise = raising{at: due, had: had, old: old}
	}
}

// caughtUp continues to set the flag after the notices were received.
func (i *instance) caughtUp() {
	i.raise.at, i.raise.calls = calling, 0
	for l := range i.lanes {
		if i.lanes[l].at != idle && *off != "calls" {
			i.raise.calls |= 1 << l
		}
	}
	i.settle()
}

// settle sets the flag if no earlier call is open.
func (i *instance) settle() {
	if i.raise.at != calling || i.raise.calls != 0 {
		return
	}
	if !i.raise.old || *off == "lowered" {
		i.up, i.had, i.old = true, i.raise.had, i.raise.old
	}
	i.raise = raising{}
}

func (i *instance) lower() {
	i.up, i.had, i.old = false, 0, false
	i.raise.old = i.raise.at != none
	i.word.old = i.word.there
	for l := range i.lanes {
		i.lanes[l].old = i.lanes[l].at != idle
	}
}

func next(s S) (r []mc.Step[S]) {
	add := func(fault bool, n S, text string, args ...any) {
		r = append(r, mc.Step[S]{L: fmt.Sprintf(text, args...), S: n, Fault: fault})
	}
	for k := range s.in {
		for l := range s.in[k].lanes {
			call(s, k, l, add)
		}
		hear(s, k, add)
		raise(s, k, add)
		if s.had != 0 && int(s.returns) < *returns {
			n := s
			n.free++
			n.returns++
			n.in[k].lower()
			n.in[1-k].back = true
			add(true, n, "a unit comes back at instance %d", k)
		}
	}
	return r
}

// call has the steps of a claim: sent, executed, answered.
func call(s S, k, l int, add func(bool, S, string, ...any)) {
	switch c := s.in[k].lanes[l]; c.at {
	case idle:
		for b := range uint8(buyers) {
			if int(s.claims) < *claims && !(s.in[k].up && s.in[k].known&(1<<b) == 0) {
				n := s
				n.claims++
				n.in[k].lanes[l] = lane{at: sent, buyer: b}
				add(true, n, "instance %d sends a claim of buyer %d by lane %d", k, b, l)
			}
		}
	case sent:
		n := s
		m := &n.in[k].lanes[l]
		m.at = answered
		if s.had&(1<<c.buyer) == 0 && s.free > 0 {
			n.free--
			n.had |= 1 << c.buyer
			put(&n.in[1-k].notes, c.buyer+1)
		}
		m.sold, m.proof, m.had = n.had&(1<<c.buyer) != 0, n.free == 0, n.had
		add(false, n, "the ledger executes lane %d of instance %d: buyer %d has an order: %v, %d free", l, k, c.buyer, m.sold, n.free)
	case answered:
		n := s
		i := &n.in[k]
		i.lanes[l] = lane{}
		if c.sold {
			i.known |= 1 << c.buyer
		}
		i.raise.calls &^= 1 << l
		i.settle()
		if c.proof {
			i.begin(c.had, c.old)
			n.in[1-k].word = word{there: true, had: c.had}
		}
		add(false, n, "instance %d hears the answer on lane %d", k, l)
	}
}

// hear delivers messages to an instance.
func hear(s S, k int, add func(bool, S, string, ...any)) {
	if note := s.in[k].notes[0]; note != 0 {
		n := s
		i := &n.in[k]
		copy(i.notes[:], s.in[k].notes[1:])
		i.notes[inbox-1] = 0
		if note < 100 {
			i.known |= 1 << (note - 1)
		} else if i.raise.at == fenced && i.raise.barrier == note {
			i.caughtUp()
		}
		add(false, n, "instance %d hears note %d", k, note)
	}
	if w := s.in[k].word; w.there {
		n := s
		n.in[k].word = word{}
		n.in[k].begin(w.had, w.old)
		add(false, n, "instance %d hears that nothing was free", k)
	}
	if s.in[k].back {
		n := s
		n.in[k].back = false
		n.in[k].lower()
		add(false, n, "instance %d hears that a unit came back", k)
	}
}

// raise has the steps that set a flag, and its expiry.
func raise(s S, k int, add func(bool, S, string, ...any)) {
	switch s.in[k].raise.at {
	case due:
		n := s
		i := &n.in[k]
		switch {
		case *off == "fence":
			i.caughtUp()
			add(false, n, "instance %d does not wait for notes", k)
		case int(s.barriers) < *fences:
			n.barriers++
			i.raise.at, i.raise.barrier = fenced, 99+n.barriers
			put(&i.notes, i.raise.barrier)
			add(false, n, "instance %d has barrier %d published", k, i.raise.barrier)
		default:
			i.raise = raising{}
			add(false, n, "instance %d cannot publish", k)
		}
	case fenced:
		n := s
		n.in[k].raise = raising{}
		add(true, n, "instance %d gives up on its barrier", k)
	}
	if s.in[k].up {
		n := s
		n.in[k].up, n.in[k].had, n.in[k].old = false, 0, false
		add(true, n, "the flag of instance %d falls", k)
	}
}

// found is the promise: a set flag refuses no buyer that had bought before, and
// is cleared by the notice that units were returned.
func found(s S) string {
	for k := range s.in {
		i := &s.in[k]
		for b := range uint8(buyers) {
			if i.up && i.had&^i.known&(1<<b) != 0 {
				return fmt.Sprintf("buyer %d has an order, repeats the claim at instance %d and is told sold_out", b, k)
			}
		}
		if i.up && i.old {
			return fmt.Sprintf("the flag of instance %d stands by a proof from before a unit came back", k)
		}
	}
	return ""
}

func main() {
	flag.Parse()
	rest := func(s S) string {
		for k := range s.in {
			if s.in[k].raise.at != none {
				return fmt.Sprintf("instance %d waits for ever to raise its flag", k)
			}
		}
		return ""
	}
	if !mc.Run("flag, off="+*off, S{free: 1}, next, found, rest, 20_000_000, func(s S) string { return fmt.Sprintf("%+v", s) }) {
		os.Exit(1)
	}
}
