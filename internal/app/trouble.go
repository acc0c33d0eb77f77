package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"seckill/internal/alert"
	"seckill/internal/background"
	"seckill/internal/queue"
	"seckill/internal/store"
)

const (
	// troubleMost is how many products may wait for a look.
	troubleMost = 1024
	// troubleAtOnce is how many are looked at together: one whose recovery waits
	// for a slow shard, or for what other instances have promised, must not hold
	// up the others. Most of the time of a recovery is such waiting, which costs
	// nothing; the lifecycle bounds how many ledgers are built at a time.
	troubleAtOnce = 64
	// troublePause is the least time between two looks at one product. A crowd in
	// front of a lost shard must not make this a busy loop.
	troublePause = 100 * time.Millisecond
	// recoverTimeout bounds one recovery, which reads every order of the product
	// and writes a mark for each live one: about a minute for ten million of them
	// on one shard, and several times that on slow servers or with replicas to
	// wait for. A ledger that does not answer ends it much sooner.
	recoverTimeout = 15 * time.Minute
	refreshTimeout = 5 * time.Second
)

// trouble is a product whose ledger needs a look; product 0 means all.
type trouble struct {
	product uint32
	err     error
}

// grave reports whether an operator should hear of it. Of a damaged ledger they
// hear from the rebuild of it, once, whoever noticed.
func (t trouble) grave() bool {
	return errors.Is(t.err, store.ErrShort) || errors.Is(t.err, queue.ErrLost)
}

// troubles are products that need a look, each once however many meet it.
type troubles struct {
	news chan struct{} // something can perhaps be taken

	mu      sync.Mutex
	waiting []trouble       // in the order in which they were raised
	seen    map[uint32]bool // being looked at
}

func newTroubles() *troubles {
	return &troubles{news: make(chan struct{}, 1), seen: make(map[uint32]bool)}
}

// raise never blocks. What finds no place is raised again by the next call that
// meets it.
func (t *troubles) raise(one trouble) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.waiting, func(w trouble) bool { return w.product == one.product })
	switch {
	case i < 0 && len(t.waiting) < troubleMost:
		t.waiting = append(t.waiting, one)
	case i >= 0 && one.grave():
		t.waiting[i] = one
	}
	ask(t.news)
}

// take gives the trouble that has waited longest among those of products that
// nobody is looking at.
func (t *troubles) take() (trouble, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.waiting, func(w trouble) bool { return !t.seen[w.product] })
	if i < 0 {
		return trouble{}, false
	}
	one := t.waiting[i]
	t.waiting = slices.Delete(t.waiting, i, i+1)
	t.seen[one.product] = true
	return one, true
}

// looking reports whether somebody looks at a product now.
func (t *troubles) looking(product uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen[product]
}

// done lets a product be taken again: what was raised meanwhile may be newer
// than the look.
func (t *troubles) done(product uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, product)
	ask(t.news)
}

// watch has see look at products in trouble, several at once, until ctx ends.
func (t *troubles) watch(ctx context.Context, see func(context.Context, trouble)) {
	var watchers sync.WaitGroup
	defer watchers.Wait()
	places := make(chan struct{}, troubleAtOnce)
	for {
		select {
		case <-ctx.Done():
			return
		case places <- struct{}{}:
		}
		one, ok := t.take()
		for !ok {
			select {
			case <-ctx.Done():
				return
			case <-t.news:
			}
			one, ok = t.take()
		}
		if ctx.Err() != nil {
			return // a rest that is cut short must not make room for another look
		}
		watchers.Go(func() {
			see(ctx, one)
			<-places // others need not wait for the pause of this one
			_ = background.Pause(ctx, troublePause)
			t.done(one.product)
		})
	}
}

// seeTo has a product in trouble recovered. What only the worker can see (a
// store that is short, a queue that lost entries) it has requested in the store,
// for the epoch that it saw: a trouble that is older than the recovery finds a
// live ledger here, and costs nothing.
func (p *parts) seeTo(ctx context.Context, t trouble) {
	message, args := "trouble with the ledger of all products", []any{"error", t.err}
	if t.product != 0 {
		message, args = "trouble with a product's ledger", append(args, "product", t.product)
	}
	p.complaints.Say(slog.LevelWarn, fmt.Sprint("trouble ", t.product), message, args...) // ten looks a second while a takeover goes on
	if t.grave() {
		p.mustRecover(t.product, t.err)
	}
	p.look(ctx, t.product)
}

// mustRecover tells an operator why a ledger is being recovered.
func (p *parts) mustRecover(product uint32, cause error) {
	p.alerter.Raise(alert.MustRecover, product, fmt.Errorf("%w; %s recovered by itself", cause, p.concerned(product)))
}

// namedMost is how many products an alert of all of them names.
const namedMost = 10

// concerned is whose ledger a trouble is, for people. What the queue lost is
// known by the stream, which many products share.
func (p *parts) concerned(product uint32) string {
	if product != 0 {
		return "the product is being"
	}
	var ids []uint32
	for _, s := range p.catalog.All() {
		if terms := s.Terms(); terms.HasLedger() && terms.Epoch > 0 {
			ids = append(ids, s.ID)
		}
	}
	return "every product with a ledger (" + listed(ids) + ") is being"
}

// listed names the first of some products, and counts the others.
func listed(products []uint32) string {
	var ids []string
	for _, id := range products[:min(len(products), namedMost)] {
		ids = append(ids, strconv.FormatUint(uint64(id), 10))
	}
	if more := len(products) - namedMost; more > 0 {
		ids = append(ids, fmt.Sprintf("%d more", more))
	}
	return strings.Join(ids, ", ")
}

// look has a product recovered if it needs to be, however long its sale is
// over; with product 0 the keeper looks at all that it keeps.
func (p *parts) look(ctx context.Context, product uint32) {
	if product == 0 {
		if err := p.catalog.Refresh(ctx); err == nil {
			p.signals.Wake(dutyKeep)
		}
		return
	}
	recovering, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	if _, err := p.lifecycle.RecoverIfLost(recovering, product); err != nil {
		p.log.Warn("product not recovered; it will be tried again", "product", product, "error", err)
	}
	refreshing, end := context.WithTimeout(ctx, refreshTimeout)
	defer end()
	if err := p.catalog.Refresh(refreshing); err != nil {
		p.log.Warn("catalogue not refreshed", "error", err)
	}
}
