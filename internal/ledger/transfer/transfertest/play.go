package transfertest

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"

	"seckill/internal/ledger"
	"seckill/internal/ledger/transfer"
)

const (
	processes = 4  // that move units at once
	movesEach = 25 // transfers that each of them tries
	trades    = 60 // sales and returns at the same time
	killOneIn = 15 // calls, on average
)

// scheduler lets one waiting call at a time reach the ledger, in random order, and checks all
// shards after each.
type scheduler struct {
	*fixture
	random *rand.Rand

	mu      sync.Mutex
	waiting []*waitingCall
	arrived *sync.Cond
	actors  int
	proofs  map[*proof]struct{} // running calls of Prove
}

// waitingCall is a call that waits for its turn.
type waitingCall struct {
	actor *actor
	ready chan fault
}

// fault is the fault of a call.
type fault int

const (
	passes fault = iota
	diesBefore
	diesAfter
)

// proof remembers the fewest unsold units since it began.
type proof struct{ lowest int64 }

// actor is one process of the ledger. Its calls go through the scheduler.
type actor struct {
	ledger.Ledger
	scheduler *scheduler
	kill      context.CancelFunc // nil for a process that does not die
	dead      context.Context
}

func (a *actor) Do(ctx context.Context, req ledger.Request) (ledger.Reply, error) {
	return enter(a, func() (ledger.Reply, error) { return a.Ledger.Do(context.WithoutCancel(ctx), req) })
}

func (a *actor) Read(ctx context.Context, shard ledger.Shard) (ledger.Figures, error) {
	return enter(a, func() (ledger.Figures, error) { return a.Ledger.Read(context.WithoutCancel(ctx), shard) })
}

// enter waits for the call's turn, and performs it while no other call runs.
func enter[T any](a *actor, perform func() (T, error)) (T, error) {
	var nothing T
	if a.dead.Err() != nil {
		return nothing, errKilled
	}
	e := &waitingCall{actor: a, ready: make(chan fault)}
	t := a.scheduler
	t.mu.Lock()
	t.waiting = append(t.waiting, e)
	t.arrived.Signal()
	t.mu.Unlock()
	fault := <-e.ready
	defer func() { e.ready <- fault }()
	if fault == diesBefore {
		a.kill()
		return nothing, errKilled
	}
	value, err := perform()
	if fault == diesAfter {
		a.kill()
		return nothing, errKilled
	}
	return value, err
}

// play lets processes move units and die, while units are sold and returned, and checks the
// promises after every call.
func play(f *fixture, seed uint64) {
	t := &scheduler{fixture: f, random: rand.New(rand.NewPCG(seed, 2)), proofs: make(map[*proof]struct{})}
	t.arrived = sync.NewCond(&t.mu)
	t.start(func(random *rand.Rand) { t.trade(random) })
	for range processes {
		t.start(func(random *rand.Rand) { t.moves(random) })
	}
	t.direct()
	if f.Failed() {
		f.Fatalf("seed %d", seed)
	}
	// One live process finishes all open transfers. Then every unsold unit can be brought to
	// one shard.
	f.must(f.mover.Finish(context.Background(), f.terms))
	free := f.survey().Free()
	have, _, err := f.mover.Gather(context.Background(), f.terms, 0, free)
	f.must(err)
	if s := f.survey(); have != free || s.Shards[0].Available != free {
		f.Fatalf("seed %d: %d of %d units could be had: %+v", seed, have, free, s.Shards)
	}
}

// start runs an actor's part with its own random source.
func (t *scheduler) start(part func(*rand.Rand)) {
	random := rand.New(rand.NewPCG(t.random.Uint64(), t.random.Uint64()))
	t.actors++
	go func() {
		part(random)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.actors--
		t.arrived.Signal()
	}()
}

func (t *scheduler) actor(dyingWriter bool) *actor {
	a := &actor{Ledger: t.ledger, scheduler: t, dead: context.Background()}
	if dyingWriter {
		a.dead, a.kill = context.WithCancel(context.Background())
	}
	return a
}

// direct gives turns until every part has ended.
func (t *scheduler) direct() {
	for {
		t.mu.Lock()
		for len(t.waiting) == 0 && t.actors > 0 {
			t.arrived.Wait()
		}
		if len(t.waiting) == 0 {
			t.mu.Unlock()
			return
		}
		at := t.random.IntN(len(t.waiting))
		e := t.waiting[at]
		t.waiting[at] = t.waiting[len(t.waiting)-1]
		t.waiting = t.waiting[:len(t.waiting)-1]
		t.mu.Unlock()
		next := passes
		if e.actor.kill != nil && t.random.IntN(killOneIn) == 0 {
			next = diesBefore + fault(t.random.IntN(2))
		}
		e.ready <- next
		<-e.ready
		t.check()
	}
}

