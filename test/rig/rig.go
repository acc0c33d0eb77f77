// Package rig opens the real embedded ledger, queue and store in a temporary
// directory, with a clock that can be moved and with faults that can be
// injected. The tests of the stages (confirm, recovery, reconcile, ...) use it.
package rig

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // Exec writes to the tables directly

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgermem"
	"seckill/internal/ledger/transfer"
	"seckill/internal/queue"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/internal/store/storesql"
	"seckill/internal/store/storetest"
)

// Patience is how long Until waits, far longer than any wait needs.
const Patience = 20 * time.Second

// Operator is the actor of the changes that tests make.
var Operator = store.Actor{Name: "operator", Reason: "test"}

// Clock is the real clock plus an offset.
type Clock struct{ ahead atomic.Int64 }

// Now is the moved time.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

// Rig has the parts of one instance that the stages use.
type Rig struct {
	Dir       string
	Time      *Clock            // of the ledger and of the store
	Store     *storetest.Faulty // over the embedded store
	Ledger    *Ledger           // over the embedded ledger
	Embedded  *ledgermem.Ledger
	Queue     queue.Queue
	Clock     *sale.Clock
	Catalog   *sale.Catalog
	Lanes     *sale.Lanes
	Mover     *transfer.Mover
	Lifecycle *sale.Lifecycle

	random     atomic.Uint64
	draws      draws
	storeFile  string
	closeStore func() error
}

// New opens a rig until the test ends.
func New(tb testing.TB) *Rig {
	tb.Helper()
	r := &Rig{Dir: tb.TempDir(), Time: &Clock{}}
	r.openStore(tb, filepath.Join(r.Dir, "store.db"))
	tb.Cleanup(func() { r.closeStore() })
	r.Ledger = &Ledger{}
	r.Ledger.Heal()
	r.openLedger(tb)
	r.Clock = sale.NewClock(r.Ledger.Now, slog.New(slog.DiscardHandler))
	r.Catalog = sale.NewCatalog(r.Store)
	r.newLifecycle()
	tb.Cleanup(func() { r.shutdown() })
	return r
}

// draws is a random source with a fixed seed, because shard keys decide which
// buyers share a shard.
type draws struct {
	mu   sync.Mutex
	from *rand.ChaCha8
}

func (d *draws) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.from == nil {
		d.from = rand.NewChaCha8([32]byte{})
	}
	return d.from.Read(p)
}

func (r *Rig) openStore(tb testing.TB, file string) {
	tb.Helper()
	s, err := storesql.Open(tb.Context(), "sqlite:"+file, storesql.Options{Now: r.Time.Now, Random: &r.draws})
	Must(tb, err)
	r.storeFile, r.closeStore = file, s.Close
	Must(tb, s.Migrate(tb.Context()))
	r.Store = storetest.NewFaulty(s)
}

// CopyStore copies the store. The returned function restarts on that copy, so
// that later writes are lost.
func (r *Rig) CopyStore(tb testing.TB) (restore func()) {
	tb.Helper()
	file := filepath.Join(r.Dir, fmt.Sprintf("copy-%d.db", r.random.Add(1)))
	db, err := sql.Open("sqlite", "file:"+r.storeFile+"?_pragma=busy_timeout(5000)")
	Must(tb, err)
	defer db.Close()
	_, err = db.ExecContext(tb.Context(), "VACUUM INTO ?", file)
	Must(tb, err)
	return func() {
		tb.Helper()
		Must(tb, r.closeStore())
		r.openStore(tb, file)
		r.Catalog = sale.NewCatalog(r.Store)
		r.Restart(tb)
	}
}

func (r *Rig) journal() string { return filepath.Join(r.Dir, "journal.db") }

func (r *Rig) openLedger(tb testing.TB) {
	tb.Helper()
	embedded, err := ledgermem.Open(tb.Context(), r.journal(), ledgermem.Options{Now: r.Time.Now})
	Must(tb, err)
	r.Embedded, r.Queue = embedded, embedded.Queue()
	r.Ledger.set(embedded)
}

