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
	"time"

	"seckill"
	"seckill/internal/adminapi"
	"seckill/internal/admission"
	"seckill/internal/alert"
	"seckill/internal/api"
	"seckill/internal/auth"
	"seckill/internal/background"
	"seckill/internal/carrier/relay"
	"seckill/internal/config"
	"seckill/internal/fault"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgermem"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/ledger/transfer"
	"seckill/internal/metrics"
	"seckill/internal/notify"
	"seckill/internal/onetime"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/internal/payment/paysandbox"
	"seckill/internal/purchase"
	"seckill/internal/queue"
	"seckill/internal/reconcile"
	"seckill/internal/recovery"
	"seckill/internal/sale"
	"seckill/internal/shopapi"
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
	sole   *background.SoleLedger
	isShop bool // it has the shop's role
	board  notify.Board
	base   baseLedger // the ledger as its adapter has it
	// One of them is the base, the other is nil.
	embedded *ledgermem.Ledger
	redis    *ledgerredis.Ledger
	// durability is what the settings of Redis could lose when it was last logged.
	durability *ledgerredis.Durability
	// ledger is the base, and queue its outbox: a test can stand between.
	ledger  ledger.Ledger
	queue   queue.Queue
	onetime onetime.Register // where the ledger is: instances that share one share it
	// closeOnetime ends its connections; nil without any.
	closeOnetime func(context.Context) error

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
	counts      *reconcile.Schedule
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
	duties     *background.Duties
	requests   *recovery.Requests
	supervisor *recovery.Supervisor
	witness    *recovery.Witness
	notifier   *sale.Notifier
	janitor    *sale.Janitor
	heartbeat  *sale.Heartbeat
	membership *sale.Membership
	buyersRead *sale.Buyers
	readiness  *shopapi.Readiness
	silences   *sale.Silences
}

// build opens the data and wires the parts. Parts that call each other in a circle
// (a cancelled order wakes the releaser) meet in duties and in requests.
func build(ctx context.Context, cfg *config.Config, opt Options, shopURL func() string, stopStreams <-chan struct{}) (*parts, error) {
	p := &parts{
		cfg: cfg, log: opt.Logger, complaints: alert.NewThrottledLog(opt.Logger, time.Now), name: instanceName(), patience: reachDeadline, board: notify.NoBoard{},
		isShop: slices.Contains(opt.Roles, RoleShop), requests: recovery.NewRequests(),
	}
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
	p.duties = background.NewDuties(p.board)
	p.catalog, p.memory = sale.NewCatalog(p.store), sale.NewMemory()
	p.silences = sale.NewSilences(p.catalog, time.Now)
	p.alerter.IsTest(p.catalog.IsTest)
	p.catalog.Follow(recovery.NewRebuildAlarm(p.alerter, p.cfg.SharedLedger()))
	p.buyersRead = &sale.Buyers{
		Ledger: p.base, Store: p.store, Catalog: p.catalog, Memory: p.memory, Clock: p.clock, Shared: !p.alone(), Logger: p.log,
	}
	p.notifier = sale.NewNotifier(sale.NotifierOptions{
		Board: p.board, Fence: p.redis, Catalog: p.catalog, Memory: p.memory, Clock: p.clock, Buyers: p.buyersRead, Duties: p.duties, Logger: p.log,
	})
	p.witness = &recovery.Witness{
		Guard:   &worker.Guard{Queue: p.queue, Store: p.store, OnTrouble: p.requests.RequestRecovery},
		Catalog: p.catalog, Peers: p.notifier,
	}
	p.membership = &sale.Membership{
		Name: p.name, Shop: p.isShop, Store: p.store, Catalog: p.catalog, Silences: p.silences, TakeoverAfter: p.cfg.Ledger.TakeoverAfter, Logger: p.log,
	}
	if p.cfg.SharedLedger() { // before the epochs are read
		if err := p.membership.Keep(ctx); err != nil {
			return err
		}
	}
	if err := p.catalog.Refresh(ctx); err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	if err := p.buyersRead.ReadAll(ctx); err != nil {
		return err
	}
	p.lanes = sale.NewLanes(p.ledger, p.laneOptions())
	p.mover = transfer.New(p.ledger, p.lanes, mathrand.Uint64)
	p.buildPromises()
	p.loadJournal()
	p.janitor = &sale.Janitor{Catalog: p.catalog, Memory: p.memory, Clock: p.clock, Duties: p.duties}
	p.lifecycle = sale.NewLifecycle(sale.LifecycleOptions{
		Store: p.store, Ledger: p.ledger, Queue: p.queue, Catalog: p.catalog, Clock: p.clock, Lanes: p.lanes,
		Mover: p.mover, Logger: p.log, Strategies: []seckill.Strategy{
			seckill.StrategyAsync, seckill.StrategyDirect, seckill.StrategySharded, seckill.StrategyDualWrite,
		},
		Memory: p.memory, Duties: p.duties, Alerts: p.alerter, Peers: p.notifier, Closer: p.janitor, Witness: p.witness,
		Holder: p.holder(), Promises: p.promises, Others: !p.alone(), Patience: p.cfg.PurchaseTimeout(), Apart: p.cfg.SharedLedger(),
	})
	p.keeper = sale.NewKeeper(p.lifecycle, p.cfg.Preheat.Lead, p.janitor.SaleEnded, p.requests.LedgerLost)
	p.supervisor = &recovery.Supervisor{
		Requests: p.requests, Rebuilder: p.lifecycle, Catalog: p.catalog, Duties: p.duties, Alerts: p.alerter, Logger: p.log, Repeated: p.complaints,
	}
	p.buildStage()
	p.janitor.Stage = p.stage
	p.catalog.Follow(p.janitor)
	p.heartbeat = &sale.Heartbeat{
		Ledger: p.ledger, Catalog: p.catalog, Clock: p.clock, Lanes: p.lanes, Beaters: []sale.Beater{p.stage}, Recoverer: p.requests,
	}
	if p.cfg.SharedLedger() {
		p.heartbeat.Beaters = append(p.heartbeat.Beaters, p.silences)
	}
	p.readiness = shopapi.NewReadiness(shopapi.ReadinessOptions{
		Store: p.store, Ledger: p.base, SharedStore: p.cfg.SharedStore(), SharedLedger: p.cfg.SharedLedger(), Catalog: p.catalog, Clock: p.clock,
	})
	p.reconciler = &reconcile.Reconciler{
		Store: p.store, Ledger: p.ledger, Queue: p.queue, Recoverer: p.lifecycle,
		Deadline: p.cfg.Reconcile.Deadline, Logger: p.log, OnReport: p.reported,
	}
	p.counts = reconcile.NewSchedule(p.store, p.lifecycle,
		reconcile.Regular{Reconciler: p.reconciler, Repair: p.cfg.Reconcile.Repair == config.RepairSafe}, p.cfg.Reconcile.Every)
	p.notifier.Suspects = p.counts
	sales := &metrics.Sales{Sales: p.lifecycle, Clock: p.clock}
	figures := &metrics.Parts{Ledger: p.base.Ping, Store: p.store.Ping, Bulletin: p.board.Stats, Silent: p.stage.Silent}
	if p.embedded != nil {
		sales.Journal = p.embedded.JournalSize
	}
	if p.redis != nil {
		figures.Outbox = p.outbox
	}
	p.metrics.Register(sales)
	p.metrics.Register(figures)
	return nil
}

