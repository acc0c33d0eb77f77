package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/background"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// poisoned runs a sale with one bad claim, and returns its order number and
// those of the others.
func poisoned(t *testing.T, c *fixture) (bad seckill.OrderNo, good []seckill.OrderNo) {
	t.Helper()
	p := c.Open(t, 1, 20)
	names := buyers("b", 9)
	c.Store.Poison(names[5])
	nos := c.Buy(t, p, names...) // one entry: all are behind the bad one
	c.start(t)
	c.waitDrained(t)
	c.stop()
	bad = nos[5]
	return bad, slices.Delete(nos, 5, 6)
}

func (c *fixture) retryDue(t *testing.T) {
	t.Helper()
	rig.Must(t, worker.NewRetrier(c.worker).Round(t.Context()))
}

func TestConfirm_BadClaimIsParkedAndOthersConfirm(t *testing.T) {
	c := newFixture(t)
	bad, good := poisoned(t, c)
	c.statuses(t, seckill.OrderPending, good...)
	c.statuses(t, seckill.OrderQueued, bad)
	letters := c.letters(t)
	if len(letters) != 1 || letters[0].Item.Claim.OrderNo != bad || letters[0].Attempts != 1 || letters[0].Dead {
		t.Fatalf("letters are %+v", letters)
	}
	if letters[0].Reason == "" {
		t.Error("the letter has no reason")
	}
	if f := c.Figures(t, c.Stored(t, 1)); f.Marked != 9 {
		t.Errorf("the ledger holds %d units, want 9: a parked claim keeps its unit", f.Marked)
	}

	c.retryDue(t) // too early: nothing happens
	if got := c.letters(t); got[0].Attempts != 1 {
		t.Errorf("the letter was tried before its time: %+v", got)
	}
	c.Store.Cure("b-5")
	c.Time.Advance(ladder[0])
	c.retryDue(t)
	c.statuses(t, seckill.OrderPending, bad)
	if got := c.letters(t); len(got) != 0 {
		t.Errorf("letters are left: %+v", got)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

func TestConfirm_SeveralBadClaimsAreAllParked(t *testing.T) {
	for _, bad := range [][]int{{0}, {0, 1}, {3, 4}, {0, 6}, {6}, {0, 1, 2, 3, 4, 5, 6}} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			c := newFixture(t)
			p := c.Open(t, 1, 20)
			names := buyers("b", 7)
			for _, i := range bad {
				c.Store.Poison(names[i])
			}
			nos := c.Buy(t, p, names...)
			c.start(t)
			c.waitDrained(t)
			for i, no := range nos {
				want := seckill.OrderPending
				if slices.Contains(bad, i) {
					want = seckill.OrderQueued
				}
				c.statuses(t, want, no)
			}
			if got := len(c.letters(t)); got != len(bad) {
				t.Errorf("%d letters, want %d", got, len(bad))
			}
		})
	}
}

func TestRetrier_LastFailedTryIsADeadLetterAndAnAlert(t *testing.T) {
	c := newFixture(t)
	bad, _ := poisoned(t, c)
	for i, step := range ladder {
		c.Time.Advance(step)
		c.retryDue(t)
		letter := c.letters(t)[0]
		if last := i == len(ladder)-1; letter.Dead != last || letter.Attempts != i+2 {
			t.Fatalf("after step %d the letter is %+v", i, letter)
		}
	}
	if got := c.alerted(); !slices.Equal(got, []alert.Kind{alert.NoTriesLeft}) {
		t.Fatalf("alerts are %v", got)
	}
	if names := fmt.Sprintf("order %s, dead letter %d: ", bad, c.letters(t)[0].ID); !strings.HasPrefix(c.causes[0].Error(), names) {
		t.Errorf("the alert is %q, want the prefix %q", c.causes[0], names)
	}
	c.Time.Advance(12 * time.Hour)
	c.retryDue(t)
	if letter := c.letters(t)[0]; !letter.Dead {
		t.Error("a dead letter was tried without the operator")
	}

	// A retry by the operator starts the ladder again, and may succeed.
	letter, err := c.Store.RetryLetter(t.Context(), c.letters(t)[0].ID, rig.Operator)
	rig.Must(t, err)
	if letter.Dead || letter.Attempts != 0 {
		t.Errorf("the letter is %+v after retry", letter)
	}
	c.Store.Cure("b-5")
	c.retryDue(t)
	c.statuses(t, seckill.OrderPending, bad)
	storetest.CheckPromises(t, c.Store, 1)
}

func TestRetrier_ParkedClaimThatFailsAlerts(t *testing.T) {
	for reason, happen := range map[string]func(t *testing.T, c *fixture){ // what happens between the parking of the claim and its retry
		seckill.ReasonLost: func(t *testing.T, c *fixture) {
			c.Buy(t, c.recoverBeforeParking(t), "quick")
		},
		seckill.ReasonLimit: func(t *testing.T, c *fixture) {
			c.Buy(t, c.recoverBeforeParking(t), "slow")
		},
		seckill.ReasonDuplicate: func(t *testing.T, c *fixture) {
			again := c.Claim(1, "slow")
			again.Key = "k"
			c.Reserve(t, c.recoverBeforeParking(t), again)
		},
	} {
		t.Run(reason, func(t *testing.T) {
			crew := newFixture(t)
			p := crew.Open(t, 1, 1)
			claim := crew.Claim(1, "slow")
			claim.Key = "k"
			crew.Store.Poison(claim.Buyer)
			crew.Reserve(t, p, claim)
			crew.work(t)
			crew.Store.Cure(claim.Buyer)
			happen(t, crew)
			crew.Time.Advance(ladder[0])
			crew.retryDue(t)
			o, err := crew.Store.Order(t.Context(), claim.OrderNo)
			rig.Must(t, err)
			if o.Status != seckill.OrderFailed || o.Reason != reason {
				t.Errorf("the order is %s, %q", o.Status, o.Reason)
			}
			if got := crew.alerted(); !slices.Equal(got, []alert.Kind{alert.ParkedFailed}) {
				t.Fatalf("alerts are %v", got)
			}
			if got := crew.causes[0].Error(); !strings.HasPrefix(got, "order "+claim.OrderNo.String()+", letter ") || !strings.HasSuffix(got, ": "+reason) {
				t.Errorf("the alert is %q, want the order number and %q", got, reason)
			}
			crew.retryDue(t)
			if got := len(crew.alerted()); got != 1 {
				t.Errorf("%d alerts for one failure", got)
			}
		})
	}
}

