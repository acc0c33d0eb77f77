package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"

	"seckill/internal/alert"
	"seckill/internal/ledger"
	"seckill/internal/purchase"
	"seckill/internal/recovery"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// bookRig is a rig with a book of promises.
type bookRig struct {
	*rig.Rig
	*recovery.Book
	log strings.Builder
	// hinder fails a ledger write, if it is set.
	hinder func(ledger.Write) error

	forgotten atomic.Int64
	reoffered map[recovery.Result]int
	lost      []error
}

func newBookRig(t *testing.T, changes ...func(*recovery.BookOptions)) *bookRig {
	t.Helper()
	m := &bookRig{Rig: rig.New(t), reoffered: map[recovery.Result]int{}}
	m.Book = m.newBook(changes...)
	return m
}

// newBook returns an empty book of the same instance.
func (m *bookRig) newBook(changes ...func(*recovery.BookOptions)) *recovery.Book {
	opt := recovery.BookOptions{
		Store: m.Store, ExpireAfter: 30 * time.Minute, Now: m.Time.Now, Logger: slog.New(slog.NewTextHandler(&m.log, nil)),
		Adopter: &recovery.Adopter{Store: m.Store, Lanes: m, Now: m.Time.Now},
		Terms: func(id uint32) *seckill.Product {
			if s := m.Catalog.Find(id); s != nil {
				return s.Terms()
			}
			return nil
		},
		Meter: m, Alerts: m,
	}
	for _, change := range changes {
		change(&opt)
	}
	return recovery.NewBook(opt)
}

func (m *bookRig) Forgotten(n int)                         { m.forgotten.Add(int64(n)) }
func (m *bookRig) Reoffered(result recovery.Result, n int) { m.reoffered[result] += n }
func (m *bookRig) Raise(_ alert.Kind, _ uint32, err error) { m.lost = append(m.lost, err) }

// Do is on the lanes of the present lifecycle, which a restart replaces.
func (m *bookRig) Do(ctx context.Context, shard ledger.Shard, write ledger.Write) (ledger.Result, error) {
	if m.hinder != nil {
		if err := m.hinder(write); err != nil {
			return ledger.Result{}, err
		}
	}
	return m.Lanes.Do(ctx, shard, write)
}

// promised reserves a unit for each buyer and remembers it, like the purchase
// stage.
func (m *bookRig) promised(t *testing.T, p seckill.Product, buyers ...string) []seckill.OrderNo {
	t.Helper()
	var claims []seckill.Claim
	var nos []seckill.OrderNo
	for _, buyer := range buyers {
		claim := m.Claim(p.ID, buyer)
		claims = append(claims, claim)
		nos = append(nos, claim.OrderNo)
	}
	m.promise(t, p, claims...)
	return nos
}

// promise is like promised for given claims, in one step.
func (m *bookRig) promise(t *testing.T, p seckill.Product, claims ...seckill.Claim) {
	t.Helper()
	for _, verdict := range m.Reserve(t, p, claims...) {
		if verdict.Code != ledger.VerdictAccepted {
			t.Fatalf("verdict %d", verdict.Code)
		}
	}
	m.Remember(seckill.Entry{
		ProductID: p.ID, Group: p.Group, Epoch: p.Epoch, At: m.Time.Now(),
		PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name, Limit: p.PerUserLimit, Claims: claims,
	})
}

// settle advances the clock past every pause, and runs a round.
func (m *bookRig) settle(t *testing.T) {
	t.Helper()
	m.Time.Advance(time.Minute)
	rig.Must(t, m.Round(t.Context()))
}

// recover rebuilds the ledger of a product, and refreshes the catalogue.
func (m *bookRig) recover(t *testing.T, id uint32) seckill.Product {
	t.Helper()
	p, err := m.Lifecycle.Recover(t.Context(), id, rig.Operator)
	rig.Must(t, err)
	return p
}

func (m *bookRig) statuses(t *testing.T, nos []seckill.OrderNo) map[seckill.OrderStatus]int {
	t.Helper()
	counts := map[seckill.OrderStatus]int{}
	for _, no := range nos {
		counts[m.Status(t, no)]++
	}
	return counts
}

func buyers(name string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", name, i)
	}
	return names
}

