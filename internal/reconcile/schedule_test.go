package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/test/rig"
)

// tally is a schedule that notes what it counts, on a clock that is moved.
type tally struct {
	*Schedule
	at      time.Time
	over    []uint32
	broken  error
	counted []uint32
	unsure  map[uint32]bool // no verdict on these
}

func newTally(every time.Duration) *tally {
	c := &tally{at: time.Unix(1_000_000, 0)}
	c.Schedule = NewSchedule(c, c, c, every)
	c.now, c.next = func() time.Time { return c.at }, c.at.Add(every)
	return c
}

func (c *tally) UncountedEnds(context.Context, int) ([]uint32, error) { return c.over, nil }
func (c *tally) RecentSales() []uint32                                { return []uint32{1, 2, 3} }
func (c *tally) Count(_ context.Context, id uint32) (bool, error) {
	c.counted = append(c.counted, id)
	return !c.unsure[id], c.broken
}

// after moves the clock, makes a round, and says what it counted.
func (c *tally) after(t *testing.T, d time.Duration) string {
	t.Helper()
	c.at, c.counted = c.at.Add(d), nil
	if err := c.Round(t.Context()); !errors.Is(err, c.broken) {
		t.Errorf("the round ended with %v, want %v", err, c.broken)
	}
	return fmt.Sprint(c.counted)
}

func TestSalesThatEndDoNotHoldUpTheRegularCount(t *testing.T) {
	c := newTally(time.Minute)
	c.over = []uint32{2, 9}
	for i, step := range []struct {
		wait time.Duration
		want string
	}{
		{20 * time.Second, "[2 9]"}, {20 * time.Second, "[2 9]"}, {20 * time.Second, "[1 2 3 9]"},
		{time.Second, "[2 9]"}, {59 * time.Second, "[1 2 3 9]"},
	} {
		if got := c.after(t, step.wait); got != step.want {
			t.Errorf("round %d counted %s, want %s", i, got, step.want)
		}
	}
	off := newTally(0)
	off.over = []uint32{4}
	if got := off.after(t, time.Hour); got != "[4]" {
		t.Errorf("with the regular count off, a round counted %s", got)
	}
}

// After a restart of Redis every recent sale is counted until there is a verdict,
// also with the regular count off.
func TestRound_CountsAfterARestartUntilThereIsAVerdict(t *testing.T) {
	c := newTally(0)
	c.unsure = map[uint32]bool{2: true}
	c.SuspectAll()
	for i, want := range []string{"[1 2 3]", "[2]", "[2]", "[]"} {
		if got := c.after(t, time.Second); got != want {
			t.Errorf("round %d counted %s, want %s", i, got, want)
		}
		c.unsure[2] = i < 1
	}
}

func TestACountThatFailsHoldsUpNoOther(t *testing.T) {
	c := newTally(time.Minute)
	c.over, c.broken = []uint32{4, 5}, errors.New("no ledger")
	if got := c.after(t, time.Minute); got != "[1 2 3 4 5]" {
		t.Errorf("counted %s", got)
	}
}

// plainCount mends nothing.
type plainCount struct{ *Reconciler }

func (p plainCount) Count(ctx context.Context, id uint32) (bool, error) {
	_, err := p.Run(ctx, id, false, "system")
	return true, err
}

// The process may die, and any step fail, between the end and the count that
// follows it: the next process finds in the store that it is owed.
func TestTheLastCountOfASaleIsNotLost(t *testing.T) {
	for name, end := range map[string]func(r *rig.Rig) error{
		"announced by the clock": func(r *rig.Rig) error {
			_, err := r.Store.Announce(t.Context(), 1, seckill.EventSaleEnded)
			return err
		},
		"ended by an operator whom the ledger did not hear": func(r *rig.Rig) error {
			r.Ledger.FailBefore("SetState", 1)
			if _, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SaleEnded, rig.Operator); err == nil {
				return errors.New("the fault did not strike")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rig.New(t)
			p := r.Open(t, 1, 5)
			r.Buy(t, p, "a")
			r.ConfirmAll(t)
			rig.Must(t, end(r))
			r.Restart(t)
			r.Time.Advance(time.Second)
			reports := 0
			reconciler := &Reconciler{
				Store: r.Store, Ledger: r.Ledger, Queue: r.Queue, Recoverer: r.Lifecycle, Deadline: 5 * time.Second,
				Logger: slog.New(slog.DiscardHandler), OnReport: func(api.Report) { reports++ },
			}
			c := NewSchedule(r.Store, r.Lifecycle, plainCount{reconciler}, 0)
			r.Ledger.FailBefore("Read", 1)
			if c.Round(t.Context()) == nil {
				t.Error("the round hides the outage")
			}
			for range 3 {
				rig.Must(t, c.Round(t.Context()))
			}
			if reports != 1 {
				t.Errorf("the sale was counted %d times after its end", reports)
			}
		})
	}
}
