package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/adminapi"
	"seckill/internal/admission"
	"seckill/internal/alert"
	"seckill/internal/api"
	"seckill/internal/auth"

	"seckill/internal/config"
	"seckill/internal/fault"
	"seckill/internal/ledger"

	"seckill/internal/metrics"
	"seckill/internal/notify"
	"seckill/internal/order"

	"seckill/internal/carrier/relay"
	"seckill/internal/payment"
	"seckill/internal/payment/paysandbox"
	"seckill/internal/purchase"
	"seckill/internal/queue"
	"seckill/internal/reconcile"
	"seckill/internal/recovery"

	"seckill/internal/sale"
	"seckill/internal/shopapi"

	"seckill/internal/ledger/transfer"
	"seckill/internal/store"

	"seckill/internal/worker"
	"seckill/web"
)

const (
	demoTokenLife = 24 * time.Hour
	closeDeadline = 10 * time.Second
)

// parts is everything an instance is made of.
type parts struct {
	cfg  *config.Config
	log  *slog.Logger
	name string // this instance's among others
	// patience is how long the start waits for Redis and MySQL.
	patience time.Duration
	store    store.Store
	// storeID is the store's own name, which is part of every key in Redis.
	storeID string
	// sole keeps other ledgers off the store; nil with one that no other process
	// can open.
	sole *soleLedger
	// stopping is set while the shop drains.
	stopping atomic.Bool
	isShop   bool // it has the shop's role
	// shops is how many of them are alive, among which limits are divided.
	shops  atomic.Int64
	limits []interface{ Share(shops int) }
	board  notify.Board
	book   book // the ledger's other sides
	// ledger and queue are the book's, kept apart so that a test can stand
	// between.
	ledger ledger.Ledger
	queue  queue.Queue
	// storeProbe and ledgerProbe are how they are, for all who ask the shop's
	// /readyz.
	storeProbe, ledgerProbe *probe

	metrics     *metrics.Metrics
	alerter     *alert.Alerter
	clock       *sale.Clock
	catalog     *sale.Catalog
	lanes       *sale.Lanes
	mover       *transfer.Mover
	memory      *sale.Memory
	promises    *recovery.Book
	journal     *recovery.Journal      // of promises; nil without promise.journal
	journaled   []recovery.LoadedEntry // what it held at the start, until the book has it
	lifecycle   *sale.Lifecycle
	keeper      *sale.Keeper
	stage       *purchase.Stage
	orders      *order.Orders
	providers   map[string]payment.Provider
	sandboxPage http.Handler // nil without the sandbox
	payPages    []string     // providers at which a buyer can pay
	backURL     func(o *seckill.Order) string
	reconciler  *reconcile.Reconciler
	countPlan   *countPlan             // of an instance with the worker role
	line        *relay.Line            // nil without a broker
	expiry      *order.ExpiryScheduler // nil without delayed messages
	workers     worker.Crew
	watch       *shopapi.Watch
	returns     *shopapi.Returns
	shop        *shopapi.Server
	admin       http.Handler
	buyers      *auth.Verifier
	keys        *auth.Keys   // nil without auth.jwks_url
	signer      *auth.Signer // of buyers' tokens; nil without a secret
	links       *auth.LinkSigner
	sinks       sinks
	brokers     brokers

	complaints *alert.ThrottledLog // of what crowds and outages repeat
	signals    *signals
	hearing    *hearing
	rebuilds   *rebuilds
	silences   *sale.Silences
}

// build opens the data and wires the parts. Parts that call each other in a
// circle (a cancelled order wakes the releaser) meet in signals.
func build(ctx context.Context, cfg *config.Config, opt Options, shopURL func() string, stopStreams <-chan struct{}) (*parts, error) {
	p := &parts{
		cfg: cfg, log: opt.Logger, complaints: alert.NewThrottledLog(opt.Logger, time.Now), name: instanceName(), patience: reachDeadline, board: notify.NoBoard{},
		isShop: slices.Contains(opt.Roles, RoleShop), signals: newSignals(), hearing: newHearing(), rebuilds: newRebuilds(),
	}
	p.shops.Store(1)
	for _, step := range []func() error{
		func() error { return p.openData(ctx, opt) },
		func() error { return p.openJournal(opt) },
		p.buildBrokers,
		func() error { return p.buildSale(ctx) },
		func() error { return p.buildPayment(shopURL) },
		func() error { return p.buildOrders(ctx, opt) },
		func() error { p.buildSinks(); return nil },
		func() error { return p.buildShop(opt) },
		func() error { return p.buildAdmin(opt, stopStreams) },
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

// instanceName tells this process from all others, also on one machine.
func instanceName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:8])
}

