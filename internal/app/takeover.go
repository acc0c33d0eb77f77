package app

import (
	"context"
	"fmt"
	"time"

	"seckill/internal/alert"
	"seckill/internal/background"
	"seckill/internal/sale"
	"seckill/internal/store"
)

const (
	// instanceTTL is how long a takeover waits for an instance that was killed.
	instanceTTL   = 5 * time.Second
	instanceEvery = time.Second
	handoverEvery = 500 * time.Millisecond
	takeoverEvery = time.Second
	// handoverTimeout bounds one round of handing over: the outbox may be long.
	handoverTimeout = 2 * time.Minute
	returnTimeout   = recoverTimeout
	// leaveTimeout bounds how long a stop writes promises to the store.
	leaveTimeout = 3 * time.Second
)

// keepInstance renews the lease of this instance, and says which ledgers do not
// answer it. The rate limits are divided among the shops that have a lease and a
// ledger that answers. A shop that cannot know how many these are keeps its last
// number: while store or ledger are away, and, rather than a lower one, when its
// own lease had lapsed, as those of the others may have. An instance that had no
// lease reads the epochs again: it may have missed a takeover.
func (p *parts) keepInstance(ctx context.Context) error {
	if !p.cfg.SharedLedger() {
		return nil
	}
	silent := p.silences.For(p.cfg.Ledger.TakeoverAfter)
	sells := p.isShop && len(silent) == 0
	shops, lapsed, err := p.store.KeepInstance(ctx, store.Instance{Name: p.name, Shop: sells, Silent: silent}, instanceTTL)
	if err != nil {
		return fmt.Errorf("renew the lease of this instance: %w", err)
	}
	if sells && (!lapsed || shops > int(p.shops.Load())) {
		p.shareLimits(shops)
	}
	if lapsed {
		return p.catalog.Refresh(ctx)
	}
	return nil
}

// takeoverDuties are the duties of an instance whose ledger can fail apart from
// the store. Takeovers are begun and ended by one of them, under a lease.
func (p *parts) takeoverDuties() []*background.Loop {
	handover := &sale.Handover{Lifecycle: p.lifecycle, Instance: p.name, InHand: p.workers.InHand}
	takeovers := &sale.Takeovers{Lifecycle: p.lifecycle, ReturnAfter: p.cfg.Ledger.ReturnAfter, Now: time.Now, OnStarted: p.tellTakenOver}
	loops := []*background.Loop{
		{Name: "instance", Every: instanceEvery, Timeout: instanceTTL / 2, Round: p.keepInstance},
		{Name: "handover", Every: handoverEvery, Timeout: handoverTimeout, Round: handover.Round},
	}
	return append(loops, p.once([]*background.Loop{
		{Name: "takeover", Every: takeoverEvery, Timeout: roundTimeout, Round: takeovers.Start},
		{Name: "return", Every: takeoverEvery, Timeout: returnTimeout, Round: takeovers.Return},
	})...)
}

// tellTakenOver tells an operator that the store sells instead of the ledger.
func (p *parts) tellTakenOver(products []uint32) {
	p.alerter.Raise(alert.TakenOver, 0, fmt.Errorf("Redis has answered no instance for %s; the store sells what is left of %s, and perhaps others (seckill_taken_over); start Redis again",
		p.cfg.Ledger.TakeoverAfter, listed(products)))
}

// writePromises writes what this instance has promised and nobody has written yet,
// before it leaves: while the ledger is away, no other instance knows of it.
func (p *parts) writePromises(ctx context.Context) {
	if !p.cfg.SharedLedger() || p.promises == nil || p.promises.Len() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if err := p.promises.WriteAll(ctx); err != nil {
		p.log.Warn("promises not written before the stop; the outbox has them", "promises", p.promises.Len(), "error", err)
	}
}

// leaveInstance ends the lease of this instance: it promises nothing any more.
func (p *parts) leaveInstance(ctx context.Context) {
	if !p.cfg.SharedLedger() || p.store == nil {
		return
	}
	if err := p.store.LeaveInstance(ctx, p.name); err != nil {
		p.log.Debug("lease of this instance not ended; it will run out", "error", err)
	}
}
