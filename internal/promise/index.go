package promise

import (
	"sync"

	"seckill"
)

// index finds promises by the keys under which they were asked for. A key that
// is repeated while the ledger is away is then answered with its order, and not
// sold another one from the fallback share (protocol 5).
//
// Only promises of products with a share are in it: nobody asks for others, so
// that these pay nothing. It has at most one number for each promise of the
// book, about 60 bytes.
type index struct {
	mu      sync.RWMutex
	numbers map[request]seckill.OrderNo
}

// request is what a buyer's key belongs to, as in ledger and store.
type request struct {
	group      uint32
	buyer, key string
}

func (x *index) find(of request) (no seckill.OrderNo, found bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	no, found = x.numbers[of]
	return no, found
}

func (x *index) add(group uint32, claims []seckill.Claim) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range claims {
		if claim := &claims[i]; claim.Key != "" {
			x.numbers[request{group, claim.Buyer, claim.Key}] = claim.OrderNo
		}
	}
}

// remove forgets claims. A key that was promised anew since, by a ledger that
// had lost the first promise, stays the newer one's.
func (x *index) remove(group uint32, claims ...seckill.Claim) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range claims {
		claim := &claims[i]
		if of := (request{group, claim.Buyer, claim.Key}); x.numbers[of] == claim.OrderNo {
			delete(x.numbers, of)
		}
	}
}