func (r *Rig) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	return r.Embedded.Shutdown(ctx)
}

// newLifecycle makes a new lifecycle, as a process does at its start.
func (r *Rig) newLifecycle() { r.On(r.Ledger, r.Queue) }

// On makes a new lifecycle with its lanes on another ledger, for tests of a
// server's behaviour. The Rig's own reads still use the embedded ledger.
func (r *Rig) On(l ledger.Ledger, q queue.Queue) {
	r.Queue = q
	r.Lanes = sale.NewLanes(l, ledger.LaneOptions{CallTimeout: time.Second})
	r.Mover = transfer.New(l, r.Lanes, rand.Uint64)
	r.Lifecycle = sale.NewLifecycle(sale.LifecycleOptions{
		Store: r.Store, Ledger: l, Queue: q, Catalog: r.Catalog, Clock: r.Clock, Lanes: r.Lanes,
		Mover: r.Mover, Logger: slog.New(slog.DiscardHandler), Apart: true,
		Strategies: []seckill.Strategy{seckill.StrategyAsync, seckill.StrategyDirect, seckill.StrategyDualWrite, seckill.StrategySharded},
	})
}

// Restart closes the ledger and opens it again, with a new lifecycle.
func (r *Rig) Restart(tb testing.TB) {
	tb.Helper()
	Must(tb, r.shutdown())
	r.openLedger(tb)
	r.newLifecycle()
}

// LoseJournal restarts on an empty journal, so that the ledger has lost
// everything.
func (r *Rig) LoseJournal(tb testing.TB) {
	tb.Helper()
	Must(tb, r.shutdown())
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(r.journal() + suffix); err != nil && !os.IsNotExist(err) {
			tb.Fatal(err)
		}
	}
	r.openLedger(tb)
	r.newLifecycle()
}

// Exec runs a statement on the store's file directly.
func (r *Rig) Exec(tb testing.TB, query string, args ...any) {
	tb.Helper()
	db, err := sql.Open("sqlite", "file:"+r.storeFile+"?_pragma=busy_timeout(5000)")
	Must(tb, err)
	defer db.Close()
	done, err := db.ExecContext(tb.Context(), query, args...)
	Must(tb, err)
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		tb.Fatalf("%q changed %d rows, error %v", query, n, err)
	}
}

// Product is a sale that has begun; changes adjust it before it is created.
func (r *Rig) Product(tb testing.TB, id uint32, stock int64, changes ...func(*seckill.Product)) seckill.Product {
	tb.Helper()
	now := r.Time.Now()
	p := seckill.Product{
		ID: id, Group: id, Name: fmt.Sprintf("product %d", id), PriceCents: 999, Currency: "CNY", Stock: stock,
		PerUserLimit: 1, Shards: 1, Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait,
		StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
	}
	for _, change := range changes {
		change(&p)
	}
	p, err := r.Lifecycle.Create(tb.Context(), p, Operator)
	Must(tb, err)
	return p
}

// Open creates and preheats a product.
func (r *Rig) Open(tb testing.TB, id uint32, stock int64, changes ...func(*seckill.Product)) seckill.Product {
	tb.Helper()
	r.Product(tb, id, stock, changes...)
	p, err := r.Lifecycle.Preheat(tb.Context(), id, Operator)
	Must(tb, err)
	return p
}

// Limit sets the per-buyer limit of a product to create.
func Limit(n int) func(*seckill.Product) { return func(p *seckill.Product) { p.PerUserLimit = n } }

// Shards spreads a product to create over several shards.
func Shards(n int) func(*seckill.Product) {
	return func(p *seckill.Product) { p.Shards, p.Strategy = n, seckill.StrategySharded }
}

// Strategy sets the strategy of a product to create.
func Strategy(s seckill.Strategy) func(*seckill.Product) {
	return func(p *seckill.Product) { p.Strategy = s }
}

