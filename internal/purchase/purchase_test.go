package purchase_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/purchase"
	"seckill/internal/recovery"
	"seckill/internal/sale"
	"seckill/test/rig"
)

// fixture is a rig with a purchase stage.
type fixture struct {
	*rig.Rig
	*purchase.Stage
	on     *sale.Sale
	memory *sale.Memory

	mu       sync.Mutex
	batches  []int
	troubles []error
}

func newFixture(t *testing.T, stock int64, changes ...func(*purchase.Options)) *fixture {
	t.Helper()
	return newFixtureOf(t, stock, nil, changes...)
}

func newFixtureOf(t *testing.T, stock int64, product []func(*seckill.Product), changes ...func(*purchase.Options)) *fixture {
	t.Helper()
	c := &fixture{Rig: rig.New(t), memory: sale.NewMemory()}
	c.Open(t, 1, stock, product...)
	c.on = c.Catalog.Find(1)
	opt := purchase.Options{
		QueueSize: 1000, MaxBatch: 100, Timeout: 5 * time.Second, Random: rand.Uint64,
		Memory: c.memory, Lane: ledger.LaneOptions{CallTimeout: time.Second}, Recoverer: c,
		Figures: purchase.Figures{ReserveClaims: batches{c}, SellClaims: batches{c}},
		Mover:   c.Mover, DirectSeller: c.Store, Store: c.Store, ExpireAfter: 30 * time.Minute,
	}
	for _, change := range changes {
		change(&opt)
	}
	c.Stage = purchase.New(c.Ledger, c.Clock, opt)
	t.Cleanup(c.Stage.Close)
	return c
}

// batches records the sizes of batches.
type batches struct{ *fixture }

func (b batches) Observe(claims float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fixture.batches = append(b.fixture.batches, int(claims))
}

// RequestRecovery records the cause.
func (c *fixture) RequestRecovery(_ uint32, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.troubles = append(c.troubles, cause)
}

// reports records the calls of Reports.
type reports struct {
	tooHot    func(purchase.TooHot)
	dualWrite func(purchase.DualWriteResult)
	notKept   func([]recovery.FailedPromise)
}

func (r reports) TooHot(why purchase.TooHot) {
	if r.tooHot != nil {
		r.tooHot(why)
	}
}

func (r reports) DualWrite(result purchase.DualWriteResult) {
	if r.dualWrite != nil {
		r.dualWrite(result)
	}
}

func (r reports) NotKept(_ uint32, failed []recovery.FailedPromise) {
	if r.notKept != nil {
		r.notKept(failed)
	}
}

func (r reports) SellFailed(uint32, error) {}

func (c *fixture) buy(buyer string) (seckill.OrderNo, error) {
	return c.Buy(c.on, purchase.Claim{Buyer: buyer, Quantity: 1})
}

// Buy calls the stage's.
func (c *fixture) Buy(on *sale.Sale, claim purchase.Claim) (seckill.OrderNo, error) {
	bought, err := c.Stage.Buy(on, claim)
	return bought.OrderNo, err
}

func (c *fixture) sizes() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]int(nil), c.batches...)
}

func code(err error) seckill.Code {
	if err == nil {
		return ""
	}
	return seckill.CodeOf(err)
}

// crowd sends the claims of n buyers at once and returns their answers.
func (c *fixture) crowd(n int, name string) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { _, errs[i] = c.buy(fmt.Sprintf("%s-%d", name, i)) })
	}
	all.Wait()
	return errs
}

func tally(errs []error) map[seckill.Code]int {
	counts := map[seckill.Code]int{}
	for _, err := range errs {
		counts[code(err)]++
	}
	return counts
}