func TestRound_RemembersAPromiseUntilTheStoreHasItsRow(t *testing.T) {
	m := newBookRig(t)
	p := m.Open(t, 1, 10)
	m.promised(t, p, "a", "b")
	calls := m.Store.Calls("OrdersByNo")
	rig.Must(t, m.Round(t.Context()))
	if m.Store.Calls("OrdersByNo") != calls {
		t.Error("the store is asked about a promise that is not a second old")
	}
	m.settle(t)
	if m.Len() != 2 {
		t.Fatalf("%d remembered while both are queued", m.Len())
	}
	m.ConfirmAll(t)
	m.promised(t, p, "c")
	m.settle(t)
	if m.Len() != 1 {
		t.Fatalf("%d remembered, want the queued one", m.Len())
	}
	m.ConfirmAll(t)
	m.Store.FailBefore("OrdersByNo", 1)
	m.Time.Advance(time.Minute)
	if m.Round(t.Context()) == nil || m.Len() != 1 {
		t.Errorf("the book forgot promises during an outage: %d left", m.Len())
	}
	m.settle(t)
	if m.Len() != 0 || len(m.reoffered) != 0 {
		t.Errorf("%d remembered at rest, re-offered %v", m.Len(), m.reoffered)
	}
}

// The ledger is lost with all its entries. The new one adopts the promises that
// this instance remembers.
func TestRound_AdoptsPromisesOfALostLedger(t *testing.T) {
	m := newBookRig(t)
	p := m.Open(t, 1, 100)
	nos := m.promised(t, p, buyers("a", 30)...)
	nos = append(nos, m.promised(t, p, buyers("b", 30)...)...)
	m.LoseJournal(t)
	m.settle(t)
	if m.Len() != 60 || m.Depth(t, 0) != 0 {
		t.Fatalf("%d remembered, %d queued before the recovery", m.Len(), m.Depth(t, 0))
	}
	p = m.recover(t, 1)
	rig.Must(t, m.Round(t.Context())) // it does not wait after an epoch has changed
	if f := m.Figures(t, p); f.Marked != 60 {
		t.Fatalf("the new ledger holds %d", f.Marked)
	}
	m.LoseJournal(t) // again, before a worker came
	m.recover(t, 1)
	rig.Must(t, m.Round(t.Context()))
	m.ConfirmAll(t)
	m.settle(t)
	if got := m.statuses(t, nos); got[seckill.OrderPending] != 60 || m.Len() != 0 || m.reoffered["adopted"] != 120 || len(m.lost) != 0 {
		t.Errorf("orders %v, %d remembered, re-offered %v", got, m.Len(), m.reoffered)
	}
	storetest.CheckPromises(t, m.Store, 1)
}

func TestRound_AdoptsMorePromisesThanOneStepTakes(t *testing.T) {
	const each, records = 900, 3 // the third is in two steps
	m := newBookRig(t)
	p := m.Open(t, 1, 2*ledger.MaxClaims)
	for i := range records {
		m.promised(t, p, buyers(fmt.Sprint(i), each)...)
	}
	m.LoseJournal(t)
	p = m.recover(t, 1)
	rig.Must(t, m.Round(t.Context()))
	if f := m.Figures(t, p); f.Marked != records*each || m.reoffered["adopted"] != records*each {
		t.Fatalf("the new ledger holds %d, re-offered %v", f.Marked, m.reoffered)
	}
	m.ConfirmAll(t)
	m.settle(t)
	if m.Len() != 0 || len(m.lost) != 0 {
		t.Errorf("%d still remembered, lost %v", m.Len(), m.lost)
	}
	storetest.CheckPromises(t, m.Store, 1)
}

// An adoption stops midway through the claims of one ledger step. The rest is
// tried again, and the adopted ones are not reported twice.
func TestRound_ReportsAnAdoptionOnce(t *testing.T) {
	m := newBookRig(t)
	p := m.Open(t, 1, 100, rig.Shards(2))
	nos := m.promised(t, p, buyers("a", 20)...)
	m.LoseJournal(t)
	p = m.recover(t, 1)
	steps := 0
	m.hinder = func(ledger.Write) error {
		if steps++; steps == 2 {
			return ledger.ErrUnknown
		}
		return nil
	}
	if err := m.Round(t.Context()); !errors.Is(err, ledger.ErrUnknown) {
		t.Fatalf("error %v", err)
	}
	first := m.reoffered["adopted"]
	if first == 0 || first == 20 || m.Len() != 20 {
		t.Fatalf("%d adopted, %d remembered", first, m.Len())
	}
	rig.Must(t, m.Round(t.Context()))
	if f := m.Figures(t, p); f.Marked != 20 || m.reoffered["adopted"] != 20 || steps != 3 {
		t.Errorf("the ledger holds %d after %d steps, re-offered %v", f.Marked, steps, m.reoffered)
	}
	m.ConfirmAll(t)
	m.settle(t)
	if got := m.statuses(t, nos); got[seckill.OrderPending] != 20 || m.Len() != 0 {
		t.Errorf("orders %v, %d remembered", got, m.Len())
	}
	storetest.CheckPromises(t, m.Store, 1)
}

