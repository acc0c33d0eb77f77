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
	"seckill/internal/onetime"
	"seckill/internal/onetime/onetimemem"
	"seckill/internal/onetime/onetimeredis"
	"seckill/internal/queue"
	"seckill/internal/store/storesql"
)

const (
	// reachDeadline is how long a start waits for Redis and MySQL, which may be
	// starting too; reachPause, between two tries.
	reachDeadline = 30 * time.Second
	reachPause    = 500 * time.Millisecond
)

// book is a ledger with the sides of it that the port does not have: they
// belong to the adapter.
type book struct {
	ledger ledger.Ledger
	queue  queue.Queue
	ping   func(ctx context.Context) error
	close  func(ctx context.Context) error
	// spent is where the ledger is, so that instances which share one share it.
	spent onetime.Register
	// eachBuyer visits whom the ledger remembers of the groups. One that cannot
	// be read, as the ledger is damaged or a part of it away, is told, and the
	// others are visited.
	eachBuyer func(ctx context.Context, groups []ledgerredis.Group, visit func(group uint32, buyer string), unread func(group uint32, err error)) error
	// fence puts a barrier behind what a shared ledger has told instances, and says
	// in how many places, and whether some of it may never be heard; nil where
	// there is nobody to tell.
	fence func(ctx context.Context, barrier uint64) (places int, anew bool, err error)
	// journal is the size of the embedded journal; nil where there is none.
	journal func() (rows, bytes int64)
	// outbox is the state of the streams; nil where there are none.
	outbox func(ctx context.Context) (metrics.Outbox, error)
	// workers counts those of all instances that are alive; nil where there are no
	// other instances.
	workers func(ctx context.Context) (int, error)
	// settings looks whether a shared ledger still keeps what it is told; nil
	// where nobody could change that.
	settings func(ctx context.Context) error
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
		if err := p.holdLedger(ctx, opened); err != nil {
			return err
		}
	}
	switch p.cfg.Ledger.Kind {
	case config.LedgerRedis:
		p.book, err = p.openRedis(ctx)
	default:
		p.book, err = p.openMemory(ctx)
	}
	if err != nil {
		return fmt.Errorf("open the ledger: %w", err)
	}
	p.ledger, p.queue = p.book.ledger, p.book.queue
	p.storeProbe, p.ledgerProbe = newProbe(p.store.Ping), newProbe(p.book.ping)
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
func (p *parts) openMemory(ctx context.Context) (book, error) {
	opened, err := ledgermem.Open(ctx, filepath.Join(p.cfg.DataDir, "journal.db"), ledgermem.Options{
		Logger: p.log, OnCommit: p.metrics.Commit,
	})
	if err != nil {
		return book{}, err
	}
	return book{
		ledger: opened, queue: opened.Queue(), ping: opened.Ping, close: opened.Shutdown,
		spent: onetimemem.New(p.now),
		eachBuyer: func(ctx context.Context, groups []ledgerredis.Group, visit func(group uint32, buyer string), _ func(uint32, error)) error {
			wanted := make(map[uint32]bool, len(groups))
			for _, g := range groups {
				wanted[g.ID] = true
			}
			return opened.EachBuyer(ctx, func(group uint32, buyer string) {
				if wanted[group] {
					visit(group, buyer)
				}
			})
		},
		journal: opened.JournalSize,
	}, nil
}