func TestBuy_AnswersAreTheLedgersVerdicts(t *testing.T) {
	c := newFixture(t, 2)
	first, err := c.buy("a")
	rig.Must(t, err)
	if first.ProductID() != 1 {
		t.Errorf("the number %s is of product %d", first, first.ProductID())
	}
	_, err = c.buy("a")
	rig.Refused(t, err, seckill.CodeAlreadyPurchased)
	if refused := err.(*seckill.Error); len(refused.OrderNos) != 1 || refused.OrderNos[0] != first {
		t.Errorf("already_purchased carries %v, want %s", refused.OrderNos, first)
	}
	keyed := purchase.Claim{Buyer: "b", Quantity: 1, Key: "k", Ref: "shop-7"}
	second, err := c.Buy(c.on, keyed)
	rig.Must(t, err)
	again, err := c.Buy(c.on, keyed)
	rig.Must(t, err)
	if again != second {
		t.Errorf("a repeated key bought %s after %s", again, second)
	}
	_, err = c.buy("c")
	rig.Refused(t, err, seckill.CodeSoldOut)
	if !c.on.SoldOut() {
		t.Error("the sold-out flag is not raised")
	}
	for buyer, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if got := c.memory.MayHold(1, []byte(buyer)); got != want {
			t.Errorf("the memory of %s is %v", buyer, got)
		}
	}
	// The shard ignores a state that is older than the one it was opened with.
	version := c.Stored(t, 1).Version
	for state, want := range map[seckill.SaleState]seckill.Code{seckill.SalePaused: seckill.CodePaused, seckill.SaleEnded: seckill.CodeEnded} {
		_, err := c.Embedded.SetState(t.Context(), c.on.Shard(0), state, version)
		rig.Must(t, err)
		_, err = c.buy("d")
		rig.Refused(t, err, want)
	}
}

func TestBuy_BusyIfNotPreheated(t *testing.T) {
	c := newFixture(t, 1)
	c.Product(t, 2, 5)
	_, err := c.Buy(c.Catalog.Find(2), purchase.Claim{Buyer: "a", Quantity: 1})
	rig.Refused(t, err, seckill.CodeBusy)
}

// While both lanes are busy, all arriving claims gather in few batches. No claim waits for
// a batch to fill.
func TestBatcher_GathersWhileABatchIsInFlight(t *testing.T) {
	const lanes, queued, beyond, most = 2, 150, 10, 100
	var refused atomic.Int64
	c := newFixture(t, 1000, func(o *purchase.Options) {
		o.QueueSize, o.MaxBatch, o.Reports = queued, most, reports{tooHot: func(purchase.TooHot) { refused.Add(1) }}
		o.Timeout, o.Lane.CallTimeout = time.Minute, time.Minute
	})
	open := c.Ledger.Block("Do")
	defer open()
	done := make(chan []error, lanes+1)
	for lane := range lanes {
		go func() { done <- c.crowd(1, fmt.Sprint("first-", lane)) }()
		rig.Until(t, "the lane is in flight", func() bool { return c.Ledger.Calls("Do") == lane+1 })
	}
	go func() { done <- c.crowd(queued+beyond, "b") }()
	rig.Until(t, "the rest has gathered behind them", func() bool { return refused.Load() == beyond })
	open()
	if got := tally(slices.Concat(<-done, <-done, <-done)); got[""] != lanes+queued {
		t.Fatalf("answers are %v", got)
	}
	// Whichever lane came first, both took claims from the line.
	if sizes := c.sizes(); slices.Max(sizes) < queued/lanes || slices.Max(sizes) > most {
		t.Errorf("batches of %v: nothing gathered, or beyond the bound", sizes)
	}
}

func TestBatcher_FullQueueIsTooHot(t *testing.T) {
	const crowd, queued, lanes = 20, 5, 2
	c := newFixture(t, 1000, func(o *purchase.Options) {
		o.QueueSize, o.MaxBatch, o.Timeout, o.Lane.CallTimeout = queued, 1, time.Minute, time.Minute
	})
	open := c.Ledger.Block("Do")
	defer open()
	var refused, others atomic.Int64
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() {
			if _, err := c.buy(fmt.Sprintf("b-%d", i)); code(err) == seckill.CodeTooHot {
				refused.Add(1)
			} else if err != nil {
				others.Add(1)
			}
		})
	}
	rig.Until(t, "the rest is refused", func() bool { return refused.Load() >= crowd-queued-lanes })
	open()
	all.Wait()
	if others.Load() != 0 || refused.Load() > crowd-queued {
		t.Errorf("%d were refused, %d answered otherwise", refused.Load(), others.Load())
	}
}

