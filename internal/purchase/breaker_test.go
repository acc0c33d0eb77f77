package purchase_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgertest"
	"seckill/internal/ledger/transfer"
	"seckill/internal/purchase"
	"seckill/internal/sale"
	"seckill/test/rig"
	"seckill/test/virtual"
)

// remote is a ledger behind a network that can fail. Calls that reached the server
// while it hung are executed in order when it continues, also if their callers are gone.
type remote struct {
	ledger.Ledger
	mu         sync.Mutex
	frozen     bool
	socket     []func()
	refused    error // every call fails with it and is not executed
	waiting    int   // calls that have not returned
	most       int   // of them at once
	reads      int
	slow       time.Duration // of a read
	pace       time.Duration // of a call
	lag        time.Duration // of a reply
	loses      bool          // credits never reach the server
	unreadable func(shard int) bool
}

func (r *remote) Read(ctx context.Context, shard ledger.Shard) (ledger.Figures, error) {
	r.mu.Lock()
	r.reads++
	slow, unreadable := r.slow, r.unreadable
	r.mu.Unlock()
	virtual.Sleep(slow)
	if unreadable != nil && unreadable(shard.Index) {
		return ledger.Figures{}, errors.New("no route to this shard")
	}
	return r.Ledger.Read(ctx, shard)
}

func (r *remote) Do(ctx context.Context, req ledger.Request) (ledger.Reply, error) {
	r.mu.Lock()
	r.waiting++
	r.most = max(r.most, r.waiting)
	refused, frozen, pace, lag := r.refused, r.frozen, r.pace, r.lag
	_, credit := req.Write.(ledger.Credit)
	lost := credit && r.loses
	type answer struct {
		reply ledger.Reply
		err   error
	}
	heard := make(chan answer, 1)
	execute := func() {
		reply, err := r.Ledger.Do(context.Background(), req)
		heard <- answer{reply, err}
	}
	if frozen && refused == nil {
		r.socket = append(r.socket, execute)
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waiting--
	}()
	if refused != nil {
		return ledger.Reply{}, refused
	}
	virtual.Sleep(pace)
	if !frozen && !lost {
		execute()
	}
	virtual.Sleep(lag)
	select {
	case a := <-heard:
		return a.reply, a.err
	case <-ctx.Done():
		return ledger.Reply{}, ctx.Err()
	}
}

func (r *remote) loseCredits(lose bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loses = lose
}

func (r *remote) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = true
}

func (r *remote) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, execute := range r.socket {
		execute()
	}
	r.frozen, r.socket = false, nil
}

func (r *remote) waitedAtOnce() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}

func (r *remote) setPace(pace time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pace = pace
}

func (r *remote) setLag(lag time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lag = lag
}

func (r *remote) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = err
}

type products []seckill.Product

func (products) Product(context.Context, uint32) (seckill.Product, error) {
	return seckill.Product{}, seckill.Errorf(seckill.CodeNotFound, "no such product")
}

func (p products) CurrentProducts(context.Context) ([]seckill.Product, error) { return p, nil }

// outlet is a stage on a remote ledger, in memory and in virtual time.
type outlet struct {
	*purchase.Stage
	remote  *remote
	on      *sale.Sale
	product seckill.Product

	troubles []error
}

// newOutlet sells the given stock of each shard.
func newOutlet(t *testing.T, stock ...int64) *outlet {
	t.Helper()
	return newOutletWith(t, nil, stock...)
}

func newOutletWith(t *testing.T, change func(*purchase.Options), stock ...int64) *outlet {
	t.Helper()
	reference := ledgertest.NewReference()
	o := &outlet{remote: &remote{Ledger: reference}}
	o.product = seckill.Product{
		ID: 1, Group: 1, Name: "p", PriceCents: 1, Currency: "CNY", PerUserLimit: 10,
		Shards: len(stock), Strategy: seckill.StrategySharded, Epoch: 1, StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour),
	}
	for i, units := range stock {
		shard := ledger.ShardOf(&o.product, i)
		_, err := reference.Install(context.Background(), ledger.Allotment{Shard: shard, Available: units, Limit: 10}, nil)
		rig.Must(t, err)
		_, err = reference.Open(context.Background(), shard)
		rig.Must(t, err)
		o.product.Stock += units
	}
	o.open(t, change)
	return o
}

// another is a second instance that sells the same products.
func (o *outlet) another(t *testing.T) *outlet {
	t.Helper()
	other := &outlet{remote: o.remote, product: o.product}
	other.open(t, nil)
	return other
}

func (o *outlet) open(t *testing.T, change func(*purchase.Options)) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	catalog := sale.NewCatalog(products{o.product})
	rig.Must(t, catalog.Refresh(context.Background()))
	o.on = catalog.Find(1)
	lane := ledger.LaneOptions{CallTimeout: 400 * time.Millisecond}
	opt := purchase.Options{
		QueueSize: 50, MaxBatch: 10, Timeout: 2 * time.Second, Random: rand.Uint64,
		Lane: lane, Mover: transfer.New(o.remote, sale.NewLanes(o.remote, lane), rand.Uint64),
		Recoverer: o,
	}
	if change != nil {
		change(&opt)
	}
	o.Stage = purchase.New(o.remote, sale.NewClock(o.remote.Now, log), opt)
	t.Cleanup(o.Stage.Close)
}