func TestRetrier_OldDeadLetterIsDiscarded(t *testing.T) {
	c := newFixture(t)
	bad, _ := poisoned(t, c)
	for _, step := range ladder {
		c.Time.Advance(step)
		c.retryDue(t)
	}
	c.Time.Advance(25 * time.Hour)
	c.retryDue(t)
	o, err := c.Store.Order(t.Context(), bad)
	rig.Must(t, err)
	if o.Status != seckill.OrderFailed || o.Reason != seckill.ReasonDiscarded {
		t.Errorf("the order is %s, %q", o.Status, o.Reason)
	}
	due, err := c.Store.ReleasesDue(t.Context(), 10)
	rig.Must(t, err)
	if len(due) != 1 || due[0].OrderNo != bad {
		t.Errorf("releases due are %+v", due)
	}
}

func TestRetrier_StoreOutageEndsTheRoundAndCostsNoAttempt(t *testing.T) {
	c := newFixture(t)
	poisoned(t, c)
	c.Time.Advance(ladder[0])
	c.Store.Cure("b-5")
	c.Store.FailBefore("Confirm", 1)
	if err := worker.NewRetrier(c.worker).Round(t.Context()); err == nil {
		t.Error("the round hides the outage")
	}
	if got := c.letters(t)[0].Attempts; got != 1 {
		t.Errorf("attempts are %d, want 1", got)
	}
	c.retryDue(t)
	if got := len(c.letters(t)); got != 0 {
		t.Errorf("%d letters are left", got)
	}
}

// conflictingStore is a store in which others change the product during each
// try.
type conflictingStore struct {
	*storetest.Faulty
	left int
}

func (s *conflictingStore) Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error) {
	if s.left > 0 && len(req.Items) > 0 {
		s.left--
		return nil, fmt.Errorf("confirm: %w", store.ErrConflict)
	}
	return s.Faulty.Confirm(ctx, req)
}

func TestConfirm_ConflictIsOneFailedAttempt(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.store = &conflictingStore{Faulty: c.Store, left: 1}
	c.newWorker()
	c.start(t)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderQueued, nos...)
	for _, letter := range c.letters(t) {
		if letter.Attempts != 1 || letter.Dead {
			t.Errorf("the letter is %+v", letter)
		}
	}
	c.Time.Advance(ladder[0])
	c.retryDue(t)
	c.statuses(t, seckill.OrderPending, nos...)
}

// The entry may have been adopted before its row died. Then the ledger holds a
// mark that only a second release removes.
func TestConfirm_RedeliveredDeadOrderOwesItsReleaseAgain(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	no := c.Buy(t, p, "a")[0]
	c.queue.set(&c.queue.failAck, 1000) // it is redelivered again and again
	c.start(t)
	rig.Until(t, "the order is confirmed", func() bool { return c.Status(t, no) == seckill.OrderPending })
	_, err := c.Store.Cancel(t.Context(), no, "test", rig.Operator)
	rig.Must(t, err)
	due, err := c.Store.ReleasesDue(t.Context(), 10)
	rig.Must(t, err)
	rig.Must(t, c.Store.SettleReleases(t.Context(), due))
	heardAt := c.Store.Calls("Confirm")
	rig.Until(t, "the entry has come again", func() bool { return c.Store.Calls("Confirm") >= heardAt+2 })
	c.queue.set(&c.queue.failAck, 0)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderCancelled, no)
	due, err = c.Store.ReleasesDue(t.Context(), 10)
	rig.Must(t, err)
	if len(due) != 1 || due[0].OrderNo != no {
		t.Errorf("releases due are %+v", due)
	}
}

// The adoption of a letter of an older epoch needs the ledger. While the ledger
// does not answer, the letters of other products are tried, and dead ones are
// discarded.
func TestRetrier_LedgerAwayDelaysOnlyItsOwnLetters(t *testing.T) {
	c := newFixture(t)
	bad, _ := poisoned(t, c)
	c.Store.Cure("b-5")
	c.recoverBeforeParking(t)
	p := c.Open(t, 2, 5)
	c.Store.Poison("other")
	other := c.Buy(t, p, "other")
	c.newWorker()
	c.start(t)
	c.waitDrained(t)
	c.stop()
	c.Store.Cure("other")
	c.Time.Advance(ladder[0])
	unblock := c.Ledger.Block("Do")
	discards := c.Store.Calls("DiscardDead")
	retrier := worker.NewRetrier(c.worker)
	if err := retrier.Round(t.Context()); !errors.Is(err, background.ErrNoAnswer) {
		t.Errorf("the round ended with %v", err)
	}
	c.statuses(t, seckill.OrderPending, other...)
	c.statuses(t, seckill.OrderQueued, bad)
	if c.Store.Calls("DiscardDead") == discards {
		t.Error("nothing was discarded")
	}
	unblock()
	rig.Must(t, retrier.Round(t.Context()))
	if got := c.letters(t); len(got) != 0 {
		t.Errorf("letters are left: %+v", got)
	}
}
