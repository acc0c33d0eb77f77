package shard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/ledger/transfer"
	"seckill/internal/purchase"
	"seckill/internal/sale"
)

const (
	shards   = 16
	stock    = 400
	patience = 60 * time.Second // of one whole sale
	// proofSlack is the delay of a busy machine between the use of a proof, which
	// is then at most a second old, and the time that the test records for the
	// answer.
	proofSlack = 500 * time.Millisecond
)

// Run sells on the ledger that open returns. Each sale is a product of its own.
func Run(t *testing.T, open func(t *testing.T) ledger.Ledger) {
	for _, c := range []struct {
		name string
		plan plan
	}{
		{"units of 16 shards sell exactly", plan{buyers: 1200, quantity: 1, instances: 2}},
		{"units of 16 shards reach the one where everybody asks", plan{buyers: 600, quantity: 1, instances: 2, oneHome: true}},
		{"quantities are gathered", plan{buyers: 600, quantity: 3, instances: 2}},
		{"processes die in the middle of transfers", plan{buyers: 800, quantity: 1, instances: 3, oneHome: true, steps: 12}},
		{"units come back while processes die", plan{buyers: 800, quantity: 2, instances: 3, steps: 3, giveBackOneIn: 4}},
	} {
		t.Run(c.name, func(t *testing.T) { newMarket(t, open(t), c.plan).sell(t) })
	}
	t.Run("a claim sent twice has one answer", func(t *testing.T) { runRepeated(t, open(t)) })
}

// plan describes one sale.
type plan struct {
	buyers        int
	quantity      int // each buyer wants 1 to quantity units
	instances     int
	oneHome       bool // all buyers have the same home shard
	steps         int  // an instance dies after at most that many transfer steps; 0 for none
	giveBackOneIn int  // one of this many orders is cancelled; 0 for none
}

// market is one sale.
type market struct {
	plan
	ledger  *witness
	product seckill.Product

	mu     sync.Mutex
	stalls []*stall
	dead   sync.WaitGroup
	died   atomic.Int64
}

var products atomic.Uint32

func newMarket(t *testing.T, l ledger.Ledger, p plan) *market {
	t.Helper()
	id := products.Add(1)
	m := &market{plan: p, ledger: newWitness(l), product: seckill.Product{
		ID: id, Group: id, Name: "p", PriceCents: 1, Currency: "CNY", Stock: stock, Offered: stock, PerUserLimit: p.quantity,
		Shards: shards, Strategy: seckill.StrategySharded, Epoch: 1,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour),
	}}
	for i := range shards {
		shard := ledger.ShardOf(&m.product, i)
		allotment := ledger.Allotment{Shard: shard, Available: sale.Part(stock, i, shards), Limit: p.quantity}
		if _, err := l.Install(t.Context(), allotment, func(func(ledger.Mark, error) bool) {}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Open(t.Context(), shard); err != nil {
			t.Fatal(err)
		}
	}
	for range p.instances {
		m.stalls = append(m.stalls, m.newStall(t))
	}
	t.Cleanup(m.close)
	return m
}

func (m *market) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.stalls {
		s.stage.Close()
	}
	m.dead.Wait()
}

// stall is one instance.
type stall struct {
	stage *purchase.Stage
	on    *sale.Sale
	dead  atomic.Bool
}

type catalogue []seckill.Product

func (catalogue) Product(context.Context, uint32) (seckill.Product, error) {
	return seckill.Product{}, seckill.Errorf(seckill.CodeNotFound, "no such product")
}

func (c catalogue) CurrentProducts(context.Context) ([]seckill.Product, error) { return c, nil }

func (m *market) newStall(t testing.TB) *stall {
	t.Helper()
	s := &stall{}
	line := &line{witness: m.ledger, stall: s}
	if m.steps > 0 {
		line.steps.Store(1 + rand.Int64N(int64(m.steps)))
	}
	log := slog.New(slog.DiscardHandler)
	catalog := sale.NewCatalog(catalogue{m.product})
	if err := catalog.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.on = catalog.Find(m.product.ID)
	lane := ledger.LaneOptions{CallTimeout: 2 * time.Second}
	s.stage = purchase.New(line, sale.NewClock(line.Now, log), purchase.Options{
		QueueSize: 1000, MaxBatch: 100, Timeout: 2 * time.Second, Random: rand.Uint64, Lane: lane,
		Mover: transfer.New(line, sale.NewLanes(line, lane), rand.Uint64), Recoverer: unmended{t},
	})
	return s
}

// unmended fails the test if a ledger asks for recovery, because this suite has
// none.
type unmended struct{ t testing.TB }

func (u unmended) RequestRecovery(_ uint32, cause error) { u.t.Errorf("an instance met %v", cause) }

