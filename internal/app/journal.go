package app

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"seckill/internal/alert"
	"seckill/internal/queue"
	"seckill/internal/recovery"
)

const (
	// journalDir is the journal's folder in data_dir.
	journalDir = "promises"
	// replayTimeout bounds how long a start asks for what the journal holds before
	// it sells. A million promises take about 10 s; the rounds ask for the rest.
	replayTimeout  = 20 * time.Second
	journalRefresh = 5 * time.Second
)

// openJournal opens the journal of promises. An instance that sells nothing
// promises nothing, and the embedded ledger syncs a journal of its own.
func (p *parts) openJournal(opt Options) (err error) {
	p.metrics.PromiseJournal(p.journalFigures)
	dir := filepath.Join(p.cfg.DataDir, journalDir)
	if !p.cfg.Promise.Journal || !p.cfg.SharedLedger() || !slices.Contains(opt.Roles, RoleShop) {
		if recovery.JournalLeftIn(dir) {
			p.log.Warn("promises of an earlier start are in the journal and are not read: start once with promise.journal", "dir", dir)
		}
		return nil
	}
	p.journal, p.journaled, err = recovery.OpenJournal(recovery.JournalOptions{
		Dir: dir, Store: p.storeID, Logger: p.log,
		OnSync: p.metrics.JournalSync, OnFailure: func(err error) { p.alerter.Raise(alert.JournalFails, 0, err) },
	})
	if err != nil {
		return fmt.Errorf("open the journal of promises (promise.journal): %w", err)
	}
	return nil
}

// journalFigures are what metrics show of the journal; zeros without one, so
// that a rule sees them grow.
func (p *parts) journalFigures() (bytes, failures int64) {
	if p.journal == nil {
		return 0, 0
	}
	stats := p.journal.Stats()
	return stats.Bytes, stats.Failures
}

// loadJournal hands what a former life has left to the book.
func (p *parts) loadJournal() {
	promises := 0
	for i := range p.journaled {
		promises += len(p.journaled[i].Entry.Claims)
		p.promises.Load(p.journaled[i].Entry, p.journaled[i].At)
	}
	p.journaled = nil
	if promises > 0 {
		p.log.Info("promises of the journal loaded", "promises", promises)
	}
}

// replayJournal asks store and ledger for those promises before the first
// purchase.
func (p *parts) replayJournal(ctx context.Context) {
	if p.journal == nil || p.promises.Len() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	if err := p.promises.Replay(ctx); err != nil {
		p.log.Warn("promises of the journal not all checked before the start; they will be checked again", "error", err)
	}
}

// errJournaled says that a power cut took promises out of the ledger.
var errJournaled = fmt.Errorf("the journal of this instance has promises that the ledger no longer holds: %w", queue.ErrLost)

// promisesMissing has a product's ledger rebuilt that lacks promises of the
// journal, as a worker does whose store is short. Nothing more is sold from the
// old ledger when it returns.
func (p *parts) promisesMissing(ctx context.Context, product uint32, epoch uint64, _ int) error {
	if err := p.store.BeginRebuild(ctx, product, epoch); err != nil {
		return err
	}
	p.notifier.ProductChanged(product)
	p.requests.RequestRecovery(product, errJournaled)
	refreshing, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalRefresh)
	defer cancel()
	return p.catalog.Refresh(refreshing)
}

// closeJournal gives the folder up, after the last promise.
func (p *parts) closeJournal() error {
	if p.journal == nil {
		return nil
	}
	if err := p.journal.Close(); err != nil {
		return fmt.Errorf("close the journal of promises: %w", err)
	}
	return nil
}
