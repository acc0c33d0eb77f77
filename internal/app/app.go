// Package app is the wiring: the one place that knows every adapter. It builds
// the parts for the configured roles, starts them, and stops them in an order
// that loses nothing.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"seckill/internal/adminapi"
	"seckill/internal/api"
	"seckill/internal/background"
	"seckill/internal/config"
	"seckill/internal/store/storesql"
)

// The roles that one process can have.
const (
	RoleShop   = "shop"
	RoleAdmin  = "admin"
	RoleWorker = "worker"
)

// Roles are all of them.
var Roles = []string{RoleShop, RoleAdmin, RoleWorker}

const (
	startDeadline = 2 * time.Minute // a journal of millions takes a while
	stopDeadline  = 20 * time.Second
	// adminStopDeadline is the part of it that operators' requests in hand may take.
	adminStopDeadline = 5 * time.Second
)

// Options are what the command line adds to the configuration.
type Options struct {
	Roles   []string // of Roles; empty means all
	Demo    bool
	Logger  *slog.Logger
	Version string
	// Out is where a person reads what to do next; nil for nowhere.
	Out io.Writer
}

// App is one running instance.
type App struct {
	cfg   *config.Config
	opt   Options
	log   *slog.Logger
	parts *parts

	shopListener  *api.Listener
	adminListener *api.Listener
	adminServer   *http.Server
	adminStop     chan struct{}
	adminPatience time.Duration // adminStopDeadline, but for tests

	loops     sync.WaitGroup
	stopLoops context.CancelFunc
	// broken carries the first error that a running server dies of.
	broken chan error
}

// New opens the data, and listens: when it returns, both addresses are taken
// and requests wait for Run.
func New(cfg *config.Config, opt Options) (*App, error) {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Out == nil {
		opt.Out = io.Discard
	}
	if len(opt.Roles) == 0 {
		opt.Roles = Roles
	}
	a := &App{
		cfg: cfg, opt: opt, log: opt.Logger, broken: make(chan error, 2),
		adminStop: make(chan struct{}), adminPatience: adminStopDeadline,
	}
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	if err := a.open(ctx); err != nil {
		a.close()
		return nil, err
	}
	for _, role := range Roles {
		if !a.has(role) && !(cfg.SharedLedger() && cfg.SharedStore()) {
			a.log.Warn("these parts serve one process; a role that it lacks nobody has", "role", role)
		}
	}
	return a, nil
}

func (a *App) has(role string) bool { return slices.Contains(a.opt.Roles, role) }

