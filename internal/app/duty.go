package app

import (
	"context"
	"time"

	"seckill/internal/background"
	"seckill/internal/ledger/transfer"
	"seckill/internal/metrics"
	"seckill/internal/order"
	"seckill/internal/sale"
	"seckill/internal/worker"
)

// How often the duties look by themselves; most are woken earlier.
const (
	keepEvery      = time.Second
	releaseEvery   = time.Second
	refundEvery    = 2 * time.Second
	expireEvery    = time.Second
	climbEvery     = time.Second
	stockEvery     = 2 * time.Second
	finishEvery    = time.Second
	beatEvery      = time.Second
	clockEvery     = 10 * time.Second
	tidyEvery      = time.Second
	promiseEvery   = time.Second
	instructEvery  = time.Second
	settingsEvery  = 10 * time.Second
	witnessEvery   = time.Second
	paceEvery      = time.Second
	witnessTimeout = 5 * time.Second
	reconcileLook  = 10 * time.Second // for ends whose signal was lost
	roundTimeout   = 30 * time.Second
	stockPerRound  = 100
	// warnShare is the part of an order's time to pay at whose beginning
	// order.expiring is written: the last sixth, 5 of 30 minutes.
	warnShare = 6
)

// startLoops starts everything that runs in the background.
func (a *App) startLoops(ctx context.Context) {
	p := a.parts
	a.goLoop(func() { p.alerter.Run(ctx) })
	a.goLoop(func() { p.supervisor.Run(ctx) })
	if a.has(RoleShop) {
		a.goLoop(func() { p.watch.Run(ctx) })
		a.goLoop(func() { p.returns.Run(ctx) })
	}
	p.notifier.Run(ctx, a.goLoop)
	loops := []*background.Loop{
		{Name: "catalog", Every: sale.CatalogEvery, First: sale.CatalogEvery, Timeout: 5 * time.Second, StopsSoon: true, Round: p.catalog.Refresh},
		{Name: "clock", Every: clockEvery, First: clockEvery, Timeout: 5 * time.Second, StopsSoon: true, Round: p.clock.Sync},
		{Name: "heartbeat", Every: beatEvery, Timeout: 5 * time.Second, Round: p.heartbeat.Round},
		{Name: "tidy", Every: tidyEvery, Timeout: 5 * time.Second, Round: p.janitor.Round},
		{Name: background.DutyInstruct, Every: instructEvery, Timeout: roundTimeout, StopsSoon: true, Round: p.lifecycle.CarryInstructions},
		{Name: background.DutyPromise, Every: promiseEvery, Timeout: roundTimeout, Round: p.promises.Round},
	}
	if p.redis != nil {
		loops = append(loops, &background.Loop{Name: "settings", Every: settingsEvery, Timeout: 5 * time.Second, Round: p.checkSettings})
	}
	if p.cfg.SharedLedger() && a.has(RoleShop) {
		loops = append(loops, &background.Loop{Name: "witness", Every: witnessEvery, Timeout: witnessTimeout, Round: p.witness.CheckWitness})
	}
	if p.keys != nil && a.has(RoleShop) {
		loops = append(loops, p.keysDuty())
	}
	if p.cfg.SharedLedger() {
		loops = append(loops, p.takeoverDuties()...)
	}
	if a.has(RoleWorker) {
		loops = append(loops, p.once(p.workerDuties())...)
		loops = append(loops, p.once(p.sinkDuties())...)
		if p.redis != nil && p.cfg.Worker.RatePerSecond > 0 {
			loops = append(loops, &background.Loop{Name: "pace", Every: paceEvery, Timeout: paceEvery, Round: p.shareRate})
		}
		a.goLoop(func() { p.workers.Run(ctx) })
		if p.line != nil {
			a.goLoop(func() { p.line.Run(ctx) })
		}
		if p.expiry != nil {
			a.goLoop(func() { p.expiry.Run(ctx) })
		}
	}
	for _, loop := range loops {
		loop.Logger, loop.OnRound = p.log, p.metrics.Duty
		p.metrics.ExpectDuty(loop.Name)
		loop.Ready()
		p.duties.Bind(loop)
		a.goLoop(func() { loop.Run(ctx) })
	}
}

func (a *App) goLoop(run func()) { a.loops.Go(run) }

// once makes duties run once in the cluster, where there may be one: under a
// lease of the store that instances share. What another has to do now it is
// told, and finds by itself with its next round.
func (p *parts) once(loops []*background.Loop) []*background.Loop {
	if p.cfg.SharedStore() {
		for _, loop := range loops {
			loop.Lease, loop.Holder = p.store, p.name
		}
	}
	return loops
}

// shareRate divides worker.rate_per_second among the workers of all instances.
// While they cannot be counted, the last number stands.
func (p *parts) shareRate(ctx context.Context) error {
	workers, err := p.redis.Workers(ctx)
	if err != nil {
		return err
	}
	if p.workers.Share(workers) {
		p.log.Info("workers share worker.rate_per_second", "workers", workers)
	}
	return nil
}

// workerDuties are the background duties of the worker role.
func (p *parts) workerDuties() []*background.Loop {
	expirer := &order.Expirer{
		Store: p.store, WarnLead: p.cfg.Order.ExpireAfter / warnShare, OnExpired: p.expired(metrics.ExpiredByScan),
	}
	releaser := &order.Releaser{Store: p.store, Lanes: p.lanes, OnReleased: func(product uint32) {
		if s := p.catalog.Find(product); s != nil {
			s.ClearSoldOut()
		}
	}, OnTrouble: p.requests.RequestRecovery}
	refunder := &order.Refunder{Store: p.store, Providers: p.providers, OnAlert: p.alerter.Raise}
	finisher := &transfer.Finisher{Mover: p.mover, Products: p.lifecycle.RecentTerms}
	retrier := worker.NewRetrier(p.workers[0])
	return []*background.Loop{
		{Name: background.DutyKeep, Every: keepEvery, Next: p.keeper.Next, Timeout: roundTimeout, Round: p.keeper.Round},
		{Name: background.DutyRelease, Every: releaseEvery, Timeout: roundTimeout, Round: releaser.Round},
		{Name: background.DutyRefund, Every: refundEvery, Timeout: roundTimeout, Round: refunder.Round},
		{Name: "expire", Every: expireEvery, Timeout: roundTimeout, Round: expirer.Round},
		{Name: "climb", Every: climbEvery, Timeout: roundTimeout, Round: retrier.Round},
		{Name: "stock", Every: stockEvery, Timeout: roundTimeout, Round: func(ctx context.Context) error {
			return p.lifecycle.FinishStockChanges(ctx, stockPerRound)
		}},
		{Name: "finish", Every: finishEvery, Timeout: roundTimeout, Round: finisher.Round},
		{Name: background.DutyReconcile, Every: reconcileLook, First: reconcileLook, Timeout: 10 * time.Minute, Round: p.counts.Round},
	}
}
