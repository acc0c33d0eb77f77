package purchase

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	// inTimeShare is the part of a claim's time, in quarters, within which its
	// answer must be expected. Otherwise it is refused. The last quarter is for
	// steps that take longer than the steps before.
	inTimeShare = 3
	// firstGuess is the assumed duration of the first step, as a part of that time.
	firstGuess = 10
	// stockSlack is how many claims may wait per free unit. Some of them will hit
	// their limit, repeat an earlier claim, or give up.
	stockSlack = 2
)

// prospect estimates whether a claim that joins a line now can be served: in time, and
// from the units that are left. If not, it gets too_hot at once. Otherwise it would
// only delay the claims behind it and get busy at its deadline, perhaps with an order
// that its buyer does not know of. too_hot is not "no": units may come back.
//
// In time. The lanes serve a line in steps of at most one batch. A claim behind q others
// waits until q/batch further steps have begun, and the lanes begin one every
// step/lanes. Then it waits for its own step:
//
//	step × (1 + (1 + q/batch) / lanes)
//
// step is the duration of a step, a moving average in which the last step counts
// half. So lanes × batch / step is the number of claims that the line can answer per
// second, not the number that it did answer: a line that was quiet for an hour
// answered few but can answer many. Steps of a quiet line are short, so the first
// claims of a crowd are admitted generously. After two full steps the average is that
// of full steps. A stall enters the average when its step ends, and each later step
// halves it. The breaker handles a ledger that does not answer at all. Before the
// first answer, firstGuess is used.
//
// If the ledger slows down, claims that were admitted may have become late. They are
// refused at their turn (gather), and other claims get their places in the batch.
//
// From what is left. More than stockSlack claims per free unit, by the ledger's last
// answer, are too many. A claim for several units counts as one, which admits too
// many rather than too few.
//
// Whatever the estimates say, as many claims may wait as all lanes take at once. So a
// lane that comes back finds a full batch, and a claim is always admitted to an empty
// line. Waiting claims cause a step, and every step renews both estimates. So no
// estimate outlives its cause: neither a stall, nor empty shards after units came back.
//
// A claim costs two atomic loads here. The rest is done once per step.
type prospect struct {
	lanes, batch int64
	budget       time.Duration // an answer must be expected within it
	// carry is how many claims may wait in any case: as many as all lanes take at
	// once, if they come back together.
	carry int64

	step atomic.Int64 // moving average of nanoseconds; 0 before the first answer

	// How many claims may wait until the next one is late, or cannot be served
	// from the units that are left.
	inTime, inStock atomic.Int64
}

// unknown is the number of units left before the first answer.
const unknown = math.MaxInt64

func (p *prospect) open(lanes int, opt *Options) {
	p.lanes, p.batch, p.budget = int64(lanes), int64(opt.MaxBatch), opt.Timeout*inTimeShare/4
	p.carry = p.lanes*p.batch - 1
	p.inStock.Store(unknown)
	p.inTime.Store(p.room(p.budget / firstGuess))
}

// room returns how many claims may wait if a step takes this long.
func (p *prospect) room(step time.Duration) int64 {
	return max(p.lanes*p.batch*int64(p.budget-step)/int64(step)-p.batch, p.carry)
}

// learn records the duration of an answered step and the units that are left: those of
// this line's seller and, if other shards can send units, those of all. Of two
// concurrent answers, one may be lost.
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

// within returns the number of units that this shard's claims may get, as far as this
// instance knows: free units here and on the other shards. Units in transit are not
// counted; stockSlack allows for them.
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

// TooHot is the metrics' name for the reason of a refusal.
type TooHot string

// The reasons.
const (
	TooHotFull  TooHot = "full"  // the line is full
	TooHotLate  TooHot = "late"  // it would not be answered in time
	TooHotStock TooHot = "stock" // the claims ahead need all units that are left
	TooHotUnits TooHot = "units" // units from other shards did not arrive
	TooHotMarks TooHot = "marks" // a step could not read all records of its buyers
)

// TooHots lists all reasons.
var TooHots = []TooHot{TooHotFull, TooHotLate, TooHotStock, TooHotUnits, TooHotMarks}

// tooHot refuses a claim.
func (s *Stage) tooHot(why TooHot) error {
	s.opt.Reports.TooHot(why)
	return errTooHot
}

// hopeless refuses a claim that a line cannot serve.
//
// A buyer who may have an order is not refused for lack of units: a repeated claim needs
// none and finds its order in its step. Only claims that would be refused pay for the
// lookup in Memory. Late claims are refused in any case: too_hot means "try again",
// as the busy at the deadline would.
func (s *Stage) hopeless(p *prospect, waiting int, group uint32, buyer string) error {
	switch n := int64(waiting); {
	case n > p.inTime.Load():
		return s.tooHot(TooHotLate)
	case n > p.inStock.Load() && !s.opt.Memory.MayHoldIn(group, buyer):
		return s.tooHot(TooHotStock)
	}
	return nil
}