func TestRound_PromiseWithoutUnitFailsAndIsLogged(t *testing.T) {
	m := newBookRig(t)
	p := m.Open(t, 1, 10)
	nos := m.promised(t, p, buyers("a", 10)...)
	m.LoseJournal(t)
	p = m.recover(t, 1)
	m.Buy(t, p, buyers("quick", 7)...) // before the instance saw the new epoch
	rig.Must(t, m.Round(t.Context()))
	m.ConfirmAll(t)
	m.settle(t)
	got := m.statuses(t, nos)
	if got[seckill.OrderPending] != 3 || got[seckill.OrderFailed] != 7 || m.Len() != 0 {
		t.Fatalf("orders %v, %d remembered", got, m.Len())
	}
	if len(m.lost) != 1 || m.reoffered["failed"] != 7 {
		t.Errorf("alerts %v, re-offered %v", m.lost, m.reoffered)
	}
	for _, no := range nos {
		if failed := m.Status(t, no) == seckill.OrderFailed; failed != strings.Contains(m.log.String(), no.String()) {
			t.Errorf("%s failed: %v, and the log says otherwise", no, failed)
		}
	}
	storetest.CheckPromises(t, m.Store, 1)
}

// The store has other orders of the same buyers, which this ledger does not
// know: it was set back, and promised again.
func TestReoffer_FailedPromisesAreLogged(t *testing.T) {
	m := newBookRig(t)
	p := m.Open(t, 1, 10)
	stored, claims := make([]seckill.Claim, 2), make([]seckill.Claim, 3)
	for i, buyer := range []string{"over", "keyed", "new"} {
		claims[i] = m.Claim(1, buyer)
		if i < len(stored) {
			stored[i] = m.Claim(1, buyer)
		}
	}
	stored[1].Key, claims[1].Key = "k", "k"
	_, err := m.Store.Confirm(t.Context(), store.ConfirmRequest{
		ProductID: 1, ExpireAfter: time.Hour, Items: store.Items(&seckill.Entry{
			ProductID: 1, Group: p.Group, Epoch: p.Epoch, At: m.Time.Now(),
			PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name, Limit: p.PerUserLimit, Claims: stored,
		}),
	})
	rig.Must(t, err)
	m.promise(t, p, claims...)
	m.LoseJournal(t)
	for range 2 { // the second round has nothing to do
		rig.Must(t, m.Reoffer(t.Context(), 1))
	}
	if m.reoffered[recovery.Failed] != 2 || m.reoffered[recovery.Confirmed] != 1 || m.Len() != 0 {
		t.Errorf("re-offered %v, %d remembered", m.reoffered, m.Len())
	}
	for i, reason := range []string{seckill.ReasonLimit, seckill.ReasonDuplicate} {
		if no := claims[i].OrderNo.String(); strings.Count(m.log.String(), no+" "+reason) != 1 {
			t.Errorf("the failure of %s (%s) is not in the log: %s", no, reason, m.log.String())
		}
	}
	if len(m.lost) != 1 || !strings.Contains(m.lost[0].Error(), claims[0].OrderNo.String()) {
		t.Errorf("alerts %v, want only one, for %s", m.lost, claims[0].OrderNo)
	}
	storetest.CheckPromises(t, m.Store, 1)
}

func TestReoffer_WritesPromisesBeforeTheRebuild(t *testing.T) {
	m := newBookRig(t)
	p := m.Open(t, 1, 10)
	nos := m.promised(t, p, buyers("a", 6)...)
	m.promised(t, m.Open(t, 2, 10), "other")
	m.LoseJournal(t)
	rig.Must(t, m.Reoffer(t.Context(), 1))
	if got := m.statuses(t, nos); got[seckill.OrderPending] != 6 || m.Len() != 1 {
		t.Fatalf("orders %v, %d remembered", got, m.Len())
	}
	p = m.recover(t, 1)
	if f := m.Figures(t, p); f.Marked != 6 || f.Available != 4 {
		t.Errorf("the new ledger has %+v", f)
	}
	rig.Must(t, m.Reoffer(t.Context(), 1)) // nothing left, and nothing happens
	storetest.CheckPromises(t, m.Store, 1)
}

