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

// lateFailure is a claim that two actors handle at once. It was parked, and its
// ledger was rebuilt. One adopter found no unit, and has not written the
// failure yet. Then a unit came free.
type lateFailure struct {
	*fixture
	product seckill.Product
	claim   seckill.Claim
	item    store.Item // the claim in its old entry
	adopter *recovery.Adopter
	gate    *storetest.Gate // the failure waits here
	written chan error
}

func newLateFailure(t *testing.T) *lateFailure {
	t.Helper()
	l := &lateFailure{fixture: newFixture(t), written: make(chan error, 1)}
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

// recoverBeforeParking rebuilds the ledger as if the claims had been parked
// after it, by a slow worker. The new epoch holds no unit for them.
func (c *fixture) recoverBeforeParking(t *testing.T) seckill.Product {
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

// work consumes everything that is queued.
func (c *fixture) work(t *testing.T) {
	t.Helper()
	c.newWorker()
	c.start(t)
	c.waitDrained(t)
	c.stop()
}

func (c *fixture) release(t *testing.T) {
	t.Helper()
	rig.Must(t, c.releaser().Round(t.Context()))
}

func (c *fixture) releaser() *order.Releaser {
	return &order.Releaser{Store: c.Store, Lanes: c.Lanes, OnReleased: func(uint32) {}, OnTrouble: func(uint32, error) {}}
}

// adopt adopts the claim from its letter, which makes a mark and an entry of
// the present epoch.
func (l *lateFailure) adopt(t *testing.T) {
	t.Helper()
	l.Store.Cure(l.claim.Buyer)
	l.Time.Advance(ladder[0])
	l.retryDue(t)
	if f := l.Figures(t, l.product); f.Marked != 1 {
		t.Fatalf("the claim was not adopted: %+v", f)
	}
	l.Store.Poison(l.claim.Buyer)
}

// fail lets the failure be written.
func (l *lateFailure) fail(t *testing.T) {
	t.Helper()
	l.gate.Open()
	done(t, l.written)
}

// done waits for the end of an operation.
func done(t *testing.T, begun <-chan error) {
	t.Helper()
	select {
	case err := <-begun:
		rig.Must(t, err)
	case <-time.After(rig.Patience):
		t.Fatal("the operation does not end")
	}
}

// checkUnitReturns checks that the unit of the claim is free in the end.
func (l *lateFailure) checkUnitReturns(t *testing.T) {
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

// The late failure closes a letter of the present epoch, and only that letter
// held the mark.
func TestLateFailure_ReturnsUnitOfAClaimThatWasParkedAgain(t *testing.T) {
	l := newLateFailure(t)
	l.adopt(t)
	l.work(t)
	l.fail(t)
	l.statuses(t, seckill.OrderFailed, l.claim.OrderNo)
	l.checkUnitReturns(t)
}

// failBeforeParking calls fail after a claim was tried and before it is parked.
type failBeforeParking struct {
	*storetest.Faulty
	fail func()
}

func (s *failBeforeParking) Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error) {
	if len(req.Park) > 0 {
		s.fail()
	}
	return s.Faulty.Confirm(ctx, req)
}

func TestLateFailure_BeforeParkingReturnsTheUnit(t *testing.T) {
	l := newLateFailure(t)
	l.adopt(t)
	l.store = &failBeforeParking{Faulty: l.Store, fail: func() { l.fail(t) }}
	l.work(t)
	l.statuses(t, seckill.OrderFailed, l.claim.OrderNo)
	l.checkUnitReturns(t)
}

// The ledger hears the release of a discarded claim before an adoption of it.
// The new entry owes the release again, under the same epoch, before the store
// records the first reply. That reply must settle the first debt only.
func TestRelease_LateReplyDoesNotSettleANewerDebt(t *testing.T) {
	l := newLateFailure(t)
	l.Store.Cure(l.claim.Buyer)
	_, err := l.Store.DiscardLetter(t.Context(), l.letters(t)[0].ID, rig.Operator)
	rig.Must(t, err)
	hearing := l.Store.Block("SettleReleases")
	heard := make(chan error, 1)
	go func() { heard <- l.releaser().Round(t.Context()) }()
	rig.Until(t, "the ledger has the release", func() bool { return len(hearing.Arrived()) == 1 })
	_, err = l.adopter.Adopt(t.Context(), []store.Item{l.item})
	rig.Must(t, err)
	if f := l.Figures(t, l.product); f.Marked != 1 {
		t.Fatalf("the claim was not adopted: %+v", f)
	}
	l.work(t)
	hearing.Open()
	done(t, heard)
	l.checkUnitReturns(t)
	l.fail(t)
}

// The claim is adopted from its letter, and parked again before that letter is
// closed. It is the same letter, and now the only record of the promise (I4).
func TestRetrier_LetterParkedAgainIsNotClosedByItsAdoption(t *testing.T) {
	c := newFixture(t)
	bad, good := poisoned(t, c)
	c.recoverBeforeParking(t)
	c.Store.Cure("b-5")
	c.Time.Advance(ladder[0])
	c.Store.FailBefore("CloseLetter", 1)
	if worker.NewRetrier(c.worker).Round(t.Context()) == nil {
		t.Error("the round hides the outage")
	}
	c.Store.Poison("b-5")
	c.work(t)
	c.Store.Cure("b-5")
	c.Time.Advance(ladder[0])
	c.retryDue(t)
	c.work(t)
	c.statuses(t, seckill.OrderPending, append(good, bad)...)
	if f := c.Figures(t, c.Stored(t, 1)); f.Marked != 9 {
		t.Errorf("the ledger holds %d units, want 9", f.Marked)
	}
	storetest.CheckPromises(t, c.Store, 1)
}
