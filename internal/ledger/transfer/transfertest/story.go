package transfertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/ledger/transfer"
)

type story struct {
	name  string
	stock []int64
	tell  func(*fixture)
}

// The number of writes that a process can make before it dies.
const (
	upToDebit  = 1
	upToCredit = 2
)

var errKilled = errors.New("the process was killed")

// dyingWriter lets a process make some writes, and then fails.
type dyingWriter struct {
	ledger.Writer
	left int
}

func (m *dyingWriter) Do(ctx context.Context, shard ledger.Shard, write ledger.Write) (ledger.Result, error) {
	if m.left == 0 {
		return ledger.Result{}, errKilled
	}
	m.left--
	return m.Writer.Do(ctx, shard, write)
}

// moveAndDie runs a transfer of want units to shard to, by a process that dies after some
// writes.
func (f *fixture) moveAndDie(to int, want int64, writes int) {
	f.Helper()
	mover := transfer.New(f.ledger, &dyingWriter{newLanes(f.ledger), writes}, rand.Uint64)
	if _, err := mover.Bring(f.Context(), f.terms, f.survey(), to, want); !errors.Is(err, errKilled) {
		f.Fatalf("a process that is killed after %d writes returned %v", writes, err)
	}
}

func (f *fixture) bring(to int, want, have int64) {
	f.Helper()
	got, err := f.mover.Bring(f.Context(), f.terms, f.survey(), to, want)
	f.must(err)
	if got != have {
		f.Errorf("shard %d has %d units, want %d", to, got, have)
	}
}

func (f *fixture) proven(s *transfer.Survey, want bool) {
	f.Helper()
	got, err := f.mover.Prove(f.Context(), f.terms, s)
	f.must(err)
	if got != want {
		f.Errorf("that no more than %d units are free is proven: %v, want %v", s.Free(), got, want)
	}
}

// sell takes units of a shard for a buyer whose home it is.
func (f *fixture) sell(shard int, units int) ledger.ReleaseOrder {
	f.Helper()
	claim := f.claim(shard, units)
	result, err := newLanes(f.ledger).Do(f.Context(), f.shard(shard), reserve(claim))
	f.must(err)
	if result.Verdicts[0].Code != ledger.VerdictAccepted {
		f.Fatalf("%d units of shard %d: verdict %d", units, shard, result.Verdicts[0].Code)
	}
	return ledger.ReleaseOrder{OrderNo: claim.OrderNo, Buyer: claim.Buyer}
}

// claim returns a claim of a new buyer whose home is the shard.
func (f *fixture) claim(shard, units int) seckill.Claim {
	return seckill.Claim{
		OrderNo: seckill.NewOrderNo(time.Now(), f.terms.ID, rand.Uint64()), Buyer: f.buyerOf(shard), Quantity: units,
	}
}

func reserve(claim seckill.Claim) ledger.Reserve {
	return ledger.Reserve{At: time.Now(), Name: "p", Currency: "CNY", Claims: []seckill.Claim{claim}}
}

func (f *fixture) release(shard int, order ledger.ReleaseOrder) {
	f.Helper()
	_, err := newLanes(f.ledger).Do(f.Context(), f.shard(shard), ledger.Release{Orders: []ledger.ReleaseOrder{order}})
	f.must(err)
}

func (f *fixture) change(id string, delta int64) {
	f.Helper()
	_, err := newLanes(f.ledger).Do(f.Context(), f.shard(0), ledger.StockChange{ID: id, Delta: delta})
	f.must(err)
}

func (f *fixture) buyerOf(shard int) string {
	for {
		buyer := fmt.Sprintf("b-%x", rand.Uint64())
		if seckill.HomeShard(f.terms, buyer) == shard {
			return buyer
		}
	}
}

func stories() []story {
	return append(bringStories(), proofStories()...)
}

