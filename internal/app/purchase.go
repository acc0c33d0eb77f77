package app

import (
	"log/slog"
	mathrand "math/rand/v2"

	"seckill/internal/alert"
	"seckill/internal/metrics"
	"seckill/internal/purchase"
	"seckill/internal/recovery"
)

// buildStage wires what sells: the purchase stage.
func (p *parts) buildStage() {
	opt := purchase.Options{
		QueueSize: p.cfg.Purchase.QueueSize, MaxBatch: p.cfg.Purchase.MaxBatch, Timeout: p.cfg.PurchaseTimeout(),
		Lane: p.laneOptions(), Mover: p.mover, Random: mathrand.Uint64, Memory: p.memory, SharedStore: !p.alone(),
		DirectSeller: p.store, Store: p.store, ExpireAfter: p.cfg.Order.ExpireAfter,
		Promises: p.promises, Recoverer: p.requests, Reports: stageReports{p.metrics, p},
		Figures: purchase.Figures{
			ReserveClaims: p.metrics.ReserveClaims, ReserveSeconds: p.metrics.ReserveSeconds,
			SellClaims: p.metrics.SellClaims, SellSeconds: p.metrics.SellSeconds,
		},
	}
	if p.journal != nil { // no interface around a nil journal
		opt.Journal = p.journal
	}
	p.stage = purchase.New(p.ledger, p.clock, opt)
}

// stageReports takes what the stage could not do to metrics, log and alerts.
type stageReports struct {
	*metrics.Metrics
	parts *parts
}

// SellFailed logs why the store could not decide a batch.
func (r stageReports) SellFailed(product uint32, err error) {
	r.parts.complaints.Say(slog.LevelWarn, "sell", "the store has not decided claims; their buyers were told busy", "product", product, "error", err)
}

// NotKept lists promises that have become failed orders.
func (r stageReports) NotKept(product uint32, failed []recovery.FailedPromise) {
	if lost := recovery.LogFailedPromises(r.parts.log, product, failed); lost != nil {
		r.parts.alerter.Raise(alert.NotKept, product, lost)
	}
}
