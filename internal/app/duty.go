package app

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/background"
	"seckill/internal/config"
	"seckill/internal/ledger"
	"seckill/internal/ledger/transfer"
	"seckill/internal/metrics"
	"seckill/internal/order"
	"seckill/internal/sale"
	"seckill/internal/worker"
)

// Duties that others wake, by the names that instances call them.
const (
	dutyKeep      = "keep"
	dutyInstruct  = "instruct"
	dutyPromise   = "promise"
	dutyRelease   = "release"
	dutyRefund    = "refund"
	dutyReconcile = "reconcile"
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
	reconcileFirst = 30 * time.Second // a crowd may be waiting for a restart to end
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
	a.goLoop(func() { p.signals.troubles.watch(ctx, p.seeTo) })
	if a.has(RoleShop) {
		a.goLoop(func() { p.watch.Run(ctx) })
		a.goLoop(func() { p.returns.Run(ctx) })
	}
	if a.has(RoleWorker) {
		p.countPlan = p.newCountPlan() // the board tells it of a restart
	}
	p.runBoard(ctx, a.goLoop)
	loops := []*background.Loop{
		{Name: "catalog", Every: sale.CatalogEvery, First: sale.CatalogEvery, Timeout: 5 * time.Second, StopsSoon: true, Round: p.catalog.Refresh},
		{Name: "clock", Every: clockEvery, First: clockEvery, Timeout: 5 * time.Second, StopsSoon: true, Round: p.clock.Sync},
		{Name: "heartbeat", Every: beatEvery, Timeout: 5 * time.Second, Round: p.beat},
		{Name: "tidy", Every: tidyEvery, Timeout: 5 * time.Second, Round: p.tidy},
		{Name: dutyInstruct, Every: instructEvery, Timeout: roundTimeout, StopsSoon: true, Round: p.lifecycle.CarryInstructions},
		{Name: dutyPromise, Every: promiseEvery, Timeout: roundTimeout, Round: p.promises.Round},
	}
	if p.book.settings != nil {
		loops = append(loops, &background.Loop{Name: "settings", Every: settingsEvery, Timeout: 5 * time.Second, Round: p.checkSettings})
	}
	if p.cfg.SharedLedger() && a.has(RoleShop) {
		loops = append(loops, &background.Loop{Name: "witness", Every: witnessEvery, Timeout: witnessTimeout, Round: p.checkWitness})
	}
	if p.keys != nil && a.has(RoleShop) {
		loops = append(loops, p.keysDuty())
	}
	if p.cfg.SharedLedger() {
		loops = append(loops, p.takeoverDuties()...)
	}
	if a.has(RoleWorker) {
		loops = append(loops, p.once(p.duties())...)
		loops = append(loops, p.once(p.sinkDuties())...)
		if p.book.workers != nil && p.cfg.Worker.RatePerSecond > 0 {
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
		p.signals.bind(loop)
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

// tidy gives up what this instance keeps for sales that are over: who ended
// them, or announced their end, may have been another.
func (p *parts) tidy(context.Context) error {
	known, selling := make(map[uint32]bool), make(map[uint32]bool)
	now := p.clock.Now()
	for _, s := range p.catalog.All() {
		t := s.Terms()
		known[t.Group] = true
		if t.Window(now) != seckill.CodeEnded {
			selling[t.Group] = true
		} else {
			p.stage.Retire(s)
		}
	}
	for _, group := range p.memory.Groups() {
		if known[group] && !selling[group] {
			p.memory.Forget(group)
		}
	}
	p.rebuilds.tidy(time.Now())
	return nil
}

// shareRate divides worker.rate_per_second among the workers of all instances.
// While they cannot be counted, the last number stands.
func (p *parts) shareRate(ctx context.Context) error {
	workers, err := p.book.workers(ctx)
	if err != nil {
		return err
	}
	if p.workers.Share(workers) {
		p.log.Info("workers share worker.rate_per_second", "workers", workers)
	}
	return nil
}

// duties are the background duties of the worker role.
func (p *parts) duties() []*background.Loop {
	expirer := &order.Expirer{
		Store: p.store, WarnLead: p.cfg.Order.ExpireAfter / warnShare, OnExpired: p.expired(metrics.ExpiredByScan),
	}
	releaser := &order.Releaser{Store: p.store, Lanes: p.lanes, OnReleased: func(product uint32) {
		if s := p.catalog.Find(product); s != nil {
			s.ClearSoldOut()
		}
	}, OnTrouble: p.signals.raise}
	refunder := &order.Refunder{Store: p.store, Providers: p.providers, OnAlert: p.alerter.Raise}
	finisher := &transfer.Finisher{Mover: p.mover, Products: p.recentTerms}
	retrier := worker.NewRetrier(p.workers[0])
	return []*background.Loop{
		{Name: dutyKeep, Every: keepEvery, Next: p.keeper.Next, Timeout: roundTimeout, Round: p.keeper.Round},
		{Name: dutyRelease, Every: releaseEvery, Timeout: roundTimeout, Round: releaser.Round},
		{Name: dutyRefund, Every: refundEvery, Timeout: roundTimeout, Round: refunder.Round},
		{Name: "expire", Every: expireEvery, Timeout: roundTimeout, Round: expirer.Round},
		{Name: "climb", Every: climbEvery, Timeout: roundTimeout, Round: retrier.Round},
		{Name: "stock", Every: stockEvery, Timeout: roundTimeout, Round: func(ctx context.Context) error {
			return p.lifecycle.FinishStockChanges(ctx, stockPerRound)
		}},
		{Name: "finish", Every: finishEvery, Timeout: roundTimeout, Round: finisher.Round},
		{Name: dutyReconcile, Every: reconcileLook, First: reconcileLook, Timeout: 10 * time.Minute, Round: p.countPlan.round},
	}
}

// newCounter is what counts sales.
func (p *parts) newCountPlan() *countPlan {
	return &countPlan{
		uncounted: p.store.UncountedEnds, recent: p.recentSales, now: time.Now,
		every: p.cfg.Reconcile.Every, next: time.Now().Add(min(p.cfg.Reconcile.Every, reconcileFirst)),
		count: func(ctx context.Context, product uint32) (bool, error) {
			report, err := p.count(ctx, product)
			if seckill.CodeNotFound.In(err) {
				return true, nil // it was deleted meanwhile
			}
			return report.Balanced != nil, err
		},
	}
}

// count is the regular count of a sale. A ledger that does not add up is always
// rebuilt; rows of the store are mended if the operator allows it.
func (p *parts) count(ctx context.Context, product uint32) (api.Report, error) {
	if p.cfg.Reconcile.Repair == config.RepairSafe {
		return p.reconciler.Run(ctx, product, true, "system")
	}
	return p.reconciler.Rebuild(ctx, product, "system")
}

// beat tells the ledger what every lane of an open sale has heard. A lane that
// it finishes is dropped, and beats no more. What a part of the ledger answered
// counts, whatever another part did not.
func (p *parts) beat(ctx context.Context) error {
	beats := append(p.stage.Beats(), p.lanes.Beats(p.onSale)...)
	if p.cfg.SharedLedger() {
		beats = append(beats, p.silences.Beats()...)
	}
	if len(beats) == 0 {
		return nil
	}
	outcomes, err := p.ledger.Heartbeat(ctx, beats)
	p.silences.Heard(beats, outcomes)
	p.stage.Heard(beats, outcomes)
	p.lanes.Heard(beats, outcomes)
	for i, outcome := range outcomes {
		if outcome == ledger.OutcomeLost {
			p.signals.raise(beats[i].Shard.Product, ledger.ErrLost)
		}
	}
	return err
}

// onSale reports whether a product's sale has not ended.
func (p *parts) onSale(product uint32) bool {
	s := p.catalog.Find(product)
	return s != nil && s.Terms().Window(p.clock.Now()) != seckill.CodeEnded
}
