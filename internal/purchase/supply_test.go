package purchase_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/ledger/transfer"
	"seckill/internal/purchase"
	"seckill/internal/sale"
	"seckill/test/rig"
	"seckill/test/virtual"
)

// homed returns a buyer whose home is the shard.
func (o *outlet) homed(shard, i int) string {
	for n := 0; ; n++ {
		if name := fmt.Sprintf("b-%d-%d", i, n); seckill.HomeShard(&o.product, name) == shard {
			return name
		}
	}
}

func (o *outlet) want(t *testing.T, buyer string, quantity int, want seckill.Code) {
	t.Helper()
	asked := time.Now()
	_, err := o.Buy(o.on, purchase.Claim{Buyer: buyer, Quantity: quantity})
	if got := code(err); got != want || time.Since(asked) > time.Second {
		t.Errorf("%d units for %s: answered %q after %v, want %q", quantity, buyer, got, time.Since(asked), want)
	}
}

func TestSupply_EmptyShardSellsUnitsOfOthers(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 0, 3, 4, 0)
		o.want(t, o.homed(0, 1), 5, "")
		o.want(t, o.homed(3, 2), 3, seckill.CodeSoldOut)
		if o.on.SoldOut() {
			t.Error("the flag stands with two units free")
		}
		o.want(t, o.homed(3, 3), 2, "")
		o.want(t, o.homed(1, 4), 1, seckill.CodeSoldOut)
		if !o.on.SoldOut() {
			t.Error("the flag is not raised with no unit free")
		}
		o.exactlyOnce(t)
	})
}

// The flag is valid for a second from the instant before the proof began.
func TestSupply_ProofCountsFromItsFirstSurvey(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 0, 0)
		o.remote.slow = 100 * time.Millisecond
		asked := time.Now()
		o.want(t, "a", 1, seckill.CodeSoldOut)
		virtual.Sleep(time.Second - time.Since(asked) - time.Millisecond)
		if !o.on.SoldOut() {
			t.Error("the flag fell too early")
		}
		virtual.Sleep(2 * time.Millisecond)
		if o.on.SoldOut() {
			t.Error("the flag stands for more than a second after the look")
		}
	})
}

func TestSupply_TooHotIfUnitsCannotArrive(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 0, 3)
		o.remote.loseCredits(true)
		for i := range 3 {
			o.want(t, o.homed(0, i), 1, seckill.CodeTooHot) // on a shard, then in transit
		}
		o.remote.loseCredits(false)
		for i := range 3 {
			o.want(t, o.homed(0, i), 1, "")
		}
		o.exactlyOnce(t)
	})
}

// A shard that cannot be read does not block the units of the other shards.
func TestSupply_DownShardDelaysNoOther(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 0, 3, 0)
		o.remote.unreadable = func(shard int) bool { return shard == 2 }
		for i := range 3 {
			o.want(t, o.homed(0, i), 1, "")
		}
		o.want(t, o.homed(0, 4), 1, seckill.CodeBusy) // shard 2 may have units
		if o.on.SoldOut() {
			t.Error("sold out without a look at every shard")
		}
	})
}

func TestSupply_CrowdSharesOneProof(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		// With this batch size, no line refuses claims for lack of units.
		o := newOutletWith(t, func(opt *purchase.Options) { opt.MaxBatch = opt.QueueSize }, make([]int64, 16)...)
		o.remote.slow = 5 * time.Millisecond
		var all sync.WaitGroup
		// A quarter of what the queues of the shards hold. With more goroutines than
		// the race detector has slots (255), it sometimes ends the process: CHECK
		// failed in tsan_rtl.cpp, seen with Go 1.26.8 on a busy machine.
		for i := range 200 {
			all.Go(func() { o.want(t, fmt.Sprintf("b-%d", i), 1, seckill.CodeSoldOut) })
		}
		all.Wait()
		if o.remote.reads > 16*2*3 {
			t.Errorf("200 claims had %d shards read", o.remote.reads)
		}
	})
}

// A proof that comes too late is not used.
func TestSupply_SlowProofIsNotUsed(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 0, 0)
		o.remote.slow = 450 * time.Millisecond // two passes; the second has two readings
		_, err := o.Buy(o.on, purchase.Claim{Buyer: "a", Quantity: 1})
		if got := code(err); got == seckill.CodeSoldOut || got == "" {
			t.Errorf("answered %q", got)
		}
	})
}

func TestSupply_WaitingClaimsAnsweredWhenShardsClose(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 0, 3)
		rig.Must(t, o.remote.Close(context.Background(), o.on.Shard(1)))
		o.want(t, o.homed(0, 1), 1, seckill.CodeBusy)
		if len(o.troubles) == 0 || !errors.Is(o.troubles[0], ledger.ErrClosed) {
			t.Errorf("troubles are %v", o.troubles)
		}
	})
}

func TestSupply_WaitingClaimsAnsweredWhenStageStops(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 0, 3)
		o.remote.slow = 300 * time.Millisecond
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() { o.want(t, o.homed(0, i), 1, seckill.CodeBusy) })
		}
		virtual.Sleep(100 * time.Millisecond)
		o.Stage.Close()
		all.Wait()
	})
}

// A process died during a transfer. The next claims can get its units.
func TestSupply_UnitsOfADeadProcessAreSold(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 0, 0, 5)
		ctx, die := context.WithCancel(context.Background())
		o.remote.loseCredits(true)
		dying := transfer.New(o.remote, sale.NewLanes(o.remote, ledger.LaneOptions{}), rand.Uint64)
		seen, err := dying.Survey(ctx, &o.product)
		rig.Must(t, err)
		time.AfterFunc(100*time.Millisecond, die)
		if _, err := dying.Bring(ctx, &o.product, seen, 1, 5); err == nil {
			t.Fatal("the units arrived")
		}
		o.remote.loseCredits(false)
		for i := range 5 {
			o.want(t, o.homed(0, i), 1, "") // they were on their way to shard 1
		}
		o.want(t, o.homed(0, 6), 1, seckill.CodeSoldOut)
		o.exactlyOnce(t)
		virtual.Sleep(time.Minute) // let the dead one's call end
	})
}