// Another instance rebuilds the product. This one writes its promises before
// the snapshot, if there is time.
func TestRound_WritesPromisesWhileAnotherInstanceRebuilds(t *testing.T) {
	m := newBookRig(t)
	p := m.Open(t, 1, 10)
	nos := m.promised(t, p, buyers("a", 6)...)
	rig.Must(t, m.Store.BeginRebuild(t.Context(), 1, p.Epoch))
	rig.Must(t, m.Catalog.Refresh(t.Context()))
	rig.Must(t, m.Round(t.Context()))
	if got := m.statuses(t, nos); got[seckill.OrderPending] != 6 || m.Len() != 0 {
		t.Errorf("orders %v, %d remembered", got, m.Len())
	}
	m.ConfirmAll(t) // the entries are replays
	storetest.CheckPromises(t, m.Store, 1)
}

// The worker that received the entries is dead, and so is the instance that
// answered. Only the outbox has the promises.
func TestRecover_QueuedPromisesKeepTheirUnits(t *testing.T) {
	m := newBookRig(t)
	p := m.Open(t, 1, 5)
	nos := m.Buy(t, p, buyers("a", 5)...)
	dead, err := m.Queue.Consumer(t.Context(), "dead")
	rig.Must(t, err)
	for held := 0; held < 5; {
		got, err := dead.Receive(t.Context(), 5)
		rig.Must(t, err)
		for i := range got {
			held += len(got[i].Entry.Claims)
		}
	}
	lifecycle := sale.NewLifecycle(sale.LifecycleOptions{
		Store: m.Store, Ledger: m.Ledger, Queue: m.Queue, Catalog: m.Catalog, Clock: m.Clock, Lanes: m.Lanes,
		Logger: slog.New(slog.DiscardHandler), Promises: m.Book,
	})
	p, err = lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	if got := m.statuses(t, nos); got[seckill.OrderPending] != 5 {
		t.Errorf("orders %v, want 5 pending", got)
	}
	if f := m.Figures(t, p); f.Marked != 5 || f.Available != 0 {
		t.Errorf("the new ledger has %+v", f)
	}
	rig.Must(t, dead.Close(t.Context()))
	m.ConfirmAll(t) // the entries are replays
	storetest.CheckPromises(t, m.Store, 1)
}

func TestWrite_BadClaimStopsNoOther(t *testing.T) {
	m := newBookRig(t)
	p := m.Open(t, 1, 10)
	entry := seckill.Entry{
		ProductID: p.ID, Group: p.Group, Epoch: p.Epoch, At: m.Time.Now(), PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name, Limit: p.PerUserLimit,
	}
	var nos []seckill.OrderNo
	for _, buyer := range buyers("a", 6) {
		claim := m.Claim(1, buyer)
		entry.Claims, nos = append(entry.Claims, claim), append(nos, claim.OrderNo)
	}
	items := store.Items(&entry)
	items[2].Group = 99
	rig.Must(t, m.Write(t.Context(), items))
	if got := m.statuses(t, slices.Delete(nos, 2, 3)); got[seckill.OrderPending] != 5 {
		t.Errorf("orders %v, want 5 pending", got)
	}
}

func TestReoffer_ShortStoreTakesWhatFits(t *testing.T) {
	m := newBookRig(t)
	p := m.Open(t, 1, 10)
	nos := m.promised(t, p, buyers("a", 8)...)
	m.LoseJournal(t)
	m.Exec(t, `UPDATE tb_seckill_product SET stock = 3 WHERE id = 1`)
	if err := m.Reoffer(t.Context(), 1); err != nil && !strings.Contains(err.Error(), store.ErrShort.Error()) {
		t.Fatal(err)
	}
	if got := m.statuses(t, nos); got[seckill.OrderPending] != 3 || m.Len() != 5 {
		t.Errorf("orders %v, %d remembered", got, m.Len())
	}
}