func TestBuy_BusyAtDeadlineAndRepeatFindsOrder(t *testing.T) {
	c := newFixture(t, 10, func(o *purchase.Options) { o.Timeout = 100 * time.Millisecond })
	c.Ledger.FailAfter("Do", 1) // the reply is lost; asking is held up
	open := c.Ledger.Block("Heartbeat")
	defer open()
	keyed := purchase.Claim{Buyer: "a", Quantity: 1, Key: "k"}
	gate := c.Ledger.Block("Do")
	_, err := c.Buy(c.on, keyed)
	rig.Refused(t, err, seckill.CodeBusy)
	gate()
	c.Ledger.Heal()
	rig.Until(t, "the claim is in the ledger", func() bool { return c.Figures(t, *c.on.Terms()).Marked == 1 })
	var no seckill.OrderNo
	rig.Until(t, "the repeated claim is answered", func() bool { // it has as little time
		no, err = c.Buy(c.on, keyed)
		return code(err) != seckill.CodeBusy
	})
	rig.Must(t, err)
	held, err := c.Embedded.Held(t.Context(), c.on.Shard(0), "a")
	rig.Must(t, err)
	if len(held) != 1 || held[0].OrderNo != no {
		t.Errorf("got %s, the ledger holds %+v", no, held)
	}
	if !c.memory.MayHold(1, []byte("a")) {
		t.Error("who was left without a certain answer is not remembered")
	}
}

// A claim that gave up leaves its waiter to the batcher. A late answer must never reach
// another claimant.
func TestBuy_LateAnswersReachNoOtherClaim(t *testing.T) {
	const hiccups = 15
	c := newFixture(t, 1_000_000, func(o *purchase.Options) { o.Timeout = 50 * time.Millisecond })
	var accepted, gaveUp atomic.Int64
	var all sync.WaitGroup
	defer all.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range 16 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				buyer := fmt.Sprintf("b-%d-%d", i, n)
				no, err := c.buy(buyer)
				if err != nil {
					gaveUp.Add(1)
					continue
				}
				accepted.Add(1)
				held, err := c.Embedded.Held(t.Context(), c.on.Shard(0), buyer)
				if err != nil || len(held) != 1 || held[0].OrderNo != no {
					t.Errorf("%s was answered %s, the ledger holds %+v, %v", buyer, no, held, err)
				}
			}
		})
	}
	for range hiccups { // the ledger hangs for short times
		were := gaveUp.Load()
		open := c.Ledger.Block("Do")
		rig.Until(t, "claims give up", func() bool { return gaveUp.Load() > were })
		open()
		were = accepted.Load()
		rig.Until(t, "claims are accepted in time", func() bool { return accepted.Load() > were })
	}
}

// A recovery under load: no claim hangs, every accepted order survives, and sales continue
// in the new epoch without intervention.
func TestBuy_ContinuesInTheNextEpoch(t *testing.T) {
	const stock = 100_000
	c := newFixture(t, stock)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := c.buy(fmt.Sprintf("b-%d-%d", i, n)); err != nil && code(err) != seckill.CodeBusy {
					t.Errorf("answered %v", err)
					return
				}
				<-time.After(2 * time.Millisecond)
			}
		})
	}
	all.Go(func() {
		if err := c.Drain(ctx); err != nil {
			t.Error(err)
		}
	})
	for range 3 {
		p, err := c.Lifecycle.Recover(t.Context(), 1, rig.Operator)
		rig.Must(t, err)
		held := c.Figures(t, p).Marked
		rig.Until(t, "the crowd buys in the new epoch", func() bool { return c.Figures(t, p).Marked > held })
	}
	cancel()
	all.Wait()
	c.ConfirmAll(t)
	p := c.Stored(t, 1)
	f := c.Figures(t, p)
	if f.Available+f.Marked != stock || f.Available != p.Stock {
		t.Errorf("%d free and %d marked, stock %d", f.Available, f.Marked, p.Stock)
	}
	if n := len(c.Beats()); n != 2 {
		t.Errorf("%d lanes beat, want those of the present epoch", n)
	}
}

