// Package purchase is stage ③: it gathers claims into natural batches. While
// one batch is in flight to the ledger, the next one gathers; nobody waits for
// a batch to fill.
package purchase

import (
	"context"
	"errors"
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
	ledger  ledger.Ledger
	clock   *sale.Clock
	opt     Options
	waiters sync.Pool
	running sync.WaitGroup

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
	bought, err := s.buy(on, claim)
	if err == nil && bought.OrderNo.ProductID() != on.ID {
		return Bought{}, seckill.Errorf(seckill.CodeBadRequest,
			"this Idempotency-Key has bought product %d, order %s: use another key for another product", bought.OrderNo.ProductID(), bought.OrderNo)
	}
	return bought, err
}

func (s *Stage) buy(on *sale.Sale, claim Claim) (Bought, error) {
	asked := seckill.Claim{
		OrderNo: seckill.NewOrderNo(s.clock.Now(), on.ID, s.opt.Random()),
		Buyer:   claim.Buyer, Quantity: claim.Quantity, Key: claim.Key, Ref: claim.Ref,
	}
	deadline := time.Now().Add(s.opt.Timeout)
	if on.Terms().SoldByStore() {
		return s.sell(on, &asked, deadline)
	}
	return s.reserve(on, &asked, deadline)
}

// reserve has the ledger decide a claim.
func (s *Stage) reserve(on *sale.Sale, claim *seckill.Claim, deadline time.Time) (Bought, error) {
	if s.opt.Journal != nil && !s.opt.Journal.Ready() {
		return Bought{}, errBusy // a promise could not be kept
	}
	group, err := s.group(on)
	if err != nil {
		return Bought{}, err
	}
	bought, err := s.wait(group.batchers[seckill.HomeShard(group.terms, claim.Buyer)], claim, deadline)
	if err != nil || bought.OrderNo == claim.OrderNo {
		return bought, err
	}
	return bought, s.synced(deadline) // the order of an earlier claim with this key
}

// wait hands a claim to who gathers for its seller, and waits for the answer.
func (s *Stage) wait(at interface{ offer(*waiter) error }, claim *seckill.Claim, deadline time.Time) (Bought, error) {
	w := s.waiters.Get().(*waiter)
	w.claim, w.deadline, w.proven = *claim, deadline, time.Time{}
	if err := at.offer(w); err != nil {
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

// group finds the sale's batchers, or makes them for its present epoch.
func (s *Stage) group(on *sale.Sale) (*group, error) {
	terms := on.Terms()
	if terms.Epoch == 0 {
		return nil, errBusy // not preheated yet: there is nothing to sell from
	}
	if terms.Rebuilding {
		return nil, errBusy
	}
	if g := s.groups.of(on); g != nil && g.epoch == terms.Epoch && !g.stopped.Load() {
		return g, nil
	}
	return s.startGroup(on, terms)
}

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
	b.breaker.close()
	if g.terms.Shards > 1 {
		b.supply = &supply{batcher: b}
	}
	lane := s.opt.Lane
	lane.OnReply = b.breaker.heard
	if lane.MaxAskBackoff <= 0 {
		lane.MaxAskBackoff = maxAskBackoff
	}
	for k := range b.lanes {
		lane.OnSettled = func(w ledger.Write, result ledger.Result, err error) { b.heardLate(&b.unheard[k], w, result, err) }
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

func (s *Stage) callTimeout() time.Duration {
	if s.opt.Lane.CallTimeout > 0 {
		return s.opt.Lane.CallTimeout
	}
	return ledger.DefaultCallTimeout
}

// answerOf turns a verdict into what the shopper is told.
func answerOf(v *ledger.Verdict) (seckill.OrderNo, error) {
	switch v.Code {
	case ledger.VerdictAccepted, ledger.VerdictRepeated:
		return v.OrderNo, nil
	case ledger.VerdictSoldOut:
		return seckill.OrderNo{}, errSoldOut
	case ledger.VerdictOverLimit:
		return seckill.OrderNo{}, &seckill.Error{Code: seckill.CodeAlreadyPurchased, OrderNos: v.Held}
	case ledger.VerdictPaused:
		return seckill.OrderNo{}, errPaused
	case ledger.VerdictEnded:
		return seckill.OrderNo{}, errEnded
	case ledger.VerdictRefused:
		return seckill.OrderNo{}, errReturned
	}
	return seckill.OrderNo{}, errors.New("ledger gave an unknown verdict")
}
