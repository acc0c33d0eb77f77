package sale

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/stats"
)

// Stats are the product's figures now, from ledger, queue and store.
func (d *Desk) Stats(ctx context.Context, id uint32) (stats.Stats, error) {
	figures, err := d.store.Figures(ctx, id)
	if err != nil {
		return stats.Stats{}, err
	}
	p := &figures.Product
	s := stats.Stats{
		ProductID: id, State: p.State.String(), Epoch: p.Epoch, Offered: p.Offered,
		Store: stats.Store{
			Stock: p.Stock, Pending: figures.Pending, Paid: figures.Paid,
			Cancelled: figures.Cancelled, Failed: figures.Failed, Refunded: figures.Refunded,
		},
		Fallback: stats.Units{Available: p.ShareLeft, Reserved: figures.Fallback},
		Requests: map[string]int64{},
	}
	if p.Strategy == seckill.StrategyDirect {
		s.Fallback = stats.Units{Available: p.Stock, Reserved: figures.Pending + figures.Paid}
	}
	for i := range p.LedgerShards() {
		f, err := d.ledger.Read(ctx, ledger.ShardOf(p, i))
		if err != nil {
			return s, seckill.Errorf(seckill.CodeBusy, "read ledger: %w", err)
		}
		s.Ledger.Available += f.Unsold() // in transit is free as well
		s.Ledger.Reserved += f.Marked
	}
	queued, err := d.queue.Stats(ctx, id)
	if err != nil {
		return s, seckill.Errorf(seckill.CodeBusy, "read queue: %w", err)
	}
	s.Queue.Depth = queued.Reservations + figures.Letters
	s.Queue.OldestMS = age(d.clock.Now(), queued.Oldest, figures.OldestLetter)
	if on := d.catalog.Find(id); on != nil {
		s.Requests = on.Requests()
	}
	return s, nil
}

// age is how long the oldest of some instants is ago, in milliseconds; zero
// instants do not count.
func age(now time.Time, instants ...time.Time) int64 {
	var oldest int64
	for _, at := range instants {
		if !at.IsZero() {
			oldest = max(oldest, now.Sub(at).Milliseconds())
		}
	}
	return oldest
}
