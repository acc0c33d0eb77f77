package purchase

import (
	"errors"
	"slices"
	"sync"

	"seckill"
	"seckill/internal/ledger"
)

// unheard is what one lane has sent to the ledger and not heard of yet. The
// ledger may have accepted it, and a claim that repeats the key is then told the
// order's number. Until this instance remembers the order, such a claim is busy:
// an order that nobody remembers is lost if the ledger loses it.
type unheard struct {
	mu     sync.Mutex
	step   []seckill.Claim // in hand
	before []seckill.Claim // of the step before, if its outcome is unknown
}

// begin takes the claims of a step that is sent now.
func (u *unheard) begin(claims []seckill.Claim) {
	u.mu.Lock()
	u.step = claims
	u.mu.Unlock()
}

// end is called when the step's accepted claims are remembered, or it failed.
func (u *unheard) end(err error) {
	u.mu.Lock()
	if errors.Is(err, ledger.ErrUnknown) {
		u.before = u.step
	}
	u.step = nil
	u.mu.Unlock()
}

// settled is called when it is known what became of the step before.
func (u *unheard) settled() {
	u.mu.Lock()
	u.before = nil
	u.mu.Unlock()
}

func (u *unheard) has(no seckill.OrderNo) bool {
	is := func(c seckill.Claim) bool { return c.OrderNo == no }
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.ContainsFunc(u.step, is) || slices.ContainsFunc(u.before, is)
}

// isUnheard reports whether a lane of this shard may have just bought an order.
func (b *batcher) isUnheard(no seckill.OrderNo) bool {
	for k := range b.unheard {
		if b.unheard[k].has(no) {
			return true
		}
	}
	return false
}

// laneListener hears how the calls of one lane end.
type laneListener struct {
	batcher *batcher
	unheard *unheard // of the lane
}

// Replied has the breaker count calls without an answer.
func (l laneListener) Replied(answered bool) {
	if answered && l.batcher.breaker.silent.Load() == 0 {
		return // as nearly always
	}
	l.batcher.breaker.heard(answered)
}

// Settled remembers what a step accepted of which the buyers heard busy: they find
// their orders by their keys.
func (l laneListener) Settled(w ledger.Write, result ledger.Result, err error) {
	b := l.batcher
	if step, ok := w.(ledger.Reserve); ok && err == nil && b.sale.Hold(b.group.epoch) {
		b.promised(&step, result.Verdicts, b.sale.Terms())
		b.sale.Unhold()
	}
	l.unheard.settled()
}
