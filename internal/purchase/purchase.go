// Package purchase is the stage that gathers claims into batches and passes them to the
// ledger or the store. While one batch is in flight, the next one gathers. No claim
// waits for a batch to fill.
//
//   - purchase.go, option.go: Stage and its bounds
//   - batcher.go, breaker.go, unheard.go: batches for the ledger
//   - till.go: batches for the store, if it sells by itself
//   - line.go, prospect.go: the waiting claims, and which ones may wait
//   - supply.go: units from other shards, and the proof of sold out
//   - journal.go, dualwrite.go: what happens to accepted claims
package purchase

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/sale"
)

// lanesPerShard is how many batches of a shard are in flight. The second one hides
// the round trip of the first; more do not help.
const lanesPerShard = 2

// restartPause is how long a product with a lost or closed shard gets busy before its
// batchers start again in the same epoch. Otherwise each claim of a crowd would start
// and stop them.
const restartPause = 100 * time.Millisecond

// Stage takes claims and answers them.
type Stage struct {
	ledger ledger.Ledger
	clock  *sale.Clock
	opt    Options
	// callTimeout bounds a call of a lane.
	callTimeout time.Duration
	waiters     sync.Pool
	running     sync.WaitGroup

	groups bySale[group]
	tills  bySale[till]

	mu     sync.Mutex
	dual   [dualWriters]*dualWriter // nil until a dualwrite product is sold
	stop   chan struct{}
	closed bool
}

// New makes a stage.
func New(l ledger.Ledger, clock *sale.Clock, opt Options) *Stage {
	s := &Stage{ledger: l, clock: clock, opt: opt.filled(), stop: make(chan struct{})}
	s.callTimeout = cmp.Or(s.opt.Lane.CallTimeout, ledger.DefaultCallTimeout)
	s.waiters.New = func() any { return &waiter{done: make(chan struct{}, 1), timer: stoppedTimer()} }
	return s
}

// Claim is a buyer's request. The stage makes the order number.
type Claim struct {
	Buyer    string
	Quantity int
	Key      string
	Ref      string
}

// waiter is a waiting claim. It is reused, unless its claimant gave up while the ledger
// still had it.
type waiter struct {
	claim    seckill.Claim
	deadline time.Time
	proven   time.Time // start of the proof that less was free; zero without one
	again    bool      // the ledger has seen it and must decide it once more
	done     chan struct{}
	timer    *time.Timer
	bought   Bought
	err      error
	next     *waiter // the next claim that waits for the same sync of the journal
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// Refusals without details are made once.
var (
	errTooHot  = &seckill.Error{Code: seckill.CodeTooHot}
	errBusy    = &seckill.Error{Code: seckill.CodeBusy}
	errSoldOut = &seckill.Error{Code: seckill.CodeSoldOut}
	errPaused  = &seckill.Error{Code: seckill.CodePaused}
	errEnded   = &seckill.Error{Code: seckill.CodeEnded}

	errReturned = seckill.Errorf(seckill.CodeWrongState, "too many orders of this buyer were cancelled, expired or refunded in this sale").
			Titled("Too many of your orders in this sale were cancelled, expired or refunded.", "您在本次活动中取消、超时未付或退款的订单过多")
)

// Bought is an accepted claim: its order and the order's status. Queued is the ledger's
// promise, whatever its order's present status. Any other status is from the store's
// row; for a repeated claim it may be a final one.
type Bought struct {
	OrderNo seckill.OrderNo
	Status  seckill.OrderStatus
}

// Buy passes the claim to the product's seller, the ledger or the store, and waits at
// most Options.Timeout for the answer. busy means unknown, not no: the same claim
// repeated finds its order.
//
// Keys belong to the limit group, like the records of buyers. A key that has bought
// another product of the group is refused. If the buyer got the other product's order,
// the buyer would take both products for bought.
func (s *Stage) Buy(on *sale.Sale, claim Claim) (Bought, error) {
	deadline := time.Now().Add(s.opt.Timeout)
	at, err := s.lineOf(on, claim.Buyer)
	if err != nil {
		return Bought{}, err
	}
	no := seckill.NewOrderNo(s.clock.Now(), on.ID, s.opt.Random())
	bought, err := s.wait(at, &seckill.Claim{OrderNo: no, Buyer: claim.Buyer, Quantity: claim.Quantity, Key: claim.Key, Ref: claim.Ref}, deadline)
	if err != nil {
		return bought, err
	}
	if bought.OrderNo != no && bought.Status == seckill.OrderQueued { // the order of an earlier claim with this key
		if err := s.synced(deadline); err != nil {
			return bought, err
		}
	}
	if bought.OrderNo.ProductID() != on.ID {
		return Bought{}, seckill.Errorf(seckill.CodeBadRequest,
			"this Idempotency-Key has bought product %d, order %s: use another key for another product", bought.OrderNo.ProductID(), bought.OrderNo)
	}
	return bought, nil
}

// line is the queue of a batcher or a till.
type line interface {
	// join queues a claim. Every queued claim gets an answer.
	join(w *waiter) error
}

// lineOf returns the till if the store sells the product. Otherwise it returns the
// batcher of the buyer's home shard at the present epoch.
func (s *Stage) lineOf(on *sale.Sale, buyer string) (line, error) {
	terms := on.Terms()
	switch {
	case terms.SoldByStore():
		return s.till(on)
	case terms.Epoch == 0 || terms.Rebuilding:
		return nil, errBusy // not preheated yet, or there is no ledger
	case s.opt.Journal != nil && !s.opt.Journal.Ready():
		return nil, errBusy // a promise could not be kept
	}
	g := s.groups.of(on)
	if g == nil || g.epoch != terms.Epoch || g.stopped.Load() {
		var err error
		if g, err = s.startGroup(on, terms); err != nil {
			return nil, err
		}
	}
	return g.batchers[seckill.HomeShard(g.terms, buyer)], nil
}

// wait queues a claim and waits for its answer.
func (s *Stage) wait(at line, claim *seckill.Claim, deadline time.Time) (Bought, error) {
	w := s.waiters.Get().(*waiter)
	w.claim, w.deadline, w.proven, w.again = *claim, deadline, time.Time{}, false
	if err := at.join(w); err != nil {
		w.claim = seckill.Claim{}
		s.waiters.Put(w)
		return Bought{}, err
	}
	w.timer.Reset(time.Until(deadline))
	select {
	case <-w.done:
		w.timer.Stop()
		bought, err := w.bought, w.err
		w.claim, w.bought, w.err = seckill.Claim{}, Bought{}, nil
		s.waiters.Put(w)
		return bought, err
	case <-w.timer.C:
		return Bought{}, errBusy // the batcher still has w, so it is not reused
	}
}

// group holds the batchers of one product at one epoch.
type group struct {
	epoch    uint64
	terms    *seckill.Product // the terms when the group started
	batchers []*batcher
	looks    singleflight.Group // surveys of all shards
	ctx      context.Context    // ends when the group stops
	stop     context.CancelFunc
	stopped  atomic.Bool
	failedAt time.Time // when its lanes finished, under the stage's lock
}

// startGroup starts a sale's batchers for its present epoch, unless they run.
func (s *Stage) startGroup(on *sale.Sale, terms *seckill.Product) (*group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errBusy
	}
	old := s.groups.of(on)
	if old != nil && old.epoch == terms.Epoch && !old.stopped.Load() {
		return old, nil
	}
	if old != nil {
		if old.epoch > terms.Epoch {
			return nil, errBusy // our terms are stale
		}
		if old.epoch == terms.Epoch && time.Since(old.failedAt) < restartPause {
			return nil, errBusy
		}
		old.retire()
	}
	if terms.Strategy == seckill.StrategyDualWrite {
		s.startDualWriters()
	}
	g := &group{epoch: terms.Epoch, terms: terms}
	g.ctx, g.stop = context.WithCancel(context.Background())
	for i := range terms.Shards {
		g.batchers = append(g.batchers, s.newBatcher(g, on, ledger.ShardOf(terms, i)))
	}
	for _, b := range g.batchers {
		for k, lane := range b.lanes {
			s.running.Add(1)
			go b.run(lane, &b.unheard[k])
		}
	}
	s.groups.set(on, g)
	return g, nil
}