// stall returns one of the instances. A dead one is replaced first.
func (m *market) stall(t testing.TB, at int) *stall {
	m.mu.Lock()
	defer m.mu.Unlock()
	at %= len(m.stalls)
	if old := m.stalls[at]; old.dead.Load() {
		m.died.Add(1)
		m.dead.Go(old.stage.Close)
		m.stalls[at] = m.newStall(t)
	}
	return m.stalls[at]
}

// sell runs all buyers and checks the promises against the history.
func (m *market) sell(t *testing.T) {
	h := &history{}
	ends := time.Now().Add(patience)
	var crowd sync.WaitGroup
	queue := make(chan int)
	for range 100 { // at once
		crowd.Go(func() {
			for i := range queue {
				m.buyer(t, h, i, ends)
			}
		})
	}
	for i := range m.buyers {
		queue <- i
	}
	close(queue)
	crowd.Wait()
	if t.Failed() {
		return
	}
	if m.steps > 0 && m.died.Load() < 2 {
		t.Errorf("only %d instances died: the sale shows little", m.died.Load())
	}
	m.settle(t)
	m.checkBooks(t, h)
	m.checkNoUndersell(t, h)
}

// buyer asks until it has an order or gets sold_out. It may then return the
// order and ask once more.
func (m *market) buyer(t testing.TB, h *history, i int, ends time.Time) {
	random := rand.New(rand.NewPCG(uint64(i), uint64(m.product.ID)))
	name := m.name(i)
	quantity := 1 + random.IntN(m.quantity)
	for round := 0; ; round++ {
		no := m.ask(t, h, name, fmt.Sprint("k", round), quantity, i, ends)
		if no == (seckill.OrderNo{}) || m.giveBackOneIn == 0 || round > 0 || random.IntN(m.giveBackOneIn) != 0 {
			return
		}
		m.giveBack(t, h, name, no, quantity)
	}
}

// name is a buyer's name; with one home, all have the same.
func (m *market) name(i int) string {
	for n := 0; ; n++ {
		name := fmt.Sprintf("b-%d-%d", i, n)
		if !m.oneHome || seckill.HomeShard(&m.product, name) == 7 {
			return name
		}
	}
}

// ask repeats a claim until the ledger decides; no order means sold out.
func (m *market) ask(t testing.TB, h *history, buyer, key string, quantity, at int, ends time.Time) seckill.OrderNo {
	for try := 0; ; try++ {
		if time.Now().After(ends) {
			t.Errorf("%s has no answer before the sale's time is over", buyer)
			return seckill.OrderNo{}
		}
		s := m.stall(t, at+try)
		bought, err := s.stage.Buy(s.on, purchase.Claim{Buyer: buyer, Quantity: quantity, Key: key})
		switch code := codeOf(err); code {
		case "":
			h.bought(buyer, bought.OrderNo, quantity)
			return bought.OrderNo
		case seckill.CodeSoldOut:
			h.refused(buyer, quantity)
			return seckill.OrderNo{}
		case seckill.CodeTooHot, seckill.CodeBusy:
			h.postponed.Add(1)
		default:
			t.Errorf("%s was answered %v", buyer, err)
			return seckill.OrderNo{}
		}
	}
}

func codeOf(err error) seckill.Code {
	if err == nil {
		return ""
	}
	return seckill.CodeOf(err)
}

// giveBack returns an order's units, on a separate lane.
func (m *market) giveBack(t testing.TB, h *history, buyer string, no seckill.OrderNo, quantity int) {
	shard := ledger.ShardOf(&m.product, seckill.HomeShard(&m.product, buyer))
	lane := ledger.NewLane(m.ledger, shard, ledger.LaneOptions{})
	release := ledger.Release{Orders: []ledger.ReleaseOrder{{OrderNo: no, Buyer: buyer}}}
	result, err := lane.Do(context.Background(), release)
	for ends := time.Now().Add(patience); errors.Is(err, ledger.ErrNotApplied) && time.Now().Before(ends); {
		result, err = lane.Do(context.Background(), release) // the call timed out on a busy machine
	}
	if err != nil || result.Verdicts[0].Code != ledger.VerdictReleased {
		t.Errorf("give back %s: %+v, %v", no, result, err)
		return
	}
	h.returned(no, quantity)
}

// settle sells the units that came back after the last buyer, and finishes the
// transfers of dead instances. Every unit can be sold.
func (m *market) settle(t *testing.T) {
	t.Helper()
	mover := transfer.New(m.ledger, sale.NewLanes(m.ledger, ledger.LaneOptions{}), rand.Uint64)
	if err := mover.Finish(t.Context(), &m.product); err != nil {
		t.Fatal(err)
	}
	seen, err := mover.Survey(t.Context(), &m.product)
	if err != nil {
		t.Fatal(err)
	}
	have, _, err := mover.Gather(t.Context(), &m.product, 3, seen.Free())
	if err != nil || have != seen.Free() {
		t.Errorf("%d of %d free units could be had, %v", have, seen.Free(), err)
	}
}
