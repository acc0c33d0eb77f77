package recovery

import (
	"errors"
	"slices"
	"sync"

	"seckill/internal/queue"
	"seckill/internal/store"
)

// requestsMost is how many products may wait for a look.
const requestsMost = 1024

// errLost is the cause when the keeper finds a ledger lost.
var errLost = errors.New("found lost, closed, behind the store or under another limit")

// request is a product whose ledger needs a look; product 0 means all.
type request struct {
	product uint32
	cause   error
}

// grave reports whether an operator should hear of it. A rebuild tells them of a
// damaged ledger, once, whichever part noticed it.
func (r request) grave() bool {
	return errors.Is(r.cause, store.ErrShort) || errors.Is(r.cause, queue.ErrLost)
}

// Requests are the products that need a look, each once, however many calls meet
// its trouble. Nothing depends on a request: a cause that lasts is met again by the
// next call, and the keeper looks at every ledger by itself.
type Requests struct {
	news chan struct{} // something can perhaps be taken

	mu      sync.Mutex
	waiting []request       // in the order of the requests
	looked  map[uint32]bool // products that the supervisor looks at now
}

// NewRequests makes an empty list.
func NewRequests() *Requests {
	return &Requests{news: make(chan struct{}, 1), looked: make(map[uint32]bool)}
}

// RequestRecovery never blocks. A request that finds no room is dropped: the next
// call that meets the trouble repeats it.
func (r *Requests) RequestRecovery(product uint32, cause error) {
	one := request{product, cause}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.waiting, func(w request) bool { return w.product == product })
	switch {
	case i < 0 && len(r.waiting) < requestsMost:
		r.waiting = append(r.waiting, one)
	case i >= 0 && one.grave():
		r.waiting[i] = one
	}
	r.ring()
}

// LedgerLost is a request of the keeper, which repeats it with every round. It is
// dropped while the product is being recovered.
func (r *Requests) LedgerLost(product uint32) {
	r.mu.Lock()
	looked := r.looked[product]
	r.mu.Unlock()
	if !looked {
		r.RequestRecovery(product, errLost)
	}
}

// Waiting lists the products that wait for a look, the oldest request first.
func (r *Requests) Waiting() []uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	products := make([]uint32, len(r.waiting))
	for i := range r.waiting {
		products[i] = r.waiting[i].product
	}
	return products
}

// take gives the oldest request for a product that is not being looked at.
func (r *Requests) take() (request, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.waiting, func(w request) bool { return !r.looked[w.product] })
	if i < 0 {
		return request{}, false
	}
	one := r.waiting[i]
	r.waiting = slices.Delete(r.waiting, i, i+1)
	r.looked[one.product] = true
	return one, true
}

// done lets a product be taken again: a request that came meanwhile may be newer
// than the look.
func (r *Requests) done(product uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.looked, product)
	r.ring()
}

func (r *Requests) ring() {
	select {
	case r.news <- struct{}{}:
	default: // it rings already
	}
}
