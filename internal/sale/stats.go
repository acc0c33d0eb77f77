package sale

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

const (
	// storeAnswers and ledgerAnswers bound how long Stats waits for a store and a
	// ledger that are away: with either of them the answer comes within a second.
	storeAnswers  = 400 * time.Millisecond
	ledgerAnswers = 500 * time.Millisecond
)

// Stats are the product's figures now, from ledger, queue and store.
func (d *Lifecycle) Stats(ctx context.Context, id uint32) (api.Stats, error) {
	tally, err := d.tally(ctx, id)
	if err != nil {
		return api.Stats{}, err
	}
	p, counted := &tally.Product, &tally.Counted
	d.catalog.waiting.apply(p)
	s := api.Stats{
		ProductID: id, Test: p.Test, State: p.State.String(), Status: d.Status(p), Seller: seller(p), Epoch: p.Epoch, Offered: p.Offered,
		Store: api.StoreFigures{
			Stock: p.Stock, Pending: counted.Pending, Paid: counted.Paid,
			Cancelled: counted.Cancelled, Failed: counted.Failed, Refunded: counted.Refunded,
		},
		Requests: map[string]int64{},
	}
	if err := d.countPromised(ctx, &tally, &s); err != nil {
		return s, err
	}
	if on := d.catalog.Find(id); on != nil {
		s.Requests = on.Requests()
	}
	return s, nil
}

// Status is what shoppers see of a product now, as far as this instance knows.
func (d *Lifecycle) Status(p *seckill.Product) seckill.Status {
	return d.catalog.Find(p.ID).Status(p, d.clock.Now())
}

// seller is who sells a product, as operators read it. A takeover that is not
// complete sells nothing.
func seller(p *seckill.Product) string {
	switch {
	case !p.HasLedger():
		return api.SellerStore
	case p.TakingOver():
		return api.SellerMoving
	}
	return p.Seller.String()
}

// tally reads what the store says of the product.
func (d *Lifecycle) tally(ctx context.Context, id uint32) (store.Tally, error) {
	ctx, cancel := context.WithTimeout(ctx, storeAnswers)
	defer cancel()
	return d.store.Tally(ctx, id)
}

// countPromised adds what ledger and queue have.
func (d *Lifecycle) countPromised(ctx context.Context, tally *store.Tally, s *api.Stats) error {
	ctx, cancel := context.WithTimeout(ctx, ledgerAnswers)
	defer cancel()
	p := &tally.Product
	for i := range p.LedgerShards() {
		f, err := d.ledger.Read(ctx, ledger.ShardOf(p, i))
		if err != nil {
			return seckill.Errorf(seckill.CodeBusy, "read ledger: %w", err)
		}
		s.Ledger.Available += f.Unsold() // in transit is free as well
		s.Ledger.Reserved += f.Marked
	}
	queued, err := d.queue.Stats(ctx, p.ID)
	if err != nil && !p.SoldByStore() { // which has all that matters in the store
		return seckill.Errorf(seckill.CodeBusy, "read queue: %w", err)
	}
	s.Queue.Depth = queued.Reservations + tally.Letters
	s.Queue.OldestMS = age(d.clock.Now(), queued.Oldest, tally.OldestLetter)
	return nil
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