func bringStories() []story {
	return []story{
		{"half of the units of the richest shard is taken", []int64{0, 4, 10}, func(f *fixture) {
			f.bring(0, 1, 5)
			f.wantAvailable(5, 4, 5)
		}},
		{"no less than the missing units is taken, from several shards if needed", []int64{1, 4, 6}, func(f *fixture) {
			f.bring(0, 10, 10)
			f.wantAvailable(10, 1, 0)
		}},
		{"units that exist nowhere are not brought", []int64{0, 0, 1}, func(f *fixture) {
			f.bring(0, 2, 1)
			f.bring(0, 2, 1)
			f.wantAvailable(1, 0, 0)
		}},
		{"a transfer of a process that died after its debit is finished by another", []int64{0, 0, 9}, func(f *fixture) {
			f.moveAndDie(0, 9, upToDebit)
			f.bring(0, 1, 9)
			f.wantAvailable(9, 0, 0)
		}},
		{"a transfer of a process that died after its credit is finished without doubling units", []int64{0, 0, 9}, func(f *fixture) {
			f.moveAndDie(0, 9, upToCredit)
			f.bring(0, 1, 9)
			f.wantAvailable(9, 0, 0)
		}},
		{"units in transit of a dead process are found", []int64{0, 0, 9}, func(f *fixture) {
			f.moveAndDie(1, 9, upToDebit)
			f.bring(0, 3, 0)
			f.bring(0, 3, 5)
			f.wantAvailable(5, 4, 0)
		}},
		{"a round of Finisher finishes open transfers", []int64{0, 8, 9, 0}, func(f *fixture) {
			f.moveAndDie(0, 9, upToDebit)
			f.moveAndDie(3, 8, upToCredit)
			other := &seckill.Product{ID: f.terms.ID, Shards: 1, Epoch: 1}
			finisher := transfer.Finisher{Mover: f.mover, Products: func() []*seckill.Product { return []*seckill.Product{other, f.terms} }}
			f.must(finisher.Round(f.Context()))
			f.wantAvailable(9, 0, 0, 8)
			f.must(finisher.Round(f.Context()))
		}},
		{"a transfer by two processes at once happens once", []int64{0, 9}, func(f *fixture) {
			seen := f.survey()
			f.bring(0, 9, 9)
			have, err := f.mover.Bring(f.Context(), f.terms, seen, 0, 9) // by the old survey
			f.must(err)
			if have != 0 {
				f.Errorf("a late process says that %d units came", have)
			}
			f.wantAvailable(9, 0)
		}},
		{"units are gathered from everywhere", []int64{1, 2, 3, 4, 5}, func(f *fixture) {
			f.moveAndDie(3, 5, upToDebit)
			have, none, err := f.mover.Gather(f.Context(), f.terms, 0, 15)
			f.must(err)
			if have != 15 || none {
				f.Errorf("gathered %d, none is %v", have, none)
			}
			f.wantAvailable(15, 0, 0, 0, 0)
			have, none, err = f.mover.Gather(f.Context(), f.terms, 1, 16)
			f.must(err)
			if have != 0 || !none {
				f.Errorf("gathered %d for more than there is, none is %v", have, none)
			}
		}},
		{"a shard that is closed or of another epoch is an error, and nothing moves", []int64{0, 9}, func(f *fixture) {
			f.must(f.ledger.Close(f.Context(), f.shard(1)))
			if _, err := f.mover.Survey(f.Context(), f.terms); !errors.Is(err, ledger.ErrClosed) {
				f.Errorf("survey of a closed shard: %v", err)
			}
			f.terms.Epoch = 2
			var epoch *ledger.EpochError
			if err := f.mover.Finish(f.Context(), f.terms); !errors.As(err, &epoch) || epoch.Epoch != 1 {
				f.Errorf("survey of another epoch: %v", err)
			}
		}},
	}
}

func proofStories() []story {
	return []story{
		{"units in transit count as unsold", []int64{0, 9}, func(f *fixture) {
			f.moveAndDie(0, 9, upToDebit)
			if free := f.survey().Free(); free != 9 {
				f.Errorf("%d free, want 9", free)
			}
			f.bring(0, 9, 9)
			if free := f.survey().Free(); free != 9 {
				f.Errorf("%d free after arrival, want 9", free)
			}
		}},
		{"two surveys without changes are a proof", []int64{1, 2}, func(f *fixture) {
			f.sell(0, 1)
			f.sell(1, 2)
			seen := f.survey()
			if seen.Free() != 0 {
				f.Fatalf("%d free", seen.Free())
			}
			f.proven(seen, true)
		}},
		{"a transfer and a sale between the surveys leave the proof valid", []int64{1, 2}, func(f *fixture) {
			seen := f.survey()
			f.bring(0, 2, 2)
			f.sell(0, 2)
			f.proven(seen, true)
		}},
		{"a unit returned between the surveys invalidates the proof", []int64{1, 2}, func(f *fixture) {
			order := f.sell(1, 2)
			seen := f.survey()
			f.release(1, order)
			f.sell(1, 2)
			f.proven(seen, false)
		}},
		{"units added between the surveys invalidate the proof", []int64{1, 2}, func(f *fixture) {
			seen := f.survey()
			f.change("up", 1)
			f.sell(0, 2)
			f.proven(seen, false)
		}},
	}
}