// A crowd at a closed shard must not start batchers with every claim.
func TestBuy_ClosedShardIsBusyAndRequestsRecovery(t *testing.T) {
	c := newFixture(t, 100)
	rig.Must(t, c.Embedded.Close(t.Context(), c.on.Shard(0)))
	const crowd, atLeast, lanes = 100, 150 * time.Millisecond, 2
	const pause = 100 * time.Millisecond // between two starts, as in the stage
	calls, began := c.Ledger.Calls("Do"), time.Now()
	asked := 0
	for ; asked < crowd || time.Since(began) < atLeast; asked++ {
		_, err := c.buy("a")
		rig.Refused(t, err, seckill.CodeBusy)
	}
	got := c.Ledger.Calls("Do") - calls
	if most := lanes * (1 + int(time.Since(began)/pause)); got > most {
		t.Errorf("%d claims made %d ledger calls, more than %d", asked, got, most)
	}
	c.mu.Lock()
	troubles := len(c.troubles)
	c.mu.Unlock()
	if troubles == 0 {
		t.Error("nobody was told")
	}
	_, err := c.Embedded.Open(t.Context(), c.on.Shard(0))
	rig.Must(t, err)
	rig.Until(t, "the sale goes on", func() bool { _, err := c.buy("a"); return err == nil })
}

func TestBuy_RebuildingProductIsBusyWithoutLedgerCall(t *testing.T) {
	c := newFixture(t, 100)
	_, err := c.buy("a")
	rig.Must(t, err)
	rig.Must(t, c.Store.BeginRebuild(t.Context(), 1, 1))
	rig.Must(t, c.Catalog.Refresh(t.Context()))
	calls := c.Ledger.Calls("Do")
	_, err = c.buy("b")
	rig.Refused(t, err, seckill.CodeBusy)
	if c.Ledger.Calls("Do") != calls {
		t.Error("the ledger was asked")
	}
}

func TestClose_AnswersAllAndLeavesNoGoroutine(t *testing.T) {
	c := newFixture(t, 100_000, func(o *purchase.Options) { o.Timeout = time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, _ = c.buy(fmt.Sprintf("b-%d-%d", i, n))
			}
		})
	}
	rig.Until(t, "the crowd buys", func() bool { return len(c.sizes()) > 10 })
	c.Stage.Close()
	_, err := c.buy("late")
	rig.Refused(t, err, seckill.CodeBusy)
	cancel()
	answered := make(chan struct{})
	go func() { all.Wait(); close(answered) }()
	select {
	case <-answered: // far below the claims' own timeout
	case <-time.After(10 * time.Second):
		t.Fatal("somebody waits for ever")
	}
	rig.Until(t, "the batchers are gone", func() bool { return !strings.Contains(stacks(), "purchase.(*batcher)") })
}

func TestRetire_StopsBatchers(t *testing.T) {
	c := newFixture(t, 10)
	_, err := c.buy("a")
	rig.Must(t, err)
	c.Retire(c.on)
	c.Retire(nil)
	rig.Until(t, "the batchers are gone", func() bool { return !strings.Contains(stacks(), "purchase.(*batcher)") })
	if beats := c.Beats(); len(beats) != 0 {
		t.Errorf("%d lanes beat", len(beats))
	}
	_, err = c.buy("b") // the sale was prolonged
	rig.Must(t, err)
}

func TestHeartbeat_RetiresLanesOfAnOldEpoch(t *testing.T) {
	c := newFixture(t, 10)
	_, err := c.buy("a")
	rig.Must(t, err)
	beat := func() {
		beats := c.Beats()
		outcomes, err := c.Rig.Ledger.Heartbeat(t.Context(), beats)
		rig.Must(t, err)
		c.Heard(beats, outcomes)
	}
	beat()
	if n := len(c.Beats()); n != 2 {
		t.Fatalf("%d lanes of a live epoch beat, want 2", n)
	}
	c.ConfirmAll(t)
	_, err = c.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	beat()
	if n := len(c.Beats()); n != 0 {
		t.Errorf("%d lanes of a finished epoch beat", n)
	}
	_, err = c.buy("b")
	rig.Must(t, err)
}

func stacks() string {
	room := make([]byte, 1<<20)
	return string(room[:runtime.Stack(room, true)])
}