// Two instances, or an instance and a worker, adopt the same promise, one of
// them after it was cancelled and released. No unit stays taken.
func TestAdopt_TwiceIsOneOrder(t *testing.T) {
	m := newBookRig(t)
	p := m.Open(t, 1, 10)
	no := m.promised(t, p, "a")[0]
	late := []store.Item{{
		Claim: seckill.Claim{OrderNo: no, Buyer: "a", Quantity: 1}, ProductID: 1, Group: 1, Epoch: 1,
		At: m.Time.Now(), PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name, Limit: 1,
	}}
	worker := &recovery.Adopter{Store: m.Store, Lanes: m, Now: m.Time.Now}
	m.LoseJournal(t)
	p = m.recover(t, 1)
	var both sync.WaitGroup
	both.Go(func() { rig.Must(t, m.Round(t.Context())) })
	both.Go(func() { _, err := worker.Adopt(t.Context(), late); rig.Must(t, err) })
	both.Wait()
	if f := m.Figures(t, p); f.Marked != 1 || m.Depth(t, 1) != 1 {
		t.Fatalf("%d marked, %d queued", f.Marked, m.Depth(t, 1))
	}
	m.ConfirmAll(t)
	_, err := m.Store.Cancel(t.Context(), no, seckill.ReasonByBuyer, rig.Operator)
	rig.Must(t, err)
	release := func() {
		t.Helper()
		due, err := m.Store.ReleasesDue(t.Context(), 10)
		rig.Must(t, err)
		for _, r := range due {
			_, err := m.Lanes.Do(t.Context(), ledger.ShardOf(&p, 0), ledger.Release{Orders: []ledger.ReleaseOrder{{OrderNo: r.OrderNo, Buyer: r.Buyer}}})
			rig.Must(t, err)
		}
		rig.Must(t, m.Store.SettleReleases(t.Context(), due))
	}
	release()
	_, err = worker.Adopt(t.Context(), late)
	rig.Must(t, err)
	m.ConfirmAll(t)
	release()
	if f := m.Figures(t, p); f.Marked != 0 || f.Available != 10 || m.Status(t, no) != seckill.OrderCancelled {
		t.Errorf("the ledger has %+v, the order is %s", f, m.Status(t, no))
	}
	storetest.CheckPromises(t, m.Store, 1)
}

// The ledger is lost under load, with all answers that no worker has seen.
// Every 202 ends as an order, or as a failure that its buyer can read, as long
// as the instance lives.
func TestLostLedger_EveryPromiseEndsExplicitly(t *testing.T) {
	const stock, buyers = 600, 4
	m := newBookRig(t)
	m.Open(t, 1, stock)
	on := m.Catalog.Find(1)
	stage := purchase.New(m.Ledger, m.Clock, purchase.Options{
		QueueSize: 1000, MaxBatch: 100, Timeout: 2 * time.Second, Random: rand.Uint64, Promises: m.Book,
		Lane: ledger.LaneOptions{CallTimeout: time.Second},
	})
	t.Cleanup(stage.Close)
	var mu sync.Mutex
	var promised []seckill.OrderNo
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(promised)
	}
	var crowd sync.WaitGroup
	for i := range buyers {
		crowd.Go(func() {
			for n := 0; t.Context().Err() == nil; {
				bought, err := stage.Buy(on, purchase.Claim{Buyer: fmt.Sprintf("b-%d-%d", i, n), Key: "k", Quantity: 1})
				switch {
				case err == nil:
					mu.Lock()
					promised = append(promised, bought.OrderNo)
					mu.Unlock()
					n++
				case seckill.CodeOf(err) == seckill.CodeSoldOut:
					return
				default: // busy: the ledger is lost, being rebuilt, or slow; a retry finds an order that was accepted
					<-time.After(5 * time.Millisecond)
				}
			}
		})
	}
	rig.Until(t, "the crowd buys", func() bool { return count() > stock/4 })
	m.LoseJournal(t)
	m.recover(t, 1)
	rig.Until(t, "the crowd buys again, or everything is sold", func() bool {
		rig.Must(t, m.Round(t.Context()))
		return m.Figures(t, m.Stored(t, 1)).Available == 0
	})
	crowd.Wait()
	m.ConfirmAll(t)
	m.settle(t)
	m.ConfirmAll(t)
	m.settle(t)
	got := m.statuses(t, promised)
	if got[seckill.OrderQueued] != 0 || got[seckill.OrderPending] != stock || m.Len() != 0 {
		t.Errorf("%d promised: %v, %d still remembered", len(promised), got, m.Len())
	}
	if failed := got[seckill.OrderFailed]; failed != len(promised)-stock || failed != m.reoffered["failed"] {
		t.Errorf("%d failed, %d logged", failed, m.reoffered["failed"])
	}
	storetest.CheckPromises(t, m.Store, 1)
}
