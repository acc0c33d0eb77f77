package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"seckill/internal/alert"
	"seckill/internal/config"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgermem"
	"seckill/internal/metrics"
	"seckill/internal/queue"
	"seckill/internal/store/storesql"
)

// book is a ledger with the sides of it that the port does not have: they
// belong to the adapter.
type book struct {
	ledger ledger.Ledger
	queue  queue.Queue
	ping   func(ctx context.Context) error
	close  func(ctx context.Context) error
	// eachBuyer visits whom the ledger remembers.
	eachBuyer func(ctx context.Context, visit func(group uint32, buyer string)) error
	// journal is the size of the embedded journal; nil where there is none.
	journal func() (rows, bytes int64)
}

// openData opens store and ledger.
func (p *parts) openData(ctx context.Context, opt Options) (err error) {
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
	p.alerter = alert.New(p.cfg.Alert.WebhookURL, p.log, func(kind string) { p.metrics.Alerts.WithLabelValues(kind).Inc() })
	if err := p.openStore(ctx); err != nil {
		return err
	}
	if p.cfg.Ledger.Kind == config.LedgerRedis {
		return fmt.Errorf("ledger.kind %q is not in this build", p.cfg.Ledger.Kind)
	}
	p.book, err = p.openMemory(ctx)
	if err != nil {
		return fmt.Errorf("open the ledger: %w", err)
	}
	p.ledger, p.queue = p.book.ledger, p.book.queue
	return nil
}

func (p *parts) openStore(ctx context.Context) error {
	opened, err := storesql.Open(ctx, p.cfg.StoreDSN(), storesql.Options{Logger: p.log, MaxConns: p.cfg.Store.MaxConns})
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	p.store = opened // not before: a nil *Store in the interface would look open
	if err := p.store.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate the store: %w", err)
	}
	return nil
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
		ledger: opened, queue: opened.Queue(), ping: opened.Ping, close: opened.Shutdown, eachBuyer: opened.EachBuyer,
		journal: func() (rows, bytes int64) {
			stats := opened.JournalStats()
			return stats.Rows, stats.Bytes
		},
	}, nil
}
