package app

import (
	"context"
	"errors"

	"seckill/internal/alert"
	"seckill/internal/grace"
	"seckill/internal/ledger"
	"seckill/internal/worker"
)

// checkTenure tells when the ledger has become another store's: Redis was
// emptied, and another deployment under the same prefix came first. Nothing of
// the other is touched, whoever tries (ledger.Ledger); ledger products are busy
// and the instance is not ready until an operator parts the two. A ledger that
// is then nobody's is bound again, whatever the other has left in it.
func (p *parts) checkTenure(ctx context.Context) error {
	err := p.ledger.Rebind(ctx)
	if errors.Is(err, ledger.ErrOtherStore) {
		p.alerter.Raise(alert.OtherStore, 0, err)
	}
	return err
}

// work runs a worker. While the ledger is another store's it rests, and it
// joins the queue again when that is over: its orders are then rebuilt.
func (p *parts) work(ctx context.Context, w *worker.Worker) {
	for {
		err := w.Run(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if !errors.Is(err, ledger.ErrOtherStore) {
			p.alerter.Raise(alert.WorkerEnded, 0, err)
			return
		}
		p.log.Error("the worker rests: the queue is another store's", "error", err)
		for errors.Is(err, ledger.ErrOtherStore) && ctx.Err() == nil {
			_ = grace.Pause(ctx, tenureEvery)
			err = p.ledger.CheckStore(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		p.log.Info("the worker joins the queue again")
	}
}
