package worker_test

import (
	"context"
	"testing"
	"time"

	"seckill"
	"seckill/internal/order"
	"seckill/internal/recovery"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// late is a claim that two have in hand: it was parked, its ledger was rebuilt,
// and somebody was refused its adoption for want of units and has not written
// that yet. Then a unit came free.
type late struct {
	*crew
	product seckill.Product
	claim   seckill.Claim
	item    store.Item // the claim in its old entry
	adopter *recovery.Adopter
	gate    *storetest.Gate // before which the failure waits
	written chan error
}

func newLate(t *testing.T) *late {
	t.Helper()
	l := &late{crew: newCrew(t), written: make(chan error, 1)}
	p := l.Open(t, 1, 1)
	l.claim = l.Claim(1, "slow")
	l.Store.Poison(l.claim.Buyer)
	l.Reserve(t, p, l.claim)
	l.work(t)
	l.item = l.letters(t)[0].Item
	l.item.LetterID = 0
	p = l.recoverBeforeParking(t)
	l.product = p

	quick := l.Buy(t, p, "quick")[0]
	l.work(t)
	l.gate = l.Store.Block("Fail")
	l.adopter = &recovery.Adopter{Store: l.Store, Lanes: l.Lanes, Now: l.Time.Now}
	go func() {
		_, err := l.adopter.Adopt(t.Context(), []store.Item{l.item})
		l.written <- err
	}()
	rig.Until(t, "the adoption is refused", func() bool { return len(l.gate.Arrived()) == 1 })
	_, err := l.Store.Cancel(t.Context(), quick, "test", rig.Operator)
	rig.Must(t, err)
	l.release(t)
	return l
}

// recoverBeforeParking has the ledger rebuilt before what is parked was parked:
// its worker was slow, and the new epoch holds nothing for it.
func (c *crew) recoverBeforeParking(t *testing.T) seckill.Product {
	t.Helper()
	var again []store.Parked
	for _, letter := range c.letters(t) {
		rig.Must(t, c.Store.CloseLetter(t.Context(), letter.ID, letter.Item.Epoch))
		again = append(again, store.Parked{Item: letter.Item, Reason: letter.Reason, Delay: ladder[0]})
	}
	p, err := c.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	_, err = c.Store.Confirm(t.Context(), store.ConfirmRequest{ProductID: p.ID, Park: again, ExpireAfter: time.Hour})
	rig.Must(t, err)
	return p
}

// work consumes all that is queued.
func (c *crew) work(t *testing.T) {
	t.Helper()
	c.enlist()
	c.start(t)
	c.drained(t)
	c.stop()
}

func (c *crew) release(t *testing.T) {
	t.Helper()
	rig.Must(t, c.releaser().Round(t.Context()))
}

func (c *crew) releaser() *order.Releaser {
	return &order.Releaser{Store: c.Store, Lanes: c.Lanes, OnReleased: func(uint32) {}, OnTrouble: func(uint32, error) {}}
}

// adopt has the claim adopted from its letter, which leaves a mark and an entry
// of the present epoch.
func (l *late) adopt(t *testing.T) {
	t.Helper()
	l.Store.Cure(l.claim.Buyer)
	l.Time.Advance(ladder[0])
	l.climb(t)
	if f := l.Figures(t, l.product); f.Marked != 1 {
		t.Fatalf("the claim was not adopted: %+v", f)
	}
	l.Store.Poison(l.claim.Buyer)
}

// fail lets the failure be written.
func (l *late) fail(t *testing.T) {
	t.Helper()
	l.gate.Open()
	done(t, l.written)
}

// done waits for what was begun.
func done(t *testing.T, begun <-chan error) {
	t.Helper()
	select {
	case err := <-begun:
		rig.Must(t, err)
	case <-time.After(rig.Patience):
		t.Fatal("it does not end")
	}
}

// free wants the unit of the claim to be free in the end.
func (l *late) free(t *testing.T) {
	t.Helper()
	if letters := l.letters(t); len(letters) != 0 {
		t.Errorf("letters are left: %+v", letters)
	}
	if depth := l.Depth(t, 0); depth != 0 {
		t.Errorf("%d claims are queued", depth)
	}
	l.release(t)
	if f := l.Figures(t, l.product); f.Marked != 0 || f.Available != 1 {
		t.Errorf("the ledger has %d free and %d marked units for an order that is %s", f.Available, f.Marked, l.Status(t, l.claim.OrderNo))
	}
	storetest.CheckPromises(t, l.Store, 1)
}

// The late failure closes a letter of the present epoch, which was all that
// held the mark.
func TestALateFailureReturnsTheUnitOfAClaimThatWasAdoptedAndParkedAgain(t *testing.T) {
	l := newLate(t)
	l.adopt(t)
	l.work(t)
	l.fail(t)
	l.statuses(t, seckill.OrderFailed, l.claim.OrderNo)
	l.free(t)
}

// failing has somebody write a failure between a claim's try and its parking.
type failing struct {
	*storetest.Faulty
	fail func()
}

func (s *failing) Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error) {
	if len(req.Park) > 0 {
		s.fail()
	}
	return s.Faulty.Confirm(ctx, req)
}

