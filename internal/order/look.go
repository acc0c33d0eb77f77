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

// searchedMost is how many entries of each stream are looked through for an
// order: at some twenty claims each, 40,000 orders. A stream may have many more,
// and a search must not burden a ledger whose workers are far behind.
const searchedMost = 2048

// Look reads an order for the operator, who does not know its buyer: from the
// store, else from the ladder, else from the queue, as far as that is looked
// through. While anything of its product waits, an order that is in none of them
// is busy, never not_found.
func (d *Desk) Look(ctx context.Context, no seckill.OrderNo) (seckill.Order, error) {
	found, err := d.Store.Order(ctx, no)
	if !seckill.CodeNotFound.In(err) {
		return found, err
	}
	queued, err := d.search(ctx, no)
	// The store has the last word: the order may have been confirmed since.
	found, missing := d.Store.Order(ctx, no)
	if !seckill.CodeNotFound.In(missing) || seckill.CodeNotFound.In(err) {
		return found, missing
	}
	return queued, err
}

// move has the store move an order. One that it does not have, and may get, is
// not not_found.
func (d *Desk) move(ctx context.Context, no seckill.OrderNo, name string, do func() (seckill.Order, error)) (seckill.Order, error) {
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

// search finds an order that the store does not have on the ladder or in the
// queue. It is busy and not_found as promised says.
func (d *Desk) search(ctx context.Context, no seckill.OrderNo) (seckill.Order, error) {
	letter, err := d.promised(ctx, no)
	if err == nil {
		o := letterOrder(&letter)
		o.Reason = letter.Reason // what the operator can mend
		return o, nil
	}
	if !errors.Is(err, errMayWait) {
		return seckill.Order{}, err
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	// Of a search that fails no more is known than before.
	if entry, found, _ := d.Queue.Find(ctx, no.ProductID(), no, searchedMost); found {
		return store.Items(&entry)[0].Order(), nil
	}
	return seckill.Order{}, err
}

// awaited is busy of money whose order the store does not have yet. Money of a
// number that nobody has promised is held up by no more than what waits of its
// product now.
func (d *Desk) awaited(ctx context.Context, orderNo string) error {
	no, err := seckill.ParseOrderNo(orderNo)
	if err != nil {
		return nil // no number of ours
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

// promised looks for an order that the store does not have where it would be
// else: it is its letter, or busy while it may wait for a worker or its ledger
// is not whole. After not_found the store has it, if anybody has promised it:
// the store is to be asked again.
func (d *Desk) promised(ctx context.Context, no seckill.OrderNo) (store.Letter, error) {
	ctx, cancel := d.brief(ctx)
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
		// A letter tells more than that others wait.
		if letter, none := d.Store.LetterByOrder(ctx, no); none == nil {
			return letter, nil
		}
		return store.Letter{}, err
	}
	letter, err := d.Store.LetterByOrder(ctx, no)
	if !seckill.CodeNotFound.In(err) {
		return letter, err
	}
	// A letter of an older epoch may have been adopted, back into the queue.
	if err := d.noneWaits(ctx, s.ID); err != nil {
		return store.Letter{}, err
	}
	all := make([]int, shards)
	for i := range all {
		all[i] = i
	}
	return store.Letter{}, d.missingFrom(ctx, s, all...)
}

// noneWaits is busy while a claim of the product waits for a worker, and if
// that cannot be told.
func (d *Desk) noneWaits(ctx context.Context, product uint32) error {
	waiting, err := d.Queue.Stats(ctx, product)
	switch {
	case err != nil:
		return seckill.Errorf(seckill.CodeBusy, "read queue: %w", deaf{err})
	case waiting.Reservations > 0:
		return errMayWait
	}
	return nil
}
