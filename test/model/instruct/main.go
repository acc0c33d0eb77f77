// Model of instructions: an operator pauses or ends a sale while the store
// cannot be reached.
//
// One operator gives instructions ("words") one after the other, to the store,
// or to the ledger at an instance that cannot reach the store. Carrier 0 is
// that instance: it remembers an instruction until it has written it to the
// store. Carrier 1 is another instance. A keeper repeats to the ledger a state
// that it read in the store earlier. A rebuild can happen, the ledger can lose
// everything, and the instance that took an instruction can die.
package main

import (
	"flag"
	"fmt"
	"os"

	"model/mc"
)

// states of a sale, the higher the stronger
const (
	open uint8 = iota
	paused
	ended
)

const carriers = 2

// at is where a process is.
const (
	idle uint8 = iota
	settling
	telling
	setting
	forgetting
	installing
	looking
	opening
)

// process is a carrier, the operator, the keeper or the rebuilder, with the
// values that it has read.
type process struct{ at, word, state, version, epoch uint8 }

type S struct {
	// The store. Word n is bit n.
	state, version, epoch, written uint8

	// The ledger. kept is the number of its instruction, 0 for none.
	shown, stated, live, kept uint8
	sells                     bool

	memory uint8    // words in the memory of the instance that took them
	states [4]uint8 // of the words
	words  uint8    // given so far
	asked  uint8    // the state that the operator has an answer for

	carry                   [carriers]process
	operator, keeper, build process

	reads, rebuilds, losses, deaths uint8
}

var (
	off      = flag.String("off", "", "a rule to switch off: refuse, keep, once, first, own, order, beats, memory, last, fresh, note")
	words    = flag.Int("words", 3, "words of the operator")
	rebuilds = flag.Int("rebuilds", 1, "")
	losses   = flag.Int("losses", 0, "of the ledger")
	deaths   = flag.Int("deaths", 0, "of the instance that took the instructions")
)

func with(rule string) bool { return *off != rule }

// bit is a word in a set.
func bit(word uint8) uint8 { return 1 << word }

// tellStore is store.SetState: a word is applied once, and an ended sale stays
// ended.
func (s *S) tellStore(word uint8) {
	if with("once") && s.written&bit(word) != 0 {
		return
	}
	s.written |= bit(word)
	if state := s.states[word]; s.state != ended && s.state != state {
		s.state = state
		s.version++
	}
}

// floor is the state below which the ledger does not go.
func (s *S) floor() uint8 {
	if s.kept == 0 {
		return open
	}
	return s.states[s.kept]
}

// setLedger is ledger.SetState, and Close of the epoch before if that epoch is
// still there.
func (s *S) setLedger(state, version, epoch uint8) {
	switch {
	case s.live == epoch && version >= s.stated:
		s.shown, s.stated = state, version
		if with("refuse") {
			s.shown = max(state, s.floor())
		}
	case s.live < epoch:
		s.sells = false
	}
}

// instruct is ledger.Instruct. The instance remembers the word that the ledger
// keeps now.
func (s *S) instruct(word uint8) {
	if known := s.remembered(s.states[word]); known != 0 && !with("fresh") {
		word = known
	}
	if s.kept == 0 || s.states[word] > s.floor() || !with("beats") {
		s.kept = word
	}
	s.shown = max(s.shown, s.states[word])
	s.memory |= bit(s.kept)
	if !with("note") {
		s.memory |= bit(word)
	}
}

// remembered is a word that the cut-off instance remembers and that is as strong as a state, 0 for none.
func (s *S) remembered(state uint8) uint8 {
	for word := s.words; word > 0; word-- {
		if s.memory&bit(word) != 0 && s.states[word] >= state {
			return word
		}
	}
	return 0
}

// settle is ledger.Settle.
func (s *S) settle(word uint8) {
	if s.kept == word || !with("own") {
		s.kept = 0
	}
}

// waiting are the words that an instance knows and that the store may not have.
// Every instance reads them from the ledger.
func (s *S) waiting(remembers bool) (all []uint8) {
	for word := uint8(1); word <= s.words; word++ {
		if s.kept == word || remembers && s.memory&bit(word) != 0 {
			all = append(all, word)
		}
	}
	return all
}

// answered records the state that the operator may now rely on. An end is
// final.
func (s *S) answered(state uint8) {
	if s.asked != ended {
		s.asked = state
	}
}

func next(s S) (r []mc.Step[S]) {
	add := func(fault bool, n S, text string, args ...any) {
		r = append(r, mc.Step[S]{L: fmt.Sprintf(text, args...), S: n, Fault: fault})
	}
	operate(s, add)
	for k := range s.carry {
		bring(s, k, add)
	}
	keep(s, add)
	rebuild(s, add)
	if s.losses < uint8(*losses) {
		n := s
		n.losses++
		n.live, n.kept, n.shown, n.stated, n.sells = 0, 0, open, 0, false
		add(true, n, "the ledger loses all")
	}
	if s.deaths < uint8(*deaths) && s.memory != 0 {
		n := s
		n.deaths++
		n.memory = 0
		add(true, n, "the instance that took it dies")
	}
	return r
}

