// Package sale runs a sale: the catalogue of products as this instance sees
// them, and the moves of an operator: preheat, pause, end, restock, recover.
package sale

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

const (
	// CatalogEvery is how long after one reading the catalogue is to be read again:
	// a change whose push was lost is then met within a second, the reading
	// included.
	CatalogEvery    = 850 * time.Millisecond
	catalogDeadline = 2 * time.Second
	// Between two readings the store rests restTimes as long as the last one took,
	// catalogRest at most: however many products there are, and however many of
	// them change, the catalogue takes a tenth of one core, or a fifth where a
	// reading takes 25 ms, as with 2,000 products.
	restTimes   = 9
	catalogRest = 100 * time.Millisecond
	// pastMost is how many products that are not current are read between two
	// readings for visitors, and as many for all others: whoever asks for any number
	// of ids costs the store little, and only visitors their answers.
	pastMost     = 100
	pastDeadline = 400 * time.Millisecond
)

// Sale is one product as this instance sees it. Terms are replaced whole; the
// flags beside them are atomic, so that the hot path takes no lock.
type Sale struct {
	underway // calls that may be selling now

	ID        uint32
	catalog   *Catalog
	terms     atomic.Pointer[seckill.Product]
	switching sync.Mutex                      // between promising in an epoch, and learning of the next
	calm      atomic.Pointer[calm]            // nil unless the product is due for a rebuild
	empty     flag                            // of which everybody may be told
	flag      flag                            // by which people are turned away
	Accepted  atomic.Int64                    // claims that were accepted here
	refused   [seckill.CodeCount]atomic.Int64 // by seckill.Code.Index
	// Encoded is owned by the shop's API: the product as it is sent to shoppers.
	Encoded atomic.Value
}

// Hold reports whether an epoch is still the one that this instance knows. If so
// it stays that until Unhold: a promise that is remembered in between is
// remembered before anybody here sees the next epoch (protocol 5, rule 5).
func (s *Sale) Hold(epoch uint64) bool {
	s.switching.Lock()
	if s.Terms().Epoch == epoch {
		return true
	}
	s.switching.Unlock()
	return false
}

// Unhold ends what Hold began.
func (s *Sale) Unhold() { s.switching.Unlock() }

// replace gives the sale new terms, and returns the old ones.
func (s *Sale) replace(terms *seckill.Product) *seckill.Product {
	s.switching.Lock()
	defer s.switching.Unlock()
	s.catalog.waiting.apply(terms)
	return s.terms.Swap(terms)
}

// Terms are the product's terms; they must not be changed.
func (s *Sale) Terms() *seckill.Product { return s.terms.Load() }

// Shard names a shard of the product at its present epoch.
func (s *Sale) Shard(index int) ledger.Shard { return ledger.ShardOf(s.Terms(), index) }

// CountRefused counts one refused request.
func (s *Sale) CountRefused(code seckill.Code) {
	if i := code.Index(); i >= 0 {
		s.refused[i].Add(1)
	}
}

// Requests are this instance's answers by code.
func (s *Sale) Requests() map[string]int64 {
	counts := map[string]int64{"accepted": s.Accepted.Load()}
	for i, code := range seckill.Codes() {
		counts[string(code)] = s.refused[i].Load()
	}
	return counts
}

// ProductReader is what the catalogue reads.
type ProductReader interface {
	CurrentProducts(ctx context.Context) ([]seckill.Product, error)
	Product(ctx context.Context, id uint32) (seckill.Product, error)
}

// Catalog is all sales that are still looked after (store.CurrentFor). Reading is
// one atomic load; the store is read once a second and after each change of this
// instance. Older sales are in the store alone.
type Catalog struct {
	// Peers are the other instances. Set it, and call Follow, before the first
	// Refresh.
	Peers Peers

	followers []Follower
	tests     sync.Map // ids of deleted test products, without values
	source    ProductReader
	sales     atomic.Pointer[map[uint32]*Sale]
	readings  *together
	read      time.Time   // when the last reading ended
	away      atomic.Bool // the last reading failed
	waiting   waiting

	mu      sync.Mutex              // of all:
	past    map[uint32]*pastReading // products that are not current, asked for since the last reading
	looked  int                     // how many reads of them there were since
	visited int                     // and how many for visitors
}

// pastReading is one read of a product that is not current. All who ask meanwhile
// wait for it.
type pastReading struct {
	done chan struct{}
	sale *Sale // nil for none
	err  error
}

// NewCatalog makes an empty catalogue.
func NewCatalog(source ProductReader) *Catalog {
	c := &Catalog{
		source: source, Peers: Alone{}, readings: newTogether(), past: make(map[uint32]*pastReading),
	}
	c.sales.Store(&map[uint32]*Sale{})
	return c
}

// Follow has a follower called for what the catalogue reads.
func (c *Catalog) Follow(f Follower) { c.followers = append(c.followers, f) }

// Find is the sale of a current product, or nil.
func (c *Catalog) Find(id uint32) *Sale { return (*c.sales.Load())[id] }

