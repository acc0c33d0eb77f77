package purchase

import (
	"errors"
	"slices"
	"sync"

	"seckill"
	"seckill/internal/ledger"
)

// unheard is the claims of one lane whose outcome is unknown. The ledger may have
// accepted them, and a repeated key then finds the order number. Until this instance
// remembers the order, such a claim gets busy: if the ledger lost the order, no one
// would know it.
type unheard struct {
	mu     sync.Mutex
	step   []seckill.Claim // claims of the step in flight
	before []seckill.Claim // claims of the step before, if its outcome is unknown
}

// begin records the claims of a step that is being sent.
func (u *unheard) begin(claims []seckill.Claim) {
	u.mu.Lock()
	u.step = claims
	u.mu.Unlock()
}

// end is called when the step's accepted claims are remembered, or the step failed.
func (u *unheard) end(err error) {
	u.mu.Lock()
	if errors.Is(err, ledger.ErrUnknown) {
		u.before = u.step
	}
	u.step = nil
	u.mu.Unlock()
}

// settled is called when the outcome of the step before is known.
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

// isUnheard reports whether a lane of this shard may have just accepted an order.
func (b *batcher) isUnheard(no seckill.OrderNo) bool {
	for k := range b.unheard {
		if b.unheard[k].has(no) {
			return true
		}
	}
	return false
}

// laneListener gets the outcomes of one lane's calls.
type laneListener struct {
	batcher *batcher
	unheard *unheard // of this lane
}

// Replied records in the breaker whether a call was answered.
func (l laneListener) Replied(answered bool) {
	if answered && l.batcher.breaker.silent.Load() == 0 {
		return // the usual case
	}
	l.batcher.breaker.heard(answered)
}

// Settled remembers the accepted claims of a step whose buyers got busy. They find their
// orders by their keys.
func (l laneListener) Settled(w ledger.Write, result ledger.Result, err error) {
	b := l.batcher
	if step, ok := w.(ledger.Reserve); ok && err == nil && b.sale.Hold(b.group.epoch) {
		b.promised(&step, result.Verdicts, b.sale.Terms())
		b.sale.Unhold()
	}
	l.unheard.settled()
}
