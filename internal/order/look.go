package order

import (
	"context"
	"errors"

	"seckill"
	"seckill/internal/store"
)

var (
	errMayWait = seckill.Errorf(seckill.CodeBusy, "the order may still be queued: purchases of its product wait to be written; ask again")
	errWaits   = seckill.Errorf(seckill.CodeBusy, "the order is still queued; ask again")
)

// maxSearched is how many entries of each stream a search reads: about 40,000
// orders at twenty claims each. A stream may have many more, and a search must
// not load a ledger whose workers are far behind.
const maxSearched = 2048

// Look reads an order for the operator, who does not know its buyer: from the
// store, the retry ladder, or the searched part of the queue. If it is in none
// of them while entries of its product wait, the answer is busy, never
// not_found.
func (d *Orders) Look(ctx context.Context, no seckill.OrderNo) (seckill.Order, error) {
	found, err := d.Store.Order(ctx, no)
	if !seckill.CodeNotFound.In(err) {
		return found, err
	}
	queued, err := d.search(ctx, no)
	// The store decides: the order may have been confirmed meanwhile.
	found, missing := d.Store.Order(ctx, no)
	if !seckill.CodeNotFound.In(missing) || seckill.CodeNotFound.In(err) {
		return found, missing
	}
	return queued, err
}

// move changes an order in the store. If the store does not have the order but
// may get it, the answer is not not_found.
func (d *Orders) move(ctx context.Context, no seckill.OrderNo, name string, do func() (seckill.Order, error)) (seckill.Order, error) {
	o, err := do()
	if !seckill.CodeNotFound.In(err) {
		return o, err
	}
	_, err = d.search(ctx, no)
	o, missing := do() // the store may have it by now
	switch {
	case !seckill.CodeNotFound.In(missing) || seckill.CodeNotFound.In(err):
		return o, missing
	case err == nil:
		return seckill.Order{}, tooEarly(name)
	}
	return seckill.Order{}, err
}

// search finds an order that is not in the store: on the retry ladder or in the
// queue. Otherwise it returns the error of promised.
func (d *Orders) search(ctx context.Context, no seckill.OrderNo) (seckill.Order, error) {
	letter, err := d.promised(ctx, no)
	if err == nil {
		o := letterOrder(&letter)
		o.Reason = letter.Reason // the operator can use it to fix the cause
		return o, nil
	}
	if !errors.Is(err, errMayWait) {
		return seckill.Order{}, err
	}
	ctx, cancel := withFirstShare(ctx)
	defer cancel()
	// If the search fails, nothing more is known than before.
	if entry, found, _ := d.Queue.Find(ctx, no.ProductID(), no, maxSearched); found {
		return store.Items(&entry)[0].Order(), nil
	}
	return seckill.Order{}, err
}

// checkNotQueued returns busy for money whose order may still be queued. Money
// of an unknown order number waits only for the entries of its product that are
// queued now.
func (d *Orders) checkNotQueued(ctx context.Context, orderNo string) error {
	no, err := seckill.ParseOrderNo(orderNo)
	if err != nil {
		return nil // not an order number of ours
	}
	if _, err = d.Store.Order(ctx, no); !seckill.CodeNotFound.In(err) {
		return err
	}
	_, err = d.promised(ctx, no)
	switch {
	case err == nil:
		return errWaits
	case !seckill.CodeNotFound.In(err):
		return err
	}
	return nil
}

// promised looks for an order that is not in the store. It returns the order's
// letter, if there is one. It returns busy while the order may wait for a
// worker, or while its ledger is incomplete. After not_found, read the store
// again: it has the order by then, if it was ever promised.
func (d *Orders) promised(ctx context.Context, no seckill.OrderNo) (store.Letter, error) {
	ctx, cancel := d.withReadDeadline(ctx)
	defer cancel()
	s, err := d.Catalog.Look(ctx, no.ProductID())
	if err != nil {
		return store.Letter{}, err
	}
	if s == nil || s.Terms().Epoch == 0 {
		return store.Letter{}, d.unopened(ctx, no.ProductID())
	}
	shards := s.Terms().LedgerShards()
	if shards == 0 {
		letter, err := d.Store.LetterByOrder(ctx, no)
		if seckill.CodeNotFound.In(err) {
			err = soldByStore(s.Terms())
		}
		return letter, err
	}
	if err := d.noneWaits(ctx, s.ID); err != nil {
		// A letter says more than "other entries wait".
		if letter, none := d.Store.LetterByOrder(ctx, no); none == nil {
			return letter, nil
		}
		return store.Letter{}, err
	}
	letter, err := d.Store.LetterByOrder(ctx, no)
	if !seckill.CodeNotFound.In(err) {
		return letter, err
	}
	// A letter of an older epoch may have been adopted meanwhile, and is in the
	// queue again.
	if err := d.noneWaits(ctx, s.ID); err != nil {
		return store.Letter{}, err
	}
	all := make([]int, shards)
	for i := range all {
		all[i] = i
	}
	return store.Letter{}, d.missingFrom(ctx, s, all...)
}

// noneWaits returns busy while a claim of the product waits for a worker, or if
// the queue does not answer.
func (d *Orders) noneWaits(ctx context.Context, product uint32) error {
	waiting, err := d.Queue.Stats(ctx, product)
	switch {
	case err != nil:
		return seckill.Errorf(seckill.CodeBusy, "read queue: %w", ledgerAway{err})
	case waiting.Reservations > 0:
		return errMayWait
	}
	return nil
}
