package purchase

import (
	"context"
	"sync"
	"time"

	"seckill"
	"seckill/internal/ledger"
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
// may ask for another quantity, at another price. An order that has no entry
// any more has its row.
func (s *Stage) recall(shard ledger.Shard, buyer string, no seckill.OrderNo, deadline time.Time) error {
	if s.opt.Remember == nil || s.recalled.has(no) {
		return nil
	}
	if latest := time.Now().Add(recallTimeout); deadline.After(latest) {
		deadline = latest
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	held, err := s.ledger.Held(ctx, shard, buyer)
	if err != nil {
		return errBusy // the ledger may have been lost just now: repeated once more, the claim finds out
	}
	for i := range held {
		if held[i].OrderNo == no && held[i].Entry.ProductID != 0 {
			s.opt.Remember(held[i].Entry)
		}
	}
	s.recalled.add(no)
	return nil
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