func (a *App) open(ctx context.Context) (err error) {
	// Listen first: an address that is taken should be said before a long load.
	if a.has(RoleShop) {
		if a.shopListener, err = a.listenShop(); err != nil {
			return fmt.Errorf("listen for the shop (shop.listen): %w", err)
		}
	}
	// Without the operator's role this is where the instance is watched.
	if a.adminListener, err = a.listenAdmin(); err != nil {
		return fmt.Errorf("listen for operators (admin.listen): %w", err)
	}
	if a.parts, err = build(ctx, a.cfg, a.opt, a.ShopURL, a.adminStop); err != nil {
		return err
	}
	a.adminServer = &http.Server{
		Handler:           a.parts.admin,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      adminapi.AnswerTimeout,
		IdleTimeout:       75 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	return nil
}

// ShopURL is where shoppers reach this instance; "" without the role.
func (a *App) ShopURL() string {
	if a.shopListener == nil {
		return a.cfg.Shop.PublicURL
	}
	return a.cfg.Shop.URL(a.shopListener.Addr().String())
}

// AdminURL is where operators reach this instance, or, without their role,
// where its health and metrics are read.
func (a *App) AdminURL() string {
	return a.cfg.Admin.URL(a.adminListener.Addr().String())
}

// Run serves until ctx ends, then stops gracefully and returns nil: it lets proxies
// turn away, stops accepting, finishes what it holds, and closes the data.
func (a *App) Run(ctx context.Context) error {
	loops, cancel := context.WithCancel(context.Background())
	a.stopLoops = cancel
	if err := a.parts.lifecycle.FindInstructions(ctx); err != nil { // before anything is sold; the duty looks again
		a.log.Warn("instructions not read from the ledger", "error", err)
	}
	if a.has(RoleShop) {
		// Before the first purchase. A part that is away does not keep the shop from
		// opening: the next look says what it cannot say now.
		if err := a.parts.witness.CheckWitness(ctx); err != nil {
			a.log.Warn("witness not checked before the start", "error", err)
		}
		a.parts.replayJournal(ctx)
	}
	a.startLoops(loops)
	if a.opt.Demo {
		if err := a.openDemo(ctx); err != nil {
			return errors.Join(fmt.Errorf("open the demo sale: %w", err), a.stop(stopDeadline))
		}
	}
	if a.shopListener != nil {
		a.parts.metrics.Conns(a.shopListener.Open)
		a.parts.metrics.Unread(a.shopListener.Unread)
		a.parts.metrics.Streams(a.parts.watch.Count)
		go func() { a.broken <- a.parts.shop.Serve(a.shopListener) }()
		a.log.Info("shop serves", "url", config.PrintableURL(a.ShopURL()), "listen", a.shopListener.Addr().String())
	}
	go func() { a.broken <- a.adminServer.Serve(a.adminListener) }()
	a.log.Info("operator address serves", "url", a.AdminURL(), "api", a.has(RoleAdmin))
	a.announce()
	var died, drained error
	left := stopDeadline
	select {
	case <-ctx.Done():
		a.log.Info("stopping", "why", context.Cause(ctx))
		began := time.Now()
		drained = a.drain()
		left -= time.Since(began)
	case died = <-a.broken:
	case err := <-a.parts.sole.Lost():
		a.log.Error("stopping: another ledger sells for this database", "error", err)
		return errors.Join(err, a.stop(stopDeadline))
	}
	err := errors.Join(drained, a.stop(left))
	if died != nil && !errors.Is(died, http.ErrServerClosed) {
		return fmt.Errorf("a server ended by itself: %w", died)
	}
	return err
}

// stop ends the stages in the order of a purchase: no new requests, answer
// what waits, settle what is in hand, close the data.
func (a *App) stop(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var errs []error
	if a.shopListener != nil {
		errs = append(errs, a.shopListener.Hurry(), a.parts.shop.Shutdown(ctx))
	}
	a.parts.stage.Close()
	close(a.adminStop)
	errs = append(errs, a.adminListener.Hurry(), a.stopAdmin(ctx))
	a.stopLoops()
	errs = append(errs, a.awaitLoops(ctx))
	a.parts.writePromises(ctx)
	errs = append(errs, a.close())
	a.log.Info("stopped")
	return errors.Join(errs...)
}

// awaitLoops waits until the loops have ended. One that does not end must not
// keep the process: what it holds is handed over as after a kill.
func (a *App) awaitLoops(ctx context.Context) error {
	if err := background.WaitWithin(ctx, a.loops.Wait); err != nil {
		return fmt.Errorf("stop: background work did not end in time: %w", err)
	}
	return nil
}

// stopAdmin waits a short time for operators' requests, and then closes their
// connections. A client that does not read its answer, or an operation of
// minutes, must not use up the time that the loops need to stop.
func (a *App) stopAdmin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.adminPatience)
	defer cancel()
	err := a.adminServer.Shutdown(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	a.log.Warn("stop: operators' connections were closed before their answers were read", "waited", a.adminPatience)
	return a.adminServer.Close()
}

// close closes what open opened.
func (a *App) close() error {
	var errs []error
	for _, l := range []*api.Listener{a.shopListener, a.adminListener} {
		if l != nil {
			l.Close() // a server that ran has closed it already
		}
	}
	if a.parts != nil {
		errs = append(errs, a.parts.close())
	}
	return errors.Join(errs...)
}

// Migrate brings the configured store's tables up to date, and says from which
// version to which.
func Migrate(ctx context.Context, cfg *config.Config) (from, to int64, err error) {
	spoken, err := cfg.Store.TLSConfig()
	if err != nil {
		return 0, 0, err
	}
	s, err := storesql.Open(ctx, cfg.StoreDSN(), storesql.Options{MaxConns: cfg.Store.MaxConns, TLS: spoken})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	from, to, err = s.Version(ctx)
	if err != nil {
		return 0, 0, err
	}
	return from, to, s.Migrate(ctx)
}