// RequestRecovery records the cause.
func (o *outlet) RequestRecovery(_ uint32, cause error) { o.troubles = append(o.troubles, cause) }

// answer buys and reports the answer's code and how long it took.
func (o *outlet) answer(buyer string) (seckill.Code, time.Duration) {
	asked := time.Now()
	_, err := o.Buy(o.on, purchase.Claim{Buyer: buyer, Quantity: 1, Key: "k"})
	return code(err), time.Since(asked)
}

// crowd sends a claim every millisecond for a while. Every claim must be answered within a
// second, and with one of the allowed codes.
func (o *outlet) crowd(t *testing.T, name string, lasts time.Duration, allowed ...seckill.Code) {
	t.Helper()
	var all sync.WaitGroup
	for i := range int(lasts / time.Millisecond) {
		all.Go(func() {
			got, took := o.answer(fmt.Sprintf("%s-%d", name, i))
			for _, want := range allowed {
				if got == want && took <= time.Second {
					return
				}
			}
			t.Errorf("claim %d was answered %q after %v", i, got, took)
		})
		virtual.Sleep(time.Millisecond)
	}
	all.Wait()
}

// recovers checks that a claim is accepted within two seconds.
func (o *outlet) recovers(t *testing.T, buyer string) {
	t.Helper()
	for since := time.Now(); ; virtual.Sleep(time.Millisecond) {
		if got, _ := o.answer(buyer); got == "" {
			break
		}
		if time.Since(since) > 2*time.Second {
			t.Fatal("traffic does not recover in two seconds")
		}
	}
	if o.Silent() > 0 {
		t.Error("a ledger that answers counts as down")
	}
}

func TestBuy_BusyWithinASecondIfLedgerHangs(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 100_000)
		o.crowd(t, "before", 100*time.Millisecond, "")
		o.remote.freeze()
		o.crowd(t, "frozen", 5*time.Second, seckill.CodeBusy, seckill.CodeTooHot)
		if o.Silent() == 0 {
			t.Error("a ledger that does not answer does not count as down")
		}
		if got, took := o.answer("late"); got != seckill.CodeBusy || took != 0 {
			t.Errorf("a claim at an open breaker is answered %q after %v", got, took)
		}
		if most := o.remote.waitedAtOnce(); most > 2 { // one of each lane
			t.Errorf("%d calls waited at once", most)
		}
		virtual.Sleep(time.Minute)
		o.remote.resume()
		o.recovers(t, "after")
		o.crowd(t, "after", 100*time.Millisecond, "")
		o.exactlyOnce(t)
	})
}

// exactlyOnce checks that buyers have at most one order each and that no unit is lost or
// doubled, whatever the server executed late.
func (o *outlet) exactlyOnce(t *testing.T) {
	t.Helper()
	var units int64
	for i := range o.product.Shards {
		f, err := o.remote.Read(context.Background(), ledger.ShardOf(&o.product, i))
		rig.Must(t, err)
		units += f.Available + f.Marked + f.Sent - f.Received
	}
	if units != o.product.Stock {
		t.Errorf("%d units of %d are there", units, o.product.Stock)
	}
	held := map[string]bool{}
	for _, entry := range o.remote.Ledger.(*ledgertest.Reference).Outbox() {
		for _, claim := range entry.Claims {
			if held[claim.Buyer] {
				t.Errorf("%s bought twice", claim.Buyer)
			}
			held[claim.Buyer] = true
		}
	}
}

func TestBuy_SingleClaimBusyWithinASecondIfLedgerHangs(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 100)
		o.remote.freeze()
		if got, took := o.answer("a"); got != seckill.CodeBusy || took > time.Second {
			t.Errorf("answered %q after %v", got, took)
		}
		o.remote.resume()
		o.recovers(t, "a") // the same claim finds its order
		o.exactlyOnce(t)
	})
}

func TestBuy_BusyAtOnceIfLedgerRefuses(t *testing.T) {
	for name, err := range map[string]error{
		"connections are refused": errors.New("connection refused"),
		"nothing is executed":     fmt.Errorf("loading: %w", ledger.ErrNotExecuted),
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) {
				o := newOutlet(t, 100_000)
				o.remote.fail(err)
				o.crowd(t, "dead", 3*time.Second, seckill.CodeBusy)
				if o.Silent() == 0 {
					t.Error("a ledger that is gone does not count as down")
				}
				o.remote.fail(nil)
				o.recovers(t, "after")
				o.exactlyOnce(t)
			})
		})
	}
}

func TestClose_EndsWhileLedgerHangs(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 100)
		o.remote.freeze()
		o.crowd(t, "frozen", time.Second, seckill.CodeBusy, seckill.CodeTooHot)
		stopped := time.Now()
		o.Close()
		if took := time.Since(stopped); took > time.Second {
			t.Errorf("stopping took %v", took)
		}
		o.remote.resume()
	})
}

// A single lost reply is settled by asking, so it is not an outage.
func TestBreaker_OneLostReplyDoesNotOpenIt(t *testing.T) {
	c := newFixture(t, 10)
	c.Ledger.FailAfter("Do", 1)
	_, err := c.buy("a")
	rig.Must(t, err)
	if c.Silent() > 0 {
		t.Error("a lost reply counts as an outage")
	}
}
