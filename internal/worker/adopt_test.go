package worker_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/ledger"
	"seckill/internal/recovery"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// rebuilt opens a new epoch while claims wait, like a recovery that timed out
// before it wrote them.
func (c *fixture) rebuilt(t *testing.T, id uint32) seckill.Product {
	t.Helper()
	p := c.Stored(t, id)
	opened, err := c.Store.OpenEpoch(t.Context(), id, p.Epoch, 0, rig.Operator, func(seckill.Order) error { return nil })
	rig.Must(t, err)
	for i := range opened.Shards {
		shard := ledger.ShardOf(&opened, i)
		part := sale.Part(opened.Stock, i, opened.Shards)
		_, err = c.Embedded.Install(t.Context(), ledger.Allotment{Shard: shard, Available: part, Limit: opened.PerUserLimit},
			func(func(ledger.Mark, error) bool) {})
		rig.Must(t, err)
		_, err = c.Embedded.Open(t.Context(), shard)
		rig.Must(t, err)
	}
	rig.Must(t, c.Store.EndRebuild(t.Context(), id, opened.Epoch))
	opened.Rebuilding = false
	return opened
}

// An entry of an older epoch is adopted under its old numbers, or fails in a
// way that the buyer can read.
func TestOldEpoch_ClaimsAreAdoptedOrFailExplicitly(t *testing.T) {
	var log bytes.Buffer
	c := newFixture(t, func(o *worker.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	p := c.Open(t, 1, 4)
	claims := make([]seckill.Claim, 4)
	for i := range claims {
		claims[i] = c.Claim(1, fmt.Sprintf("b-%d", i))
		claims[i].Key = fmt.Sprintf("key-%d", i)
	}
	c.Reserve(t, p, claims...)
	p = c.rebuilt(t, 1)

	// In the new epoch b-0 has bought under another key, b-1 under the same.
	limit, duplicate := c.Claim(1, "b-0"), c.Claim(1, "b-1")
	duplicate.Key = claims[1].Key
	again := claims[2] // adopted before; the reply was lost
	c.Reserve(t, p, limit, duplicate, again)
	c.start(t)
	c.waitDrained(t)
	c.stop()

	for i, want := range []struct {
		status seckill.OrderStatus
		reason string
	}{
		{seckill.OrderFailed, seckill.ReasonLimit},
		{seckill.OrderFailed, seckill.ReasonDuplicate},
		{seckill.OrderPending, ""}, // repeated
		{seckill.OrderPending, ""}, // accepted: the last unit
	} {
		o, err := c.Store.Order(t.Context(), claims[i].OrderNo)
		rig.Must(t, err)
		if o.Status != want.status || o.Reason != want.reason {
			t.Errorf("claim %d is %s %q, want %s %q", i, o.Status, o.Reason, want.status, want.reason)
		}
	}
	c.statuses(t, seckill.OrderPending, limit.OrderNo, duplicate.OrderNo)
	for i, listed := range []bool{true, true, false, false} {
		if no := claims[i].OrderNo.String(); strings.Contains(log.String(), no) != listed {
			t.Errorf("failure of claim %d, %s, is in the log: %t\n%s", i, no, !listed, log.String())
		}
	}
	if !slices.Contains(c.alerts, alert.NotKept) {
		t.Errorf("the alerts are %v", c.alerts)
	}
	if f := c.Figures(t, p); f.Available != 0 || f.Marked != 4 {
		t.Errorf("the ledger has %d free and %d marked units", f.Available, f.Marked)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

// A new epoch spreads its units evenly over the shards. The old promises need
// them on the home shards of their buyers.
func TestOldEpoch_ClaimsAreAdoptedWithUnitsOfOtherShards(t *testing.T) {
	const shards, promised = 4, 8
	c := newFixture(t)
	p := c.Open(t, 1, shards*promised, rig.Shards(shards))
	var claims []seckill.Claim
	for n := 0; len(claims) < promised; n++ {
		if buyer := fmt.Sprintf("b-%d", n); seckill.HomeShard(&p, buyer) == 2 {
			claims = append(claims, c.Claim(1, buyer))
		}
	}
	c.Reserve(t, p, claims...)
	_, err := c.Lifecycle.ChangeStock(t.Context(), 1, -(shards-1)*promised, "as many as are left", rig.Operator)
	rig.Must(t, err)
	p = c.rebuilt(t, 1)
	stranger := c.Claim(1, "stranger") // takes one of the units in the new epoch
	if verdict := c.Reserve(t, p, stranger)[0]; verdict.Code != ledger.VerdictAccepted {
		t.Fatalf("verdict %d", verdict.Code)
	}
	c.start(t)
	c.waitDrained(t)
	c.stop()
	counts := map[seckill.OrderStatus]int{}
	for _, claim := range claims {
		o, err := c.Store.Order(t.Context(), claim.OrderNo)
		rig.Must(t, err)
		if counts[o.Status]++; o.Status == seckill.OrderFailed && o.Reason != seckill.ReasonLost {
			t.Errorf("%s failed for %q", o.OrderNo, o.Reason)
		}
	}
	if counts[seckill.OrderPending] != promised-1 || counts[seckill.OrderFailed] != 1 {
		t.Errorf("the old promises are %v", counts)
	}
	if f := c.Figures(t, p); f.Available != 0 || f.Marked != promised || f.Sent != f.Received || len(f.Out) != 0 {
		t.Errorf("%+v", f)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

func TestOldEpoch_ClaimWithoutUnitFailsAsLost(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 1)
	old := c.Buy(t, p, "slow")[0]
	p = c.rebuilt(t, 1)
	quick := c.Buy(t, p, "quick")[0]
	c.start(t)
	c.waitDrained(t)
	o, err := c.Store.Order(t.Context(), old)
	rig.Must(t, err)
	if o.Status != seckill.OrderFailed || o.Reason != seckill.ReasonLost {
		t.Errorf("the order is %s %q", o.Status, o.Reason)
	}
	c.statuses(t, seckill.OrderPending, quick)
	storetest.CheckPromises(t, c.Store, 1)
}

func TestOldEpoch_ManyClaimsAreAdoptedInOneStep(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 50)
	nos := c.Buy(t, p, buyers("b", 50)...)
	c.rebuilt(t, 1)
	before := c.Ledger.Calls("Do")
	c.start(t)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, nos...)
	if calls := c.Ledger.Calls("Do") - before; calls > 2 {
		t.Errorf("%d ledger calls to adopt one entry", calls)
	}
}

// Neither new buyers nor an adoption takes the unit of a parked claim.
func TestRebuild_ParkedClaimKeepsItsUnit(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 2)
	claim := c.Claim(1, "parked")
	c.Store.Poison(claim.Buyer)
	c.Reserve(t, p, claim)
	c.work(t)
	old := c.letters(t)[0].Item
	for range 2 {
		var err error
		p, err = c.Lifecycle.Recover(t.Context(), 1, rig.Operator)
		rig.Must(t, err)
	}
	if f := c.Figures(t, p); f.Marked != 1 || f.Available != 1 {
		t.Fatalf("the ledger has %d free units and %d marked", f.Available, f.Marked)
	}
	quick := c.Buy(t, p, "quick")[0]
	adopter := &recovery.Adopter{Store: c.Store, Lanes: c.Lanes, Now: c.Time.Now}
	if out, err := adopter.Adopt(t.Context(), []store.Item{old}); err != nil || len(out.Adopted) != 1 {
		t.Errorf("adopted from the old letter: %+v, %v", out, err)
	}
	c.work(t)
	c.statuses(t, seckill.OrderPending, quick)
	c.Store.Cure(claim.Buyer)
	c.Time.Advance(ladder[0])
	c.retryDue(t)
	c.statuses(t, seckill.OrderPending, claim.OrderNo)
	if letters := c.letters(t); len(letters) != 0 {
		t.Errorf("letters are left: %+v", letters)
	}
	if f := c.Figures(t, p); f.Marked != 2 || f.Available != 0 {
		t.Errorf("the ledger has %d free units and %d marked", f.Available, f.Marked)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

func TestRetrier_ParkedClaimOfAnOlderEpochIsAdopted(t *testing.T) {
	c := newFixture(t)
	bad, good := poisoned(t, c)
	c.Store.Cure("b-5")
	c.recoverBeforeParking(t)
	if f := c.Figures(t, c.Stored(t, 1)); f.Marked != 8 {
		t.Fatalf("the ledger holds %d units after the recovery, want 8", f.Marked)
	}
	c.Time.Advance(ladder[0])
	c.Store.FailBefore("CloseLetter", 1) // adopted, and the letter is still there
	if worker.NewRetrier(c.worker).Round(t.Context()) == nil {
		t.Error("the round hides the outage")
	}
	c.retryDue(t)
	if got := c.letters(t); len(got) != 0 {
		t.Errorf("letters are left: %+v", got)
	}
	c.newWorker()
	c.start(t)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, append(good, bad)...)
	if f := c.Figures(t, c.Stored(t, 1)); f.Marked != 9 {
		t.Errorf("the ledger holds %d units, want 9", f.Marked)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

// While the shard is closed nothing can be adopted. The entry waits, and other
// products go on.
func TestOldEpoch_AdoptionWaitsForAClosedShard(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 5)
	old := c.Buy(t, p, "a")[0]
	p = c.rebuilt(t, 1)
	rig.Must(t, c.Embedded.Close(t.Context(), ledger.Shard{Product: 1, Group: 1, Epoch: p.Epoch}))
	q := c.Open(t, 2, 5)
	other := c.Buy(t, q, "a")[0]
	c.start(t)
	rig.Until(t, "the other product goes on", func() bool { return c.Depth(t, 2) == 0 })
	c.statuses(t, seckill.OrderPending, other)
	c.statuses(t, seckill.OrderQueued, old)
	_, err := c.Embedded.Open(t.Context(), ledger.Shard{Product: 1, Group: 1, Epoch: p.Epoch})
	rig.Must(t, err)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, old)
}
