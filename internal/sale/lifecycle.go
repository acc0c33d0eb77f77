package sale

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/ledger"
	"seckill/internal/ledger/transfer"
	"seckill/internal/queue"
	"seckill/internal/store"
)

// defaultPatience is how long an operator waits for a ledger of this process,
// which a slow disk may hold up.
const defaultPatience = 2 * time.Second

// Lifecycle moves a product through its sale: create, preheat, pause, resume,
// end, restock, recover, take over. Any instance may repeat any move after a
// crash: the store's epoch and the ledger's rules decide, never this object's
// memory. Its locks only keep two operators at one instance from doing the same
// work twice.
type Lifecycle struct {
	store    store.Store
	ledger   ledger.Ledger
	queue    queue.Queue
	catalog  *Catalog
	clock    *Clock
	lanes    *Lanes
	mover    *transfer.Mover
	log      *slog.Logger
	allowed  map[seckill.Strategy]bool
	memory   *Memory
	duties   Waker
	alerts   Alerter
	peers    Peers
	closer   Closer
	holder   string
	promises Promises
	witness  WitnessChecker // nil for none
	apart    bool
	others   bool
	patience time.Duration
	// building holds who builds a ledger.
	building chan struct{}
	looks    *together // at the witness

	failures failures
	// Products whose ledger did not answer the duty.
	stockAside background.Postponed[uint32]

	locks locks // by product
	turns locks // of rebuilds, by limit group
}

// LifecycleOptions are the parts of a Lifecycle.
type LifecycleOptions struct {
	Store   store.Store
	Ledger  ledger.Ledger
	Queue   queue.Queue
	Catalog *Catalog
	Clock   *Clock
	Lanes   *Lanes
	Mover   *transfer.Mover
	Logger  *slog.Logger
	// Strategies that the wired parts can serve.
	Strategies []seckill.Strategy
	// Memory remembers the buyers that the ledger will remember; nil for a memory of
	// the lifecycle's own.
	Memory *Memory
	// Duties, Alerts, Peers and Closer may be nil.
	Duties Waker
	Alerts Alerter
	Peers  Peers
	Closer Closer
	// Holder is this instance's name among those that share the store; "" when
	// there are no others.
	Holder string
	// Promises writes what was promised before a rebuild. Without it, promises
	// are adopted after the rebuild.
	Promises Promises
	// Others says that other instances may remember answers too.
	Others bool
	// Witness finds a loss of the queue before a rebuild opens an epoch. A rebuild
	// depends on it only where a stream of the queue is lost whole; nil for none.
	Witness WitnessChecker
	// Apart says that the ledger can fail apart from the store, so that the store
	// can take a sale over.
	Apart bool
	// Patience is how long an operator waits for the ledger; 0 is defaultPatience.
	Patience time.Duration
}

// Promises writes promises into the store before a rebuild, so that they keep
// their units.
type Promises interface {
	// Reoffer writes the answers of this instance that the store does not have.
	Reoffer(ctx context.Context, product uint32) error
	// Write writes claims of one product as a worker would. It leaves out claims
	// that do not fit and claims that the store refuses: they are adopted, or
	// parked by their worker.
	Write(ctx context.Context, items []store.Item) error
}

type noPromises struct{}

func (noPromises) Reoffer(context.Context, uint32) error     { return nil }
func (noPromises) Write(context.Context, []store.Item) error { return nil }

// NewLifecycle makes a Lifecycle.
func NewLifecycle(opt LifecycleOptions) *Lifecycle {
	d := &Lifecycle{
		store: opt.Store, ledger: opt.Ledger, queue: opt.Queue, catalog: opt.Catalog,
		clock: opt.Clock, lanes: opt.Lanes, mover: opt.Mover, log: opt.Logger,
		memory: opt.Memory, duties: opt.Duties, alerts: opt.Alerts, peers: opt.Peers, closer: opt.Closer,
		holder: opt.Holder, promises: opt.Promises, witness: opt.Witness, apart: opt.Apart, others: opt.Others,
		patience: cmp.Or(opt.Patience, defaultPatience), building: make(chan struct{}, buildAtOnce), looks: newTogether(),
		allowed: make(map[seckill.Strategy]bool),
	}
	if d.memory == nil {
		d.memory = NewMemory()
	}
	if d.duties == nil {
		d.duties = nobody{}
	}
	if d.alerts == nil {
		d.alerts = nobody{}
	}
	if d.peers == nil {
		d.peers = Alone{}
	}
	if d.closer == nil {
		d.closer = nobody{}
	}
	if d.promises == nil {
		d.promises = noPromises{}
	}
	for _, s := range opt.Strategies {
		d.allowed[s] = true
	}
	return d
}

// lock serialises this instance's moves on one product.
func (d *Lifecycle) lock(ctx context.Context, id uint32) (unlock func(), err error) {
	return d.locks.acquire(ctx, id)
}

// IsTest reports whether a product is a test, as far as this instance knows.
func (d *Lifecycle) IsTest(product uint32) bool { return d.catalog.IsTest(product) }