// alone reports whether there is no other instance.
func (p *parts) alone() bool { return p.board == notify.NoBoard{} }

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

// reported takes a reconciliation's result to metrics and alerts.
func (p *parts) reported(report api.Report) {
	p.metrics.Reconciled(report)
	if report.Balanced != nil && !*report.Balanced {
		first := report.Violations[0]
		p.alerter.Raise(alert.Violations, report.ProductID,
			fmt.Errorf("%s: expected %s, found %s (%s)", first.Promise, first.Expected, first.Found, first.Detail))
	}
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
		BackURL:   p.backURL,
		Duties:    p.duties,
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
		OnTrouble: p.requests.RequestRecovery, OnAlert: p.alerter.Raise,
	})
	p.orders.MayBeStored = p.workers.MayBeStored
	p.watch = shopapi.NewWatch(p.store.OrdersByNo, p.links, time.Now, p.log)
	p.returns = shopapi.NewReturns(p.store.PendingUntil, time.Now, p.log)
	return nil
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
		Page:  web.Shop(), PagePolicy: shopapi.Policy(shopapi.Sources{ImageHosts: p.cfg.Page.ImageHosts}), Metrics: p.metrics, Logger: p.log, Watch: p.watch, Returns: p.returns, Ready: p.readiness.Check,
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
		Meter:        operatorMeter{p.metrics},
	})
	return err
}

// operatorMeter counts what the operator API does.
type operatorMeter struct{ metrics *metrics.Metrics }

// Request counts an answer.
func (m operatorMeter) Request(route string, status int, _ time.Duration) {
	m.metrics.Route("admin "+route, strconv.Itoa(status)).Inc()
}

// Panic counts a panic.
func (m operatorMeter) Panic() { m.metrics.Panics.Inc() }

// Suspect counts a suspect request.
func (m operatorMeter) Suspect(why string) { m.metrics.OperatorRefused.WithLabelValues(why).Inc() }

// checks decide whether an instance may be used, by what its roles need. They are
// those of its operator address, whose readers are few: parts are asked each time.
// An instance that only sells may do so without one of its parts, which is shown
// all the same.
func (p *parts) checks(roles []string) []adminapi.Check {
	onlySells := slices.Equal(roles, []string{RoleShop})
	checks := []adminapi.Check{
		{Name: "store", Run: p.store.Ping, Spared: onlySells},
		{Name: "ledger", Run: p.base.Ping, Spared: onlySells},
		{Name: "running", Run: p.readiness.CheckRunning},
	}
	if onlySells {
		checks = append(checks, adminapi.Check{Name: "shop", Run: p.readiness.Check})
	}
	return checks
}

// close leaves the brokers and closes the data. The time that brokers take is
// not taken from the ledger.
func (p *parts) close() error {
	p.leaveBrokers()
	ctx, cancel := context.WithTimeout(context.Background(), closeDeadline)
	defer cancel()
	errs := []error{p.closeJournal()}
	if p.closeOnetime != nil {
		errs = append(errs, p.closeOnetime(ctx))
	}
	if p.base != nil {
		errs = append(errs, p.base.Shutdown(ctx))
	}
	if p.membership != nil && p.cfg.SharedLedger() {
		p.membership.Leave(ctx)
	}
	if p.sole != nil { // last: until here the ledger may have sold
		p.sole.Release(ctx)
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	return errors.Join(errs...)
}