func (p *parts) laneOptions() ledger.LaneOptions {
	return ledger.LaneOptions{CallTimeout: p.cfg.CallTimeout()}
}

// buildSale wires catalogue, lifecycle, purchase stage and what looks after them.
func (p *parts) buildSale(ctx context.Context) error {
	p.clock = sale.NewClock(p.ledger.Now, p.log)
	if err := p.reach(ctx, "Redis", p.cfg.SharedLedger(), p.clock.Sync); err != nil {
		return fmt.Errorf("read the ledger's clock: %w", err)
	}
	p.catalog, p.memory = sale.NewCatalog(p.store), sale.NewMemory()
	p.silences = sale.NewSilences(p.catalog, time.Now)
	p.catalog.Follow(rebuildFollower{p: p})
	p.alerter.IsTest(p.catalog.IsTest)
	p.tellOthers()
	if err := p.keepInstance(ctx); err != nil { // before the epochs are read
		return err
	}
	if err := p.catalog.Refresh(ctx); err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	if err := p.remember(ctx); err != nil {
		return err
	}
	p.lanes = sale.NewLanes(p.ledger, p.laneOptions())
	p.mover = transfer.New(p.ledger, p.lanes, mathrand.Uint64)
	p.buildPromises()
	p.loadJournal()
	p.lifecycle = sale.NewLifecycle(sale.LifecycleOptions{
		Store: p.store, Ledger: p.ledger, Queue: p.queue, Catalog: p.catalog, Clock: p.clock, Lanes: p.lanes,
		Mover: p.mover, Logger: p.log, Strategies: []seckill.Strategy{
			seckill.StrategyAsync, seckill.StrategyDirect, seckill.StrategySharded, seckill.StrategyDualWrite,
		},
		Memory: p.memory, Duties: p.signals, Alerts: p.alerter, Peers: peers{p}, Closer: closer{p: p}, Witness: witness{p},
		Holder: p.holder(), Promises: p.promises, Others: !p.alone(), Patience: p.cfg.PurchaseTimeout(), Apart: p.cfg.SharedLedger(),
	})
	p.keeper = sale.NewKeeper(p.lifecycle, p.cfg.Preheat.Lead, p.saleEnded, p.signals.lost)
	p.buildStage()
	p.reconciler = &reconcile.Reconciler{
		Store: p.store, Ledger: p.ledger, Queue: p.queue, Recoverer: p.lifecycle,
		Deadline: p.cfg.Reconcile.Deadline, Logger: p.log, OnReport: p.reported,
	}
	p.catalog.Follow(closer{p: p})
	p.metrics.Register(&metrics.Sales{
		Products: p.shownSales, Stats: p.lifecycle.Stats, ClockSteps: p.clock.Steps,
		TakenOver: p.takenOver, Instructions: p.lifecycle.InstructionsWaiting, Journal: p.book.journal,
	})
	p.metrics.Register(&metrics.Parts{
		Ledger: p.book.ping, Store: p.store.Ping, Outbox: p.book.outbox, Bulletin: p.board.Stats, Silent: p.stage.Silent,
	})
	return nil
}

// now is the ledger's time, for parts that are opened before its clock. What
// they do while they open is by the machine's.
func (p *parts) now() time.Time {
	if p.clock == nil {
		return time.Now()
	}
	return p.clock.Now()
}

// holder is this instance's name among those that share the store, or "".
func (p *parts) holder() string {
	if p.cfg.SharedStore() {
		return p.name
	}
	return ""
}

// closer closes sales at this instance.
type closer struct {
	sale.NoFollower
	p *parts
}

// SaleEnded closes a sale that is over.
func (c closer) SaleEnded(product uint32) { c.p.saleEnded(product) }

// ProductGone closes the sale of a product that was deleted.
func (c closer) ProductGone(s *sale.Sale) { c.p.saleGone(s) }

// saleEnded stops a sale's batchers and asks for its last count.
func (p *parts) saleEnded(product uint32) {
	if s := p.catalog.Find(product); s != nil {
		p.stage.Retire(s)
		if !p.selling(s.Terms().Group) {
			p.memory.Forget(s.Terms().Group)
		}
	}
	p.signals.Wake(dutyReconcile) // which sales have ended, it reads in the store
}

// saleGone gives up what this instance keeps for a product that was deleted.
func (p *parts) saleGone(s *sale.Sale) {
	p.stage.Retire(s)
	if group := s.Terms().Group; !p.selling(group) {
		p.memory.Forget(group)
	}
}