// Create puts a product on the list of sales.
func (d *Lifecycle) Create(ctx context.Context, p seckill.Product, actor store.Actor) (seckill.Product, error) {
	if err := p.Check(); err != nil {
		return p, err
	}
	if !d.allowed[p.Strategy] {
		return p, seckill.Errorf(seckill.CodeBadRequest, "strategy %q is not available with the configured ledger and store", p.Strategy)
	}
	if p.Fallback == seckill.FallbackStore && !d.apart {
		return p, seckill.Errorf(seckill.CodeBadRequest, "fallback %q needs a ledger that can fail apart from the store; the embedded ledger cannot", p.Fallback)
	}
	created, err := d.store.CreateProduct(ctx, p, actor)
	if err != nil {
		return created, err
	}
	d.refreshed(ctx, p.ID)
	d.duties.Wake(background.DutyKeep) // it may be due for preheating
	return created, nil
}

// Patch changes a product's terms.
func (d *Lifecycle) Patch(ctx context.Context, id uint32, patch store.ProductPatch, actor store.Actor) (seckill.Product, error) {
	unlock, err := d.lock(ctx, id)
	if err != nil {
		return seckill.Product{}, err
	}
	defer unlock()
	p, err := d.store.PatchProduct(ctx, id, patch, actor)
	if err != nil {
		return p, err
	}
	d.refreshed(ctx, id)
	return p, nil
}

// refreshed makes a change visible on this instance, and tells the others. The
// change itself is done; if the catalogue cannot be read now, its own loop will.
func (d *Lifecycle) refreshed(ctx context.Context, id uint32) {
	d.peers.ProductChanged(id)
	if err := d.catalog.Refresh(ctx); err != nil {
		d.log.Warn("catalogue not refreshed after a change", "error", err)
	}
}

// SetState pauses, resumes or ends a sale. When it returns without error,
// every later reservation meets the new state, on every instance. If the store is
// away, a pause or an end takes effect in the ledger alone: the product that is
// returned is Instructed, and the store hears of it when it is back.
//
// It takes no lock, as to stop a sale must not wait for a rebuild: the ledger goes
// by the version of the state, and who opens an epoch reads the state again.
func (d *Lifecycle) SetState(ctx context.Context, id uint32, state seckill.SaleState, actor store.Actor) (seckill.Product, error) {
	in := seckill.Instruction{
		ID: rand.Text(), State: state, Actor: actor.Name, Reason: actor.Reason, At: d.clock.Now().UTC().Truncate(time.Millisecond),
	}
	var unread error
	if state == seckill.SaleOpen {
		var err error
		if unread, err = d.carryFirst(ctx, id); err != nil {
			return seckill.Product{}, err
		}
	}
	p, err := d.tellStore(ctx, id, in)
	if state != seckill.SaleOpen && errors.Is(err, store.ErrUnavailable) {
		return d.instruct(ctx, id, in, err)
	}
	if err != nil {
		return p, err
	}
	if unread != nil { // the keeper tells the ledger
		d.peers.ProductChanged(id)
		d.refreshed(ctx, id)
		return p, unread
	}
	return p, d.spread(ctx, &p)
}

// spread has ledger and instances follow the state that the store has.
func (d *Lifecycle) spread(ctx context.Context, p *seckill.Product) error {
	d.peers.ProductChanged(p.ID) // others refuse a paused sale at their door from now on
	if err := d.applyState(ctx, p); err != nil {
		return err
	}
	if p.State == seckill.SaleEnded {
		d.closer.SaleEnded(p.ID)
	}
	d.refreshed(ctx, p.ID)
	return nil
}

// brief bounds how long an operator waits for the ledger. What it has not heard
// by then it is told later.
func (d *Lifecycle) brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.patience)
}

// applyState makes the ledger obey the state that the store has. The store may
// have opened a new epoch that this ledger does not have yet (rebuild, takeover).
// Until the instances learn of that epoch, they sell from the older one, so the
// older one is closed here. The new one needs nothing: whoever opens it reads the
// state again before.
func (d *Lifecycle) applyState(ctx context.Context, p *seckill.Product) error {
	if p.Epoch == 0 || !p.HasLedger() || p.StoreOpen {
		return nil
	}
	ctx, cancel := d.brief(ctx)
	defer cancel()
	for i := range p.Shards {
		if err := d.applyShardState(ctx, p, ledger.ShardOf(p, i)); err != nil {
			return seckill.Errorf(seckill.CodeBusy, "the sale is %s in the store; the ledger has not heard it yet: %w", p.State, err)
		}
	}
	return nil
}

func (d *Lifecycle) applyShardState(ctx context.Context, p *seckill.Product, shard ledger.Shard) error {
	if !p.SoldByStore() {
		applied, err := d.ledger.SetState(ctx, shard, p.State, p.Version)
		if applied || err != nil {
			return err
		}
	}
	shard.Epoch--
	return d.ledger.Close(ctx, shard)
}
