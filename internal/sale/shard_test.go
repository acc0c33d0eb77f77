package sale_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/ledger/transfer"
	"seckill/internal/sale"
	"seckill/test/rig"
)

var errKilled = errors.New("killed")

// killed lets a mover make some writes and then no more.
type killed struct {
	*sale.Lanes
	left int
}

func (k *killed) Do(ctx context.Context, shard ledger.Shard, write ledger.Write) (ledger.Result, error) {
	if k.left == 0 {
		return ledger.Result{}, errKilled
	}
	k.left--
	return k.Lanes.Do(ctx, shard, write)
}

// leaveOpen has a process die after so many writes of a transfer to a shard.
func leaveOpen(t *testing.T, r *rig.Rig, p seckill.Product, to, writes int) {
	t.Helper()
	lanes := sale.NewLanes(r.Ledger, ledger.LaneOptions{})
	mover := transfer.New(r.Ledger, &killed{lanes, writes}, rand.Uint64)
	seen, err := mover.Survey(t.Context(), &p)
	rig.Must(t, err)
	if _, err := mover.Bring(t.Context(), &p, seen, to, p.Stock); !errors.Is(err, errKilled) {
		t.Fatalf("a process that was killed returned %v", err)
	}
}

func TestStockOfShardsGoesUpAtOneAndDownFromAll(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 10, rig.Shards(4))
	r.Buy(t, p, "a", "b")
	r.ConfirmAll(t)
	leaveOpen(t, r, p, 3, 1) // units are on a dead process's way
	for _, step := range []struct {
		delta         int64
		offered, free int64
	}{{5, 15, 13}, {-9, 6, 4}, {-4, 2, 0}, {7, 9, 7}} {
		change, err := r.Lifecycle.ChangeStock(t.Context(), 1, step.delta, fmt.Sprint(step.delta), rig.Operator)
		rig.Must(t, err)
		if change.Status != "done" {
			t.Errorf("%+d is %s", step.delta, change.Status)
		}
		rig.Must(t, r.Mover.Finish(t.Context(), &p))
		balance(t, r, step.offered, step.free)
	}
}

func TestMoreThanAllShardsHaveIsRefusedWhole(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 10, rig.Shards(4))
	r.Buy(t, p, "a", "b", "c") // promised, not confirmed: in the store's stock still
	for range 2 {
		_, err := r.Lifecycle.ChangeStock(t.Context(), 1, -8, "too many", rig.Operator)
		rig.Refused(t, err, seckill.CodeWrongState)
	}
	r.ConfirmAll(t)
	balance(t, r, 10, 7)
}

func TestALostShardIsRecoveredWithTheOthers(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 10, rig.Shards(4))
	r.Buy(t, p, "a", "b", "c")
	r.ConfirmAll(t)
	leaveOpen(t, r, p, 2, 1)
	// The receiver forgets, and is told of a transfer that it cannot know.
	if _, err := r.Lanes.Do(t.Context(), ledger.ShardOf(&p, 2), ledger.Credit{From: 1, N: 7, ID: 1, Units: 1}); !errors.Is(err, ledger.ErrLost) {
		t.Fatalf("a credit ahead of its time: %v", err)
	}
	keeper := sale.NewKeeper(r.Lifecycle, 0, func(uint32) {}, recoverWith(r.Lifecycle))
	rig.Must(t, keeper.Round(t.Context()))
	if now := r.Stored(t, 1); now.Epoch != 2 || now.Rebuilding {
		t.Fatalf("epoch %d, rebuilding %v", now.Epoch, now.Rebuilding)
	}
	balance(t, r, 10, 7)
	// What the dead process would still do is of another epoch.
	var epoch *ledger.EpochError
	if err := r.Mover.Finish(t.Context(), &p); !errors.As(err, &epoch) {
		t.Errorf("a transfer of the old epoch was finished: %v", err)
	}
}