// IsTest reports whether a product is a test. One that was deleted is still known
// to the instance that had seen it: late calls may speak of it.
func (c *Catalog) IsTest(id uint32) bool {
	if s := c.Find(id); s != nil {
		return s.Terms().Test
	}
	_, was := c.tests.Load(id)
	return was
}

// Look is Find, and of a product that is over the store's word, which is at most
// as old as the catalogue. It is nil if there is no such product, or none yet, and
// busy if the store does not answer or too many are asked for.
func (c *Catalog) Look(ctx context.Context, id uint32) (*Sale, error) {
	return c.look(ctx, id, &c.looked)
}

// LookForVisitor is Look for ids that come over a public route. Visitors who ask for
// many of them are busy, and nobody who calls Look is.
func (c *Catalog) LookForVisitor(ctx context.Context, id uint32) (*Sale, error) {
	return c.look(ctx, id, &c.visited)
}

func (c *Catalog) look(ctx context.Context, id uint32, reads *int) (*Sale, error) {
	if s := c.Find(id); s != nil || id == 0 {
		return s, nil
	}
	c.mu.Lock()
	r, begun := c.past[id]
	if !begun {
		if *reads++; *reads > pastMost {
			c.mu.Unlock()
			return nil, seckill.Errorf(seckill.CodeBusy, "too many products are asked for that are not on sale")
		}
		r = &pastReading{done: make(chan struct{})}
		c.past[id] = r
	}
	c.mu.Unlock()
	if !begun {
		c.readPast(ctx, id, r)
	}
	select {
	case <-r.done:
		return r.sale, r.err
	case <-ctx.Done():
		return nil, seckill.Errorf(seckill.CodeBusy, "read product: %w", ctx.Err())
	}
}

// readPast reads within a deadline of its own: others wait for it too.
func (c *Catalog) readPast(ctx context.Context, id uint32, r *pastReading) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pastDeadline)
	defer cancel()
	defer close(r.done)
	p, err := c.source.Product(ctx, id)
	switch {
	case err == nil && p.Window(time.Now()) == seckill.CodeEnded: // else it is new, and soon in the catalogue
		r.sale = &Sale{ID: id, catalog: c}
		r.sale.terms.Store(&p)
	case err != nil && !seckill.CodeNotFound.In(err):
		r.err = seckill.Errorf(seckill.CodeBusy, "read product: %w", err)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.past[id] == r {
			delete(c.past, id) // who comes next asks again
		}
	}
}

// All lists the sales of current products by product id.
func (c *Catalog) All() []*Sale {
	sales := *c.sales.Load()
	all := make([]*Sale, 0, len(sales))
	for _, id := range slices.Sorted(maps.Keys(sales)) {
		all = append(all, sales[id])
	}
	return all
}

// Refresh reads the products again. Callers who come together share a reading.
func (c *Catalog) Refresh(ctx context.Context) error {
	return c.readings.do(ctx, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		err := c.reread(ctx)
		return min(restTimes*time.Since(began), catalogRest), err
	})
}

func (c *Catalog) reread(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catalogDeadline)
	defer cancel()
	products, err := c.source.CurrentProducts(ctx)
	c.away.Store(err != nil)
	if err != nil {
		return err
	}
	now := time.Now()
	gap := now.Sub(c.read)
	c.read = now
	old, closing := *c.sales.Load(), false
	next := make(map[uint32]*Sale, len(products))
	for i := range products {
		p := &products[i]
		s := old[p.ID]
		if s == nil {
			s = &Sale{ID: p.ID, catalog: c}
		}
		if before := s.terms.Load(); before != nil && rebuilt(before, p) {
			for _, f := range c.followers {
				f.LedgerRebuilt(p)
			}
		}
		before := s.replace(p)
		s.watchRebuild(before, p, now, gap)
		closing = closing || p.Rebuilding && before != nil && !before.Rebuilding
		if before != nil && (p.Offered > before.Offered || p.Epoch != before.Epoch) {
			s.lower() // a rebuilt ledger may have units that were lost
		}
		next[p.ID] = s
	}
	c.sales.Store(&next)
	c.mu.Lock()
	clear(c.past)
	c.looked, c.visited = 0, 0
	c.mu.Unlock()
	if closing {
		for _, f := range c.followers {
			f.RebuildBegins()
		}
	}
	for id, s := range old {
		if next[id] == nil {
			c.gone(s)
		}
	}
	return nil
}

// gone gives up a sale that the store does not have any more.
func (c *Catalog) gone(s *Sale) {
	if s.Terms().Test {
		c.tests.Store(s.ID, nil)
	}
	for _, f := range c.followers {
		f.ProductGone(s)
	}
}

// rebuilt reports whether a product's ledger has begun a new epoch, or was
// opened in it, since the product was seen before.
func rebuilt(before, now *seckill.Product) bool {
	return now.HasLedger() && before.Epoch > 0 && (now.Epoch != before.Epoch || before.Rebuilding && !now.Rebuilding)
}

// LowerFlags lowers all flags, and those that are about to be raised.
func (c *Catalog) LowerFlags() {
	for _, s := range *c.sales.Load() {
		s.lower()
	}
}