// moves runs one process. After it was killed, it runs the next one.
func (t *scheduler) moves(random *rand.Rand) {
	var me *actor
	var mover *transfer.Mover
	for range movesEach {
		if me == nil || me.dead.Err() != nil {
			me = t.actor(true)
			mover = transfer.New(me, newLanes(me), random.Uint64)
		}
		if random.IntN(3) == 0 {
			t.prove(me, mover)
			continue
		}
		seen, err := mover.Survey(me.dead, t.terms)
		if err != nil {
			t.unlessKilled(me, err)
			continue
		}
		_, err = mover.Bring(me.dead, t.terms, seen, random.IntN(t.terms.Shards), 1+random.Int64N(4))
		t.unlessKilled(me, err)
	}
}

func (t *scheduler) unlessKilled(me *actor, err error) {
	if err != nil && me.dead.Err() == nil {
		t.Errorf("a live process got %v", err)
	}
}

// prove runs Prove, and compares the result with the fewest unsold units during the call.
func (t *scheduler) prove(me *actor, mover *transfer.Mover) {
	p := &proof{lowest: math.MaxInt64}
	t.mu.Lock()
	t.proofs[p] = struct{}{}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.proofs, p)
	}()
	seen, err := mover.Survey(me.dead, t.terms)
	if err != nil {
		t.unlessKilled(me, err)
		return
	}
	proven, err := mover.Prove(me.dead, t.terms, seen)
	t.unlessKilled(me, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	if proven && p.lowest > seen.Free() {
		t.Errorf("no more than %d free is proven, and there were always %d", seen.Free(), p.lowest)
	}
}

// trade sells and returns units, and changes the stock.
func (t *scheduler) trade(random *rand.Rand) {
	type sold struct {
		shard int
		order ledger.ReleaseOrder
	}
	var orders []sold
	lanes := newLanes(t.actor(false))
	for i := range trades {
		if random.IntN(6) == 0 {
			change := ledger.StockChange{ID: strconv.Itoa(i), Delta: 1 - 2*random.Int64N(2)}
			if _, err := lanes.Do(context.Background(), t.shard(0), change); err != nil {
				t.Error(err)
			}
			continue
		}
		if len(orders) > 0 && random.IntN(5) < 2 {
			at := random.IntN(len(orders))
			back := orders[at]
			orders[at] = orders[len(orders)-1]
			orders = orders[:len(orders)-1]
			if _, err := lanes.Do(context.Background(), t.shard(back.shard), ledger.Release{Orders: []ledger.ReleaseOrder{back.order}}); err != nil {
				t.Error(err)
			}
			continue
		}
		shard := random.IntN(t.terms.Shards)
		claim := t.claim(shard, 1+random.IntN(2))
		result, err := lanes.Do(context.Background(), t.shard(shard), reserve(claim))
		if err != nil {
			t.Error(err)
		} else if result.Verdicts[0].Code == ledger.VerdictAccepted {
			orders = append(orders, sold{shard, ledger.ReleaseOrder{OrderNo: claim.OrderNo, Buyer: claim.Buyer}})
		}
	}
}

// check tests that units are conserved, that units in transit equal the open records that have
// not arrived, and that no shard was closed.
func (t *scheduler) check() {
	t.Helper()
	shards := make([]ledger.Figures, t.terms.Shards)
	for i := range shards {
		var err error
		if shards[i], err = t.ledger.Read(context.Background(), t.shard(i)); err != nil {
			t.Fatal(err)
		}
		if !shards[i].Open {
			t.Fatalf("shard %d has closed itself", i)
		}
	}
	var allotted, available, marked, transit, open int64
	for i := range shards {
		allotted += shards[i].Allotted
		available += shards[i].Available
		marked += shards[i].Marked
		transit += shards[i].Sent - shards[i].Received
		for _, record := range shards[i].Out {
			if !arrived(&shards[record.Peer], i, record.N) {
				open += record.Units
			}
		}
	}
	if available+marked+transit != allotted || transit != open {
		t.Fatalf("%d available, %d sold, %d in transit, %d in open records; %d allotted", available, marked, transit, open, allotted)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.proofs {
		p.lowest = min(p.lowest, available+transit)
	}
}

// arrived reports whether the receiver has credited a transfer.
func arrived(receiver *ledger.Figures, from int, n uint64) bool {
	for _, in := range receiver.In {
		if in.Peer == from {
			return in.N >= n
		}
	}
	return false
}