func (s *Stage) newBatcher(g *group, on *sale.Sale, shard ledger.Shard) *batcher {
	b := &batcher{stage: s, group: g, sale: on, shard: shard, queue: make(chan *waiter, s.opt.QueueSize)}
	b.prospect.open(lanesPerShard, &s.opt)
	b.left.Store(unknown)
	b.breaker.close()
	if g.terms.Shards > 1 {
		b.supply = &supply{batcher: b}
	}
	lane := s.opt.Lane
	if lane.MaxAskBackoff <= 0 {
		lane.MaxAskBackoff = maxAskBackoff
	}
	for k := range b.lanes {
		lane.Listener = laneListener{b, &b.unheard[k]}
		b.lanes[k] = ledger.NewLane(s.ledger, shard, lane)
	}
	return b
}

// retire stops a group. Its batchers answer the waiting claims and end. The stage's lock
// is held.
func (g *group) retire() {
	if !g.stopped.Swap(true) {
		g.stop()
	}
}

// Retire stops the batchers and the till of a sale that is over.
func (s *Stage) Retire(on *sale.Sale) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.groups.of(on); g != nil {
		g.retire()
		s.groups.set(on, nil)
	}
	if t := s.tills.of(on); t != nil {
		t.shut()
		s.tills.set(on, nil)
	}
}

// openGroups returns the groups that have not stopped.
func (s *Stage) openGroups() (open []*group) {
	for _, g := range s.groups.all() {
		if !g.stopped.Load() {
			open = append(open, g)
		}
	}
	return open
}

// Beats returns the heartbeats of all lanes.
func (s *Stage) Beats() []ledger.Beat {
	var beats []ledger.Beat
	for _, g := range s.openGroups() {
		for _, b := range g.batchers {
			for _, lane := range b.lanes {
				beats = append(beats, lane.Beat())
			}
		}
	}
	return beats
}

// Heard handles the outcomes of beats; beats of other stages are ignored. If an outcome
// finishes a lane, its group is retired, as after such a claim.
func (s *Stage) Heard(beats []ledger.Beat, outcomes []ledger.Outcome) {
	heard := make(map[ledger.ProcessID]ledger.Outcome, len(beats))
	for i, outcome := range outcomes {
		heard[beats[i].Process] = outcome
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.openGroups() {
		if g.finishedBy(heard) {
			g.failedAt = time.Now()
			g.retire()
		}
	}
}

func (g *group) finishedBy(heard map[ledger.ProcessID]ledger.Outcome) (finished bool) {
	for _, b := range g.batchers {
		for _, lane := range b.lanes {
			if outcome, ok := heard[lane.Beat().Process]; ok {
				lane.Heard(outcome)
			}
			finished = finished || lane.Err() != nil
		}
	}
	return finished
}

// Close stops taking claims, answers the waiting ones, and returns when every batch in
// flight is answered.
func (s *Stage) Close() {
	s.mu.Lock()
	if !s.closed {
		close(s.stop)
	}
	s.closed = true
	for _, g := range s.groups.all() {
		g.retire()
	}
	for _, t := range s.tills.all() {
		t.shut()
	}
	s.mu.Unlock()
	s.running.Wait()
}
