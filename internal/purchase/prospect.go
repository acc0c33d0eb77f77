package purchase

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	// inTimeShare, in quarters, is the part of a claim's time within which its
	// answer must be expected, or the claim is not let in. The last quarter is
	// for steps that take longer than those before them did.
	inTimeShare = 3
	// firstGuess is the part of that time which the first step is taken to last.
	firstGuess = 10
	// stockSlack is how many claims may wait for each free unit: of those ahead
	// some will be refused by their limit, repeat an earlier claim, or give up.
	stockSlack = 2
)

// prospect tells of a line whether a claim that joins it now can be served: in
// time, and by what is left to sell. One that cannot is too hot at once: it
// would only make those behind it late, and be answered busy at its deadline,
// perhaps with an order that nobody knows of. Too hot is not "no": units may
// come back, and those ahead may not take them.
//
// In time. A line is served by its lanes in steps of at most one batch. Who
// joins behind q others waits until q/batch further steps have begun, of which
// the lanes begin one every step/lanes, and then for a step of its own:
//
//	step × (1 + (1 + q/batch) / lanes)
//
// where step is how long steps took, a moving average in which the last one
// counts half. So the line's service rate is lanes × batch / step, what it can
// answer in a second, not what it did: a line that was quiet for an hour has
// answered little and can do much. A quiet line's steps carry few claims and
// are short, so that the first of a crowd are let in generously; after two full
// steps the average is that of full ones. A stall is in the average when its
// step ends, and halved by every step after that; a ledger that answers nothing
// at all is the breaker's to notice. Before the first answer a step is taken to
// last firstGuess of the time.
//
// When the ledger slows down, those whom it let in before may have become late.
// They are told when it is their turn (gather), and their places in the batch
// go to others who can still be served.
//
// By what is left. More than stockSlack claims for each free unit, as the
// ledger said in its last answer, are more than it can serve. A claim asks for
// one unit or more; each counts as one, which errs on the side of letting in.
//
// Whatever the estimates say, as many may wait as all lanes take: one that
// comes back finds all that it can carry, and a claim that finds the line empty
// always gets in. What waits brings about a step, and every step renews both
// estimates, so that none outlives its cause: not a stall, and not the memory
// of empty shelves when units have come back.
//
// A claim costs two atomic loads here; the rest is done once a step.
type prospect struct {
	lanes, batch int64
	budget       time.Duration // within which an answer must be expected
	// carry is how many may wait before one more: what all lanes take at once,
	// should they come back together.
	carry int64

	step atomic.Int64 // moving average of nanoseconds; 0 before the first answer

	// How many may wait before a claim is late, or cannot be served by what is
	// left.
	inTime, inStock atomic.Int64
}

// unknown is what is left of something that nobody has told yet.
const unknown = math.MaxInt64

func (p *prospect) open(lanes int, opt *Options) {
	p.lanes, p.batch, p.budget = int64(lanes), int64(opt.MaxBatch), opt.Timeout*inTimeShare/4
	p.carry = p.lanes*p.batch - 1
	p.inStock.Store(unknown)
	p.inTime.Store(p.room(p.budget / firstGuess))
}

// room is how many may wait when steps last so long.
func (p *prospect) room(step time.Duration) int64 {
	return max(p.lanes*p.batch*int64(p.budget-step)/int64(step)-p.batch, p.carry)
}

// learn takes the duration of a step that was answered, and what is left to sell:
// by the word of this line's own seller, and, where others may bring units, by that
// of all of them. Of two lanes that are answered at once one may go uncounted.
func (p *prospect) learn(took time.Duration, left int64) {
	step := max(took, 1)
	if before := time.Duration(p.step.Load()); before != 0 {
		step = (before + step) / 2
	}
	p.step.Store(int64(step))
	p.inTime.Store(p.room(step))
	if left >= unknown/stockSlack-p.carry {
		p.inStock.Store(unknown)
	} else {
		p.inStock.Store(stockSlack*left + p.carry)
	}
}

// within is all that may be sold to the claims of a shard, as far as this
// instance knows: what is free there and on the other shards. Units in transit
// are in none of them; stockSlack has room for those.
func (g *group) within() int64 {
	total := int64(0)
	for _, b := range g.batchers {
		left := b.left.Load()
		if left == unknown {
			return unknown
		}
		total += left
	}
	return total
}

// TooHot is why a claim was not let in, as metrics name it.
type TooHot string

// The reasons.
const (
	TooHotFull  TooHot = "full"  // the line's bound is reached
	TooHotLate  TooHot = "late"  // it would not be answered in time
	TooHotStock TooHot = "stock" // those ahead are more than what is left can serve
	TooHotUnits TooHot = "units" // units that should come from elsewhere did not
	TooHotMarks TooHot = "marks" // a step could not read all that is remembered of its buyers
)

// TooHots lists all of them.
var TooHots = []TooHot{TooHotFull, TooHotLate, TooHotStock, TooHotUnits, TooHotMarks}

// tooHot refuses a claim.
func (s *Stage) tooHot(why TooHot) error {
	s.opt.Reports.TooHot(why)
	return errTooHot
}

// hopeless refuses a claim that a line cannot serve.
//
// Who may have an order already is spared for want of units: the claim needs
// none, and finds its order in the step that it joins. It is known by a look
// into memory, which only those pay for who would be refused otherwise. Nobody
// is spared for being late: too hot means asking again, as the busy does that
// would come at the deadline.
func (s *Stage) hopeless(p *prospect, waiting int, group uint32, buyer string) error {
	switch n := int64(waiting); {
	case n > p.inTime.Load():
		return s.tooHot(TooHotLate)
	case n > p.inStock.Load() && !s.opt.Memory.MayHoldIn(group, buyer):
		return s.tooHot(TooHotStock)
	}
	return nil
}