// FallBack sets a product to create to be sold by the store while its ledger is
// down.
func FallBack(p *seckill.Product) { p.Fallback = seckill.FallbackStore }

// TakeOver makes the store sell a product instead of the ledger. No other
// instance has to acknowledge it here.
func (r *Rig) TakeOver(tb testing.TB, id uint32) seckill.Product {
	tb.Helper()
	taken, err := r.Lifecycle.TakeOver(tb.Context(), id, Operator)
	Must(tb, err)
	if opened, err := r.Store.OpenStore(tb.Context(), id, taken.Epoch); err != nil || !opened {
		tb.Fatalf("the store has opened: %v, %v", opened, err)
	}
	Must(tb, r.Catalog.Refresh(tb.Context()))
	return r.Stored(tb, id)
}

// Sell sells one unit of a product that the store sells to each buyer, and
// returns the order numbers. Anything but acceptance ends the test.
func (r *Rig) Sell(tb testing.TB, p seckill.Product, buyers ...string) []seckill.OrderNo {
	tb.Helper()
	claims := make([]seckill.Claim, len(buyers))
	nos := make([]seckill.OrderNo, len(buyers))
	for i, buyer := range buyers {
		claims[i] = r.Claim(p.ID, buyer)
		nos[i] = claims[i].OrderNo
	}
	r.SellClaims(tb, p, claims...)
	return nos
}

// SellClaims is Sell of given claims.
func (r *Rig) SellClaims(tb testing.TB, p seckill.Product, claims ...seckill.Claim) {
	tb.Helper()
	req := store.SellRequest{ProductID: p.ID, Epoch: p.Epoch, Claims: claims, ExpireAfter: 30 * time.Minute}
	result, err := r.Store.Sell(tb.Context(), req)
	Must(tb, err)
	for i, verdict := range result.Verdicts {
		if verdict.Code != ledger.VerdictAccepted {
			tb.Fatalf("the claim of %s was answered %d", claims[i].Buyer, verdict.Code)
		}
	}
}

// Claim is a new claim of one unit.
func (r *Rig) Claim(product uint32, buyer string) seckill.Claim {
	return seckill.Claim{OrderNo: seckill.NewOrderNo(r.Time.Now(), product, r.random.Add(1)), Buyer: buyer, Quantity: 1}
}

// Reserve sends claims to the ledger, in one step for each home shard, on the
// lanes of the lifecycle.
func (r *Rig) Reserve(tb testing.TB, p seckill.Product, claims ...seckill.Claim) []ledger.Verdict {
	tb.Helper()
	verdicts := make([]ledger.Verdict, len(claims))
	for shard := range p.Shards {
		var here []seckill.Claim
		var at []int
		for i, claim := range claims {
			if seckill.HomeShard(&p, claim.Buyer) == shard {
				here, at = append(here, claim), append(at, i)
			}
		}
		if len(here) == 0 {
			continue
		}
		result, err := r.Lanes.Do(tb.Context(), ledger.ShardOf(&p, shard), ledger.Reserve{
			At: r.Time.Now(), PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name, Claims: here,
		})
		Must(tb, err)
		for i, verdict := range result.Verdicts {
			verdicts[at[i]] = verdict
		}
	}
	return verdicts
}

// Buy reserves one unit for each buyer and returns the order numbers. Anything
// but acceptance ends the test.
func (r *Rig) Buy(tb testing.TB, p seckill.Product, buyers ...string) []seckill.OrderNo {
	tb.Helper()
	claims := make([]seckill.Claim, len(buyers))
	nos := make([]seckill.OrderNo, len(buyers))
	for i, buyer := range buyers {
		claims[i] = r.Claim(p.ID, buyer)
		nos[i] = claims[i].OrderNo
	}
	for i, verdict := range r.Reserve(tb, p, claims...) {
		if verdict.Code != ledger.VerdictAccepted {
			tb.Fatalf("the claim of %s was answered %d", buyers[i], verdict.Code)
		}
	}
	return nos
}