// selling reports whether a product of the limit group is not over yet.
func (p *parts) selling(group uint32) bool {
	for _, s := range p.catalog.All() {
		if t := s.Terms(); t.Group == group && t.Window(p.clock.Now()) != seckill.CodeEnded {
			return true
		}
	}
	return false
}

// reported takes a reconciliation's result to metrics and alerts.
func (p *parts) reported(report api.Report) {
	p.metrics.Reconciled(report)
	if report.Balanced != nil && !*report.Balanced {
		first := report.Violations[0]
		p.alerter.Raise(alert.Violations, report.ProductID,
			fmt.Errorf("%s: expected %s, found %s (%s)", first.Promise, first.Expected, first.Found, first.Detail))
	}
}

// recentSales are the sales worth looking at: preheated and not long over.
func (p *parts) recentSales() []uint32 {
	var ids []uint32
	now := p.clock.Now()
	for _, s := range p.catalog.All() {
		if t := s.Terms(); t.Epoch > 0 && now.Before(t.EndsAt.Add(24*time.Hour)) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// shownSales are the recent sales without tests.
func (p *parts) shownSales() []uint32 { return slices.DeleteFunc(p.recentSales(), p.catalog.IsTest) }

// takenOver reports whether the store has taken a product over, or is about to.
func (p *parts) takenOver(product uint32) bool {
	s := p.catalog.Find(product)
	return s != nil && s.Terms().HasLedger() && s.Terms().SoldByStore()
}

// recentTerms are the terms of the sales that recentSales names.
func (p *parts) recentTerms() []*seckill.Product {
	var terms []*seckill.Product
	for _, id := range p.recentSales() {
		if s := p.catalog.Find(id); s != nil {
			terms = append(terms, s.Terms())
		}
	}
	return terms
}

// buildPayment wires the payment providers.
func (p *parts) buildPayment(shopURL func() string) error {
	sandbox, err := paysandbox.New(paysandbox.Options{
		Secret: p.cfg.Payment.SandboxSecret.Bytes(), BaseURL: shopURL, Now: fault.Now, Log: p.log,
		Deliver: func(ctx context.Context, header http.Header, body []byte) error {
			_, err := p.orders.Notify(ctx, paysandbox.Name, header, body)
			return err
		},
	})
	if err != nil {
		return err
	}
	p.providers = map[string]payment.Provider{sandbox.Name(): sandbox}
	if p.links, err = auth.NewLinkSigner(p.cfg.Token.Secrets()...); err != nil {
		return err
	}
	p.backURL = func(o *seckill.Order) string {
		return p.cfg.Page.Address(shopURL()) + "/#/orders/" + o.OrderNo.String() + "?link=" + p.links.Of(o, fault.Now())
	}
	if p.cfg.Payment.SandboxPage {
		p.sandboxPage, p.payPages = sandbox.Page(), []string{sandbox.Name()}
	}
	return nil
}

// buildOrders wires orders and the workers.
func (p *parts) buildOrders(ctx context.Context, opt Options) error {
	p.orders = &order.Orders{
		Store: p.store, Ledger: p.ledger, Queue: p.queue, Catalog: p.catalog, Providers: p.providers, PayPages: p.payPages,
		BackURL:  p.backURL,
		OnReturn: p.returned, OnRefund: func() { p.signals.Wake(dutyRefund) },
		OnPayment: p.paid, Keeps: p.keeper.Keeps,
	}
	var source worker.Source = p.queue
	var scheduler worker.Expiry
	if slices.Contains(opt.Roles, RoleWorker) {
		if err := p.buildLine(ctx); err != nil {
			return err
		}
		if err := p.buildExpiry(ctx); err != nil {
			return err
		}
		if p.line != nil {
			source = p.line
		}
		if p.expiry != nil {
			scheduler = p.expiry
		}
	}
	p.workers = worker.NewCrew(p.cfg.Workers(), p.queue, p.store, p.lanes, worker.Options{
		Name: p.name, Source: source,
		BatchSize: p.cfg.Worker.BatchSize, BatchWait: p.cfg.Worker.BatchWait, RatePerSecond: p.cfg.Worker.RatePerSecond,
		Ladder: p.cfg.Worker.RetryDelays, DiscardAfter: p.cfg.Worker.DiscardAfter, ExpireAfter: p.cfg.Order.ExpireAfter,
		Logger: p.log, Now: p.clock.Now, Gatherer: p.mover, Expiry: scheduler, OnBatch: p.metrics.Worker,
		OnTrouble: p.signals.raise, OnAlert: p.alerter.Raise,
	})
	p.orders.MayBeStored = p.workers.MayBeStored
	p.watch = shopapi.NewWatch(p.store.OrdersByNo, p.links, time.Now, p.log)
	p.returns = shopapi.NewReturns(p.store.PendingUntil, time.Now, p.log)
	return nil
}

// returned sees to units that came back. The ledger is owed what it sells; what
// the store sells is free again by now.
func (p *parts) returned(o *seckill.Order) {
	s := p.catalog.Find(o.ProductID)
	if s == nil || !s.Terms().SoldByStore() {
		p.signals.Wake(dutyRelease)
		return
	}
	s.ClearSoldOut()
}

// paid takes what a payment notice did to metrics and alerts.
func (p *parts) paid(product uint32, result string) {
	if !p.catalog.IsTest(product) {
		p.metrics.Payments.WithLabelValues(result).Inc()
	}
	if result == store.PaymentConflict.String() {
		p.alerter.Raise(alert.Conflict, product, errors.New("a provider reported one trade with different contents; see the log of the notify route"))
	}
}

// buildShop wires the gates and the public API.
func (p *parts) buildShop(opt Options) (err error) {
	if err := p.buildIdentity(); err != nil {
		return err
	}
	door := &admission.Doorkeeper{
		Clock: p.clock, Buyers: p.buyers, Memory: p.memory, TokenRequired: p.cfg.Token.Required,
		Shared: !p.alone(),
	}
	challenges, err := p.buildChallenge(door)
	if err != nil {
		return err
	}
	shop := shopapi.Options{
		Catalog: p.catalog, Clock: p.clock, Door: door, Stage: p.stage, Orders: p.orders, Challenges: challenges,
		Terms: api.ShopTerms{TokenRequired: p.cfg.Token.Required, TokenLead: p.cfg.Token.Lead, PaymentProviders: p.payPages},
		Page:  web.Shop(), PagePolicy: shopapi.Policy(shopapi.Sources{ImageHosts: p.cfg.Page.ImageHosts}), Metrics: p.metrics, Logger: p.log, Watch: p.watch, Returns: p.returns, Ready: p.ready,
		Sandbox: p.sandboxPage, SandboxPath: paysandbox.PagePath,
		Links: p.links, Login: p.login(door), LoginURL: p.cfg.Page.LoginURL, PayURL: p.cfg.Page.PayURL, CORSOrigins: p.cfg.Shop.CORSOrigins, TLS: p.cfg.Shop.TLS(),
	}
	if err := p.buildLimits(door, &shop); err != nil {
		return err
	}
	if opt.Demo {
		shop.DemoLogin = func(buyer string) (string, error) {
			if p.signer == nil {
				return "", errors.New("the demo's login needs auth.jwt_secret")
			}
			return p.signer.Sign(buyer, fault.Now().Add(demoTokenLife))
		}
	}
	p.shop, err = shopapi.New(shop)
	return err
}

// buildAdmin wires the operator API.
func (p *parts) buildAdmin(opt Options, stopStreams <-chan struct{}) (err error) {
	for _, why := range adminapi.Suspicions {
		p.metrics.OperatorRefused.WithLabelValues(why) // a rule sees it grow from 0
	}
	p.admin, err = adminapi.New(adminapi.Options{
		Token: string(p.cfg.Admin.Token.Bytes()), Sales: p.lifecycle, Orders: p.orders, Reconciler: p.reconciler, Records: p.store, Sinks: &p.sinks.admin,
		Hosts: p.cfg.Admin.Names(), Roles: opt.Roles, HealthOnly: !slices.Contains(opt.Roles, RoleAdmin), Checks: p.checks(opt.Roles),
		Metrics: p.metrics.Handler(), Pprof: p.cfg.Admin.Pprof, Log: p.log, Stop: stopStreams, Now: fault.Now,
		ShowsPicture: func(address string) bool { return shopapi.ShowsPicture(p.pictureHosts(), address) },
		OnRequest: func(route string, status int, took time.Duration) {
			p.metrics.Route("admin "+route, strconv.Itoa(status)).Inc()
		},
		OnPanic:   p.metrics.Panics.Inc,
		OnSuspect: func(why string) { p.metrics.OperatorRefused.WithLabelValues(why).Inc() },
	})
	return err
}

// close leaves the brokers and closes the data. The time that brokers take is
// not taken from the ledger.
func (p *parts) close() error {
	p.leaveBrokers()
	ctx, cancel := context.WithTimeout(context.Background(), closeDeadline)
	defer cancel()
	errs := []error{p.closeJournal()}
	if p.book.close != nil {
		errs = append(errs, p.book.close(ctx))
	}
	p.leaveInstance(ctx)
	if p.sole != nil { // last: until here the ledger may have sold
		p.sole.release(ctx)
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	return errors.Join(errs...)
}
