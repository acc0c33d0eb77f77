package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"seckill/internal/alert"
	"seckill/internal/background"
	"seckill/internal/client/redisclient"
	"seckill/internal/config"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgermem"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/metrics"
	"seckill/internal/onetime/onetimemem"
	"seckill/internal/onetime/onetimeredis"
	"seckill/internal/sale"
	"seckill/internal/shopapi"
	"seckill/internal/store/storesql"
)

const (
	// reachDeadline is how long a start waits for Redis and MySQL, which may be
	// starting too; reachPause, between two tries.
	reachDeadline = 30 * time.Second
	reachPause    = 500 * time.Millisecond
)

// baseLedger is what both ledgers have beside the port.
type baseLedger interface {
	ledger.Ledger
	sale.BuyerLedger
	shopapi.Pinger
	Shutdown(ctx context.Context) error
}

// openData opens store and ledger.
func (p *parts) openData(ctx context.Context, opt Options) error {
	for _, warning := range p.cfg.Warnings() {
		p.log.Warn(warning)
	}
	if err := os.MkdirAll(p.cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	if err := p.cfg.FillSecrets(); err != nil {
		return err
	}
	p.metrics = metrics.New(opt.Version)
	p.alerter = alert.New(string(p.cfg.Alert.WebhookURL), p.log, func(kind alert.Kind) { p.metrics.Alerts.WithLabelValues(kind.Label).Inc() })
	opened, err := p.openStore(ctx)
	if err != nil {
		return err
	}
	if p.cfg.SharedStore() { // SQLite serves one process, and says so itself
		holder := "memory " + p.name
		if p.cfg.SharedLedger() {
			holder = background.SharedHolder
		}
		if p.sole, err = background.HoldSoleLedger(ctx, opened, holder, p.log, p.metrics); err != nil {
			return err
		}
	}
	switch p.cfg.Ledger.Kind {
	case config.LedgerRedis:
		err = p.openRedis(ctx)
	default:
		err = p.openMemory(ctx)
	}
	if err != nil {
		return fmt.Errorf("open the ledger: %w", err)
	}
	p.ledger = p.base
	return nil
}

// openStore opens the store and sees to its tables.
func (p *parts) openStore(ctx context.Context) (opened *storesql.Store, err error) {
	spoken, err := p.cfg.Store.TLSConfig()
	if err != nil {
		return nil, err
	}
	err = p.reach(ctx, "the store", p.cfg.SharedStore(), func(ctx context.Context) (err error) {
		opened, err = storesql.Open(ctx, p.cfg.StoreDSN(), storesql.Options{Logger: p.log, MaxConns: p.cfg.Store.MaxConns, TLS: spoken})
		return err
	})
	if err != nil {
		return nil, err // it says "open store"
	}
	p.store = opened // not before: a nil *Store in the interface would look open
	if p.cfg.Store.Migrate {
		if err := opened.Migrate(ctx); err != nil {
			return nil, fmt.Errorf("migrate the store: %w", err)
		}
		return opened, p.readStoreID(ctx, opened)
	}
	current, latest, err := opened.Version(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case current == 0:
		return nil, errors.New("the store has no tables yet, and store.migrate is off: run `seckill migrate` first")
	case current < latest:
		return nil, fmt.Errorf("the store's tables are of version %d, this program needs %d, and store.migrate is off: run `seckill migrate` first", current, latest)
	}
	return opened, p.readStoreID(ctx, opened)
}

func (p *parts) readStoreID(ctx context.Context, opened *storesql.Store) (err error) {
	p.storeID, err = opened.Identity(ctx)
	return err
}

// reach opens a part. One that is shared may be starting as well: it is tried
// for a while.
func (p *parts) reach(ctx context.Context, what string, shared bool, open func(context.Context) error) error {
	if !shared {
		return open(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	ticker := time.NewTicker(reachPause)
	defer ticker.Stop()
	var cause error // of the last try that was not cut short
	for try := 1; ; try++ {
		err := open(ctx)
		if err == nil || settled(err) {
			return err
		}
		if cause == nil || ctx.Err() == nil {
			cause = err
		}
		if try == 1 {
			p.log.Warn("waiting for "+what, "at_most", p.patience, "error", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s was not reached within %s: %w", what, p.patience, cause)
		case <-ticker.C:
		}
	}
}

// settled reports whether a part is there and says what an operator has to
// change: to wait would only hide it.
func settled(err error) bool {
	if background.CertificateRefused(err) {
		return true
	}
	for _, final := range []error{
		redisclient.ErrSentinel, redisclient.ErrNoSentinel, ledgerredis.ErrEvicts, ledgerredis.ErrRefused, onetimeredis.ErrRefused, storesql.ErrRefused, storesql.ErrUntrusted,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// openMemory opens the embedded ledger.
func (p *parts) openMemory(ctx context.Context) error {
	opened, err := ledgermem.Open(ctx, filepath.Join(p.cfg.DataDir, "journal.db"), ledgermem.Options{
		Logger: p.log, OnCommit: p.metrics.Commit,
	})
	if err != nil {
		return err
	}
	p.base, p.embedded, p.queue, p.onetime = opened, opened, opened.Queue(), onetimemem.New(p.now)
	return nil
}