// Figures reads the ledger of a product; of several shards, the sums.
func (r *Rig) Figures(tb testing.TB, p seckill.Product) ledger.Figures {
	tb.Helper()
	sum, err := r.Embedded.Read(tb.Context(), ledger.ShardOf(&p, 0))
	Must(tb, err)
	for i := 1; i < p.Shards; i++ {
		f, err := r.Embedded.Read(tb.Context(), ledger.ShardOf(&p, i))
		Must(tb, err)
		sum.Allotted += f.Allotted
		sum.Available += f.Available
		sum.Marked += f.Marked
		sum.Orders += f.Orders
		sum.Sent += f.Sent
		sum.Received += f.Received
		sum.Releases += f.Releases
		sum.Out = append(sum.Out, f.Out...)
	}
	return sum
}

// Stored reads a product from the store.
func (r *Rig) Stored(tb testing.TB, id uint32) seckill.Product {
	tb.Helper()
	p, err := r.Store.Product(tb.Context(), id)
	Must(tb, err)
	return p
}

// Status is the status of an order in the store; OrderQueued without a row.
func (r *Rig) Status(tb testing.TB, no seckill.OrderNo) seckill.OrderStatus {
	tb.Helper()
	rows, err := r.Store.OrdersByNo(tb.Context(), []seckill.OrderNo{no})
	Must(tb, err)
	if len(rows) == 0 {
		return seckill.OrderQueued
	}
	return rows[0].Status
}

// Depth is the number of reservations of a product that wait in the queue;
// product 0 means all products.
func (r *Rig) Depth(tb testing.TB, product uint32) int64 {
	tb.Helper()
	stats, err := r.Queue.Stats(context.Background(), product)
	Must(tb, err)
	return stats.Reservations
}

// ConfirmAll writes all queued orders, as a simple worker.
func (r *Rig) ConfirmAll(tb testing.TB) {
	tb.Helper()
	consumer, err := r.Queue.Consumer(tb.Context(), fmt.Sprintf("rig-%d", r.random.Add(1)))
	Must(tb, err)
	defer consumer.Close(tb.Context())
	for r.Depth(tb, 0) > 0 {
		got, err := consumer.Receive(tb.Context(), 1000)
		Must(tb, err)
		for _, d := range got {
			Must(tb, r.confirm(tb.Context(), consumer, d))
		}
	}
}

// Drain confirms entries until ctx ends.
func (r *Rig) Drain(ctx context.Context) error {
	consumer, err := r.Queue.Consumer(ctx, fmt.Sprintf("rig-%d", r.random.Add(1)))
	if err != nil {
		return err
	}
	defer consumer.Close(context.WithoutCancel(ctx))
	for {
		got, err := consumer.Receive(ctx, 1000)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, d := range got {
			if err := r.confirm(context.WithoutCancel(ctx), consumer, d); err != nil {
				return err
			}
		}
	}
}

func (r *Rig) confirm(ctx context.Context, consumer queue.Consumer, d queue.Delivery) error {
	_, err := r.Store.Confirm(ctx, store.ConfirmRequest{
		ProductID: d.Entry.ProductID, Items: store.Items(&d.Entry), Witness: []queue.ID{d.ID}, ExpireAfter: 30 * time.Minute,
	})
	if err != nil {
		return err
	}
	return consumer.Ack(ctx, []queue.Delivery{d}, d.ID)
}

// Must ends the test on an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Until waits until the condition holds.
func Until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline := time.After(Patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			tb.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

// Refused ends the test unless the error carries the code.
func Refused(tb testing.TB, err error, code seckill.Code) {
	tb.Helper()
	if err == nil || seckill.CodeOf(err) != code {
		tb.Fatalf("got error %v, want one of code %s", err, code)
	}
}
