// Package purchase is stage ③: it gathers claims into natural batches. While
// one batch is in flight to the ledger, the next one gathers; nobody waits for
// a batch to fill.
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

// lanesPerShard is how many batches of a shard are in flight: a second hides
// the first one's round trip; more bring nothing.
const lanesPerShard = 2

// restartPause is how long a product whose shard is lost or closed is answered
// busy before its batchers are started again under the same epoch: a crowd
// must not make and break them with every claim.
const restartPause = 100 * time.Millisecond

// Stage takes claims and answers them.
type Stage struct {
	ledger ledger.Ledger
	clock  *sale.Clock
	opt    Options
	// callTimeout is how long a call of a lane may hang.
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

// Claim is what a shopper asks for. The stage makes the order number.
type Claim struct {
	Buyer    string
	Quantity int
	Key      string
	Ref      string
}

// waiter is a claim on its way. It is reused, unless its claimant gave up
// while the ledger still had it.
type waiter struct {
	claim    seckill.Claim
	deadline time.Time
	proven   time.Time // since when it was proven that less was free; zero before
	again    bool      // the ledger has seen it, and it is to be decided once more
	done     chan struct{}
	timer    *time.Timer
	bought   Bought
	err      error
	next     *waiter // that waits for the same sync of the journal
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// Refusals that carry nothing of their own are made once.
var (
	errTooHot  = &seckill.Error{Code: seckill.CodeTooHot}
	errBusy    = &seckill.Error{Code: seckill.CodeBusy}
	errSoldOut = &seckill.Error{Code: seckill.CodeSoldOut}
	errPaused  = &seckill.Error{Code: seckill.CodePaused}
	errEnded   = &seckill.Error{Code: seckill.CodeEnded}

	errReturned = seckill.Errorf(seckill.CodeWrongState, "too many orders of this buyer were cancelled, expired or refunded in this sale").
			Titled("Too many of your orders in this sale were cancelled, expired or refunded.", "您在本次活动中取消、超时未付或退款的订单过多")
)

// Bought is an accepted claim: its order, and how far that is. Queued is the
// ledger's promise, whatever became of it since; any other is what the store's
// row says, which of a repeated claim may be the end of the order.
type Bought struct {
	OrderNo seckill.OrderNo
	Status  seckill.OrderStatus
}

// Buy asks the product's seller, the ledger or the store, and waits for the
// answer, at most Options.Timeout. A busy answer means unknown, not no: the same
// claim repeated finds its order.
//
// Keys belong to the limit group, like marks. One that has bought another
// product of it is refused: told that product's order, who asked for two things
// under one key would take both for bought.
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

// line is where claims wait for what sells them: a batcher, or a till.
type line interface {
	// join queues a claim. A claim that was queued is answered.
	join(w *waiter) error
}

// lineOf is the till of the product that the store sells, or else the batcher of
// the buyer's home shard, at the product's present epoch.
func (s *Stage) lineOf(on *sale.Sale, buyer string) (line, error) {
	terms := on.Terms()
	switch {
	case terms.SoldByStore():
		return s.till(on)
	case terms.Epoch == 0 || terms.Rebuilding:
		return nil, errBusy // not preheated yet, or there is no ledger to sell from
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

// wait puts a claim in a line, and waits for the answer.
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
		return Bought{}, errBusy // w is still the batcher's: not reused
	}
}

// group is the batchers of one product at one epoch.
type group struct {
	epoch    uint64
	terms    *seckill.Product // as they were when it was made
	batchers []*batcher
	looks    singleflight.Group // at all shards
	ctx      context.Context    // ends when the group stops
	stop     context.CancelFunc
	stopped  atomic.Bool
	failedAt time.Time // when its lanes were finished, under the stage's lock
}

// startGroup makes a sale's batchers for its present epoch, unless they run.
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
			return nil, errBusy // our terms are the stale ones
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

// retire stops a group; its batchers answer what waits and end. The stage's lock
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

// openGroups are the groups that have not stopped.
func (s *Stage) openGroups() (open []*group) {
	for _, g := range s.groups.all() {
		if !g.stopped.Load() {
			open = append(open, g)
		}
	}
	return open
}

// Beats are the heartbeats of all lanes.
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

// Heard takes the outcomes of beats, of which others may be among them. A group
// with a lane that they finish is retired, as by a claim that met the same.
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

// Close stops taking claims, answers those that wait, and returns when every
// batch in flight is answered.
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
