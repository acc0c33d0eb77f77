package purchase

import (
	"context"
	"sync"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/sale"
)

const (
	// recallTimeout bounds the look at what a repeated claim was promised.
	recallTimeout = 300 * time.Millisecond
	// recalledMost is how many promises are known to have been recalled already,
	// so that a shopper who keeps pressing the button costs one look.
	recalledMost = 4096
)

// recall remembers a promise that was found again by its key. Another instance
// may have made it, or this one without hearing of it, so the 202 that leaves
// now may be the only one, and has to survive the ledger like any other
// (protocol 3, step 1).
//
// What is remembered is the ledger's own entry: the claim as it was repeated
// may ask for another quantity, at another price. An order that is held and has
// no entry any more has its row, or its letter. Of one that is not held nothing
// can be said (found is false).
func (s *Stage) recall(shard ledger.Shard, buyer string, no seckill.OrderNo, deadline time.Time) (found bool, err error) {
	if s.opt.Remember == nil || s.recalled.has(no) {
		return true, nil
	}
	if latest := time.Now().Add(recallTimeout); deadline.After(latest) {
		deadline = latest
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	held, err := s.ledger.Held(ctx, shard, buyer)
	if err != nil {
		return false, errBusy // the ledger may have been lost just now: repeated once more, the claim finds out
	}
	for i := range held {
		if held[i].OrderNo != no {
			continue
		}
		if held[i].Entry.ProductID != 0 {
			s.opt.Remember(held[i].Entry)
		}
		s.recalled.add(no)
		return true, nil
	}
	return false, nil
}

// askAgain is about an order that the ledger has found by its key and does not
// hold. Either it is dead, and has its row: the ledger then still knows the key.
// Or the ledger was lost since it answered, and the order with it. The second
// call is numbered as the first was, and a ledger that has lost the first
// notices it (protocol 1): what it answers, it answers as the one that it was.
func (s *Stage) askAgain(b *batcher, claim *seckill.Claim, no seckill.OrderNo, deadline time.Time) (Bought, error) {
	bought, err := s.wait(b, claim, deadline)
	if err != nil || bought.OrderNo != no && bought.OrderNo != claim.OrderNo {
		return Bought{}, errBusy
	}
	if bought.OrderNo == no {
		s.recalled.add(no)
	}
	return bought, nil
}

// remembered answers a repeated key while the ledger cannot: with what this
// instance was the one to promise. The share, asked for it, would sell a second
// order for one key, and the first would have to fail (protocol 5).
//
// Another instance, which cannot know of the promise, may have sold that second
// order meanwhile, or a worker may have written the first; so the store's word
// comes before the memory's. If it has none, the promise stands as it was made.
func (s *Stage) remembered(on *sale.Sale, claim *seckill.Claim, deadline time.Time) (bought Bought, found bool) {
	no, found := s.opt.Promised(on.Terms().Group, claim.Buyer, claim.Key)
	if !found {
		return Bought{}, false
	}
	if row, found := s.stored(on, claim, deadline); found {
		return row, true
	}
	return Bought{no, seckill.OrderQueued}, true
}

// stored is the order that the store has under a repeated key, of a product
// with a fallback share. It may be another than the one that the ledger
// promised under it: then that one fails as a duplicate. That a buyer is over
// the limit is no answer here, for a repeated key buys nothing.
func (s *Stage) stored(on *sale.Sale, claim *seckill.Claim, deadline time.Time) (row Bought, found bool) {
	row, known, err := s.recognise(on, claim, deadline)
	return row, known && err == nil
}

// recalled is the last promises that were recalled.
type recalled struct {
	mu    sync.Mutex
	known map[seckill.OrderNo]struct{}
	ring  []seckill.OrderNo
	next  int // of the ring, when it is full
}

func (r *recalled) has(no seckill.OrderNo) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.known[no]
	return known
}

func (r *recalled) add(no seckill.OrderNo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.known[no]; known {
		return
	}
	if r.known == nil {
		r.known = make(map[seckill.OrderNo]struct{})
	}
	if len(r.ring) < recalledMost {
		r.ring = append(r.ring, no)
	} else {
		delete(r.known, r.ring[r.next])
		r.ring[r.next] = no
		r.next = (r.next + 1) % recalledMost
	}
	r.known[no] = struct{}{}
}