func TestAClaimThatFailsBeforeItIsParkedReturnsItsUnit(t *testing.T) {
	l := newLate(t)
	l.adopt(t)
	l.store = &failing{Faulty: l.Store, fail: func() { l.fail(t) }}
	l.work(t)
	l.statuses(t, seckill.OrderFailed, l.claim.OrderNo)
	l.free(t)
}

// The ledger is told of a discarded claim before somebody has that adopted. The
// new entry owes the release again, under the same epoch, before the store hears
// of the first: that settles the first alone.
func TestAReleaseThatIsHeardLateLeavesTheOneThatIsOwedSince(t *testing.T) {
	l := newLate(t)
	l.Store.Cure(l.claim.Buyer)
	_, err := l.Store.DiscardLetter(t.Context(), l.letters(t)[0].ID, rig.Operator)
	rig.Must(t, err)
	hearing := l.Store.Block("SettleReleases")
	heard := make(chan error, 1)
	go func() { heard <- l.releaser().Round(t.Context()) }()
	rig.Until(t, "the ledger was told", func() bool { return len(hearing.Arrived()) == 1 })
	_, err = l.adopter.Adopt(t.Context(), []store.Item{l.item})
	rig.Must(t, err)
	if f := l.Figures(t, l.product); f.Marked != 1 {
		t.Fatalf("the claim was not adopted: %+v", f)
	}
	l.work(t)
	hearing.Open()
	done(t, heard)
	l.free(t)
	l.fail(t)
}

// The claim is adopted from its letter, and parked again before that letter is
// closed: it is the same letter, and now all that is left of the promise (I4).
func TestALetterThatWasParkedAgainIsNotClosedForItsAdoption(t *testing.T) {
	c := newCrew(t)
	bad, good := poisoned(t, c)
	c.recoverBeforeParking(t)
	c.Store.Cure("b-5")
	c.Time.Advance(ladder[0])
	c.Store.FailBefore("CloseLetter", 1)
	if worker.NewClimber(c.worker).Round(t.Context()) == nil {
		t.Error("the round hides the outage")
	}
	c.Store.Poison("b-5")
	c.work(t)
	c.Store.Cure("b-5")
	c.Time.Advance(ladder[0])
	c.climb(t)
	c.work(t)
	c.statuses(t, seckill.OrderPending, append(good, bad)...)
	if f := c.Figures(t, c.Stored(t, 1)); f.Marked != 9 {
		t.Errorf("the ledger holds %d units, want 9", f.Marked)
	}
	storetest.CheckPromises(t, c.Store, 1)
}