func operate(s S, add func(bool, S, string, ...any)) {
	n, o := s, &s.operator
	m := &n.operator
	switch o.at {
	case idle:
		if s.words == uint8(*words) {
			return
		}
		for _, state := range []uint8{open, paused, ended} {
			n := s
			n.words++
			n.states[n.words] = state
			n.operator = process{at: telling, word: n.words}
			if state == open {
				n.operator.at = settling
				add(true, n, "the operator resumes, word %d", n.words)
				continue
			}
			add(true, n, "the operator asks the store for state %d, word %d", state, n.words)
			n.operator = process{}
			n.instruct(n.words)
			n.answered(state)
			add(true, n, "the operator has the ledger keep state %d, word %d", state, n.words)
		}
	case settling: // waiting words are written first
		// The sale is resumed at another instance, or, if the ledger has lost all, at the one that remembers.
		waiting := s.waiting(s.losses > 0)
		if len(waiting) == 0 || !with("first") {
			m.at = telling
			add(false, n, "nothing waits before the resume")
			return
		}
		word := waiting[0]
		n.tellStore(word)
		n.setLedger(n.state, n.version, n.epoch)
		n.settle(word)
		if s.losses > 0 {
			n.memory &^= bit(word)
		}
		add(false, n, "word %d is written before the resume", word)
	case telling:
		n.tellStore(o.word)
		*m = process{at: setting, state: n.state, version: n.version, epoch: n.epoch}
		if n.states[o.word] == open {
			n.answered(n.state)
		}
		add(false, n, "the store has word %d: %d", o.word, n.state)
	case setting:
		n.setLedger(o.state, o.version, o.epoch)
		n.answered(o.state)
		*m = process{}
		add(false, n, "the ledger is told, the operator answered")
	}
}

// bring writes one instruction to the store.
func bring(s S, k int, add func(bool, S, string, ...any)) {
	n, c := s, &s.carry[k]
	m := &n.carry[k]
	switch c.at {
	case idle:
		for _, word := range s.waiting(k == 0) {
			n := s
			n.carry[k] = process{at: telling, word: word}
			add(false, n, "carrier %d reads word %d", k, word)
		}
	case telling:
		n.tellStore(c.word)
		if k == 0 {
			n.memory &^= bit(c.word)
		}
		*m = process{at: setting, word: c.word, state: n.state, version: n.version, epoch: n.epoch}
		if !with("order") {
			n.settle(c.word)
		}
		add(false, n, "carrier %d writes word %d: the store has %d", k, c.word, n.state)
	case setting:
		n.setLedger(c.state, c.version, c.epoch)
		m.at = forgetting
		add(false, n, "carrier %d sets the ledger to %d", k, c.state)
	case forgetting:
		n.settle(c.word)
		*m = process{}
		add(false, n, "carrier %d has the ledger forget word %d", k, c.word)
	}
}

// keep repeats to the ledger a state that was read in the store, perhaps long
// ago.
func keep(s S, add func(bool, S, string, ...any)) {
	n := s
	if s.keeper.at == idle {
		n.keeper = process{at: setting, state: s.state, version: s.version, epoch: s.epoch}
		if s.live == s.epoch && s.kept == 0 && s.shown != s.state {
			add(false, n, "the keeper reads %d, which the ledger has not", s.state)
		} else if s.reads == 0 {
			n.reads++
			add(true, n, "the keeper reads %d", s.state)
		}
		return
	}
	n.setLedger(s.keeper.state, s.keeper.version, s.keeper.epoch)
	n.keeper = process{}
	add(false, n, "the keeper sets the ledger to %d", s.keeper.state)
}

func rebuild(s S, add func(bool, S, string, ...any)) {
	n, b := s, &s.build
	m := &n.build
	switch b.at {
	case idle:
		lost := s.live < s.epoch || !s.sells
		if !lost && s.rebuilds == uint8(*rebuilds) {
			return
		}
		if !lost {
			n.rebuilds++
		}
		n.epoch++
		n.version++
		n.sells = false
		*m = process{at: installing, state: s.state, epoch: n.epoch}
		add(!lost, n, "a rebuild reads %d and opens epoch %d", s.state, n.epoch)
	case installing:
		n.live, n.shown, n.stated, n.sells = b.epoch, b.state, 0, false
		if with("keep") {
			n.shown = max(b.state, n.floor())
		} else {
			n.kept = 0
		}
		m.at = looking
		add(false, n, "epoch %d is installed", b.epoch)
	case looking:
		if with("memory") {
			for word := uint8(1); word <= s.words; word++ {
				if s.memory&bit(word) != 0 {
					n.tellStore(word)
				}
			}
		}
		if with("last") || n.state != b.state {
			n.setLedger(n.state, n.version, b.epoch)
		}
		m.at = opening
		add(false, n, "the rebuild reads %d", n.state)
	case opening:
		n.sells = n.live == b.epoch
		*m = process{}
		add(false, n, "epoch %d is opened", b.epoch)
	}
}

// obeyed is the promise: no unit is sold after the answer.
func obeyed(s S) string {
	if s.sells && s.shown == open && s.asked != open {
		return fmt.Sprintf("the ledger sells, and the operator was told %d", s.asked)
	}
	return ""
}

// done must hold at rest: store and ledger have the last word.
func done(s S) string {
	if s.state != s.asked || s.shown != s.asked || !s.sells || s.live != s.epoch || s.kept != 0 || s.memory != 0 {
		return fmt.Sprintf("the operator was told %d; the store has %d, the ledger %d, instruction %d", s.asked, s.state, s.shown, s.kept)
	}
	return ""
}

func main() {
	flag.Parse()
	start := S{version: 1, epoch: 1, live: 1, sells: true}
	if !mc.Run("instruct, off="+*off, start, next, obeyed, done, 6_000_000, func(s S) string { return fmt.Sprintf("%+v", s) }) {
		os.Exit(1)
	}
}
