package app

import (
	"context"
	"time"

	"seckill/internal/background"
	"seckill/internal/recovery"
	"seckill/internal/sale"
)

const (
	instanceEvery = time.Second
	handoverEvery = 500 * time.Millisecond
	takeoverEvery = time.Second
	// handoverTimeout bounds one round of handing over: the outbox may be long.
	handoverTimeout = 2 * time.Minute
	returnTimeout   = recovery.RecoverTimeout
	// leaveTimeout bounds how long a stop writes promises to the store.
	leaveTimeout = 3 * time.Second
)

// takeoverDuties are the duties of an instance whose ledger can fail apart from
// the store. Takeovers are begun and ended by one of them, under a lease.
func (p *parts) takeoverDuties() []*background.Loop {
	handover := &sale.Handover{Lifecycle: p.lifecycle, Instance: p.name, InHand: p.workers.InHand}
	takeovers := &sale.Takeovers{Lifecycle: p.lifecycle, ReturnAfter: p.cfg.Ledger.ReturnAfter, After: p.cfg.Ledger.TakeoverAfter, Now: time.Now, Alerts: p.alerter}
	loops := []*background.Loop{
		{Name: "instance", Every: instanceEvery, Timeout: sale.InstanceTTL / 2, Round: p.membership.Keep},
		{Name: "handover", Every: handoverEvery, Timeout: handoverTimeout, Round: handover.Round},
	}
	return append(loops, p.once([]*background.Loop{
		{Name: "takeover", Every: takeoverEvery, Timeout: roundTimeout, Round: takeovers.Start},
		{Name: "return", Every: takeoverEvery, Timeout: returnTimeout, Round: takeovers.Return},
	})...)
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
