package sale

import (
	"sync"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// Silences knows since when the ledgers of products have not answered this
// instance. Its products are those that the store may take over, or has.
type Silences struct {
	catalog *Catalog
	now     func() time.Time

	mu    sync.Mutex
	heard map[uint32]time.Time // when all shards of a product last answered
}

// NewSilences makes one. now is the instance's own clock, and is to be monotonic.
func NewSilences(c *Catalog, now func() time.Time) *Silences {
	return &Silences{catalog: c, now: now, heard: make(map[uint32]time.Time)}
}

// Beats ask the ledgers. They are of no lane: nothing was heard by them.
func (s *Silences) Beats() []ledger.Beat {
	var beats []ledger.Beat
	for _, p := range s.products() {
		for i := range p.Shards {
			beats = append(beats, ledger.Beat{Shard: ledger.ShardOf(p, i)})
		}
	}
	return beats
}

// products are those that are asked about.
func (s *Silences) products() []*seckill.Product {
	var all []*seckill.Product
	for _, one := range s.catalog.All() {
		p := one.Terms()
		if p.HasLedger() && p.Epoch > 0 && p.State != seckill.SaleEnded && (p.Fallback == seckill.FallbackStore || p.SoldByStore()) {
			all = append(all, p)
		}
	}
	return all
}

// Heard takes the outcomes of beats, of which others may be among them.
func (s *Silences) Heard(beats []ledger.Beat, outcomes []ledger.Outcome) {
	silent := make(map[uint32]bool)
	for i := range beats {
		if i >= len(outcomes) || outcomes[i] == 0 {
			silent[beats[i].Shard.Product] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, heard := s.now(), make(map[uint32]time.Time)
	for _, p := range s.products() {
		before, known := s.heard[p.ID]
		if !known || !silent[p.ID] {
			before = now
		}
		heard[p.ID] = before
	}
	s.heard = heard
}

// For lists the products whose ledger has not answered for so long.
func (s *Silences) For(long time.Duration) []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var silent []uint32
	now := s.now()
	for product, heard := range s.heard {
		if now.Sub(heard) >= long {
			silent = append(silent, product)
		}
	}
	return silent
}
