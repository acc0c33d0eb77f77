package app

import (
	"context"

	"seckill"

	"seckill/internal/recovery"
)

// buildPromises wires what remembers this instance's unconfirmed answers.
func (p *parts) buildPromises() {
	p.promises = recovery.NewBook(recovery.BookOptions{
		Store: p.store, Adopter: &recovery.Adopter{Store: p.store, Lanes: p.lanes, Now: p.clock.Now, Gatherer: p.mover, ExpireAfter: p.cfg.Order.ExpireAfter},
		Terms: func(product uint32) *seckill.Product {
			s, err := p.catalog.Look(context.Background(), product) // it has a deadline of its own
			if err != nil || s == nil {
				return nil
			}
			return s.Terms()
		},
		Journal: p.journal, Ledger: p.ledger, OnMissing: p.promisesMissing, MaxPromises: p.mostPromises(),
		ExpireAfter: p.cfg.Order.ExpireAfter, Logger: p.log,
		Meter: p.metrics, Alerts: p.alerter,
	})
	p.metrics.Remembered(p.promises.Len)
}

// mostPromises is how many promises are remembered; 0 means the usual bound.
func (p *parts) mostPromises() int {
	if p.journal != nil {
		return recovery.DefaultMaxPromises
	}
	return 0
}
