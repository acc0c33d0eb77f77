package recovery

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"seckill"
)

// The book remembers the promises of this instance until the store has their
// rows (protocol 3, step 1). While the ledger is intact, its outbox carries
// every promise and the book changes nothing. If the ledger loses promises, the
// book writes them before the rebuild, or adopts them after it.

const (
	// DefaultPromises is how many promises an instance remembers: about 50 MB at
	// 200 bytes each, or twenty seconds at 10,000 a second without a worker.
	DefaultPromises = 1 << 18
	// stripes divides the lock, so that batchers of many shards do not wait for
	// each other.
	stripes = 16
	// settleAge is the age at which the book first asks the store for a
	// promise: nearly all promises have their row by then.
	settleAge = time.Second
	// maxAskPause bounds the pause between two questions about one promise. A
	// parked claim waits for hours, and asking often would only load the store.
	maxAskPause = 30 * time.Second
)

// Book holds the promises of one instance.
type Book struct {
	opt     BookOptions
	room    int // claims that a stripe may have
	stripes [stripes]stripe
	next    atomic.Uint32
	count   atomic.Int64
	// exclusive is held by the goroutine that has taken promises out of the stripes.
	exclusive chan struct{}
}

type stripe struct {
	mu     sync.Mutex
	kept   []*record // roughly oldest first
	claims int
}

// record is the claims that one ledger step accepted and that the store does
// not have yet.
type record struct {
	entry seckill.Entry
	since time.Time
	ask   time.Time // do not ask the store before
	// at is its place in the journal, if there is one. A loaded record was
	// written before the last start: the ledger may have lost it unnoticed.
	at     JournalPlace
	loaded bool
}

// NewBook makes an empty book.
func NewBook(opt BookOptions) *Book {
	if opt.MaxPromises <= 0 {
		opt.MaxPromises = DefaultPromises
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Terms == nil {
		opt.Terms = func(uint32) *seckill.Product { return nil }
	}
	b := &Book{opt: opt, room: opt.MaxPromises / stripes, exclusive: make(chan struct{}, 1)}
	if opt.Journal != nil {
		b.room = math.MaxInt
	}
	return b
}

// Len returns how many promises are remembered.
func (b *Book) Len() int64 { return b.count.Load() }

// Remember keeps the claims that one ledger step accepted. The caller must not
// use the entry afterwards. If the book is full, it forgets the oldest
// promises, because the ledger had the most time to pass them on.
//
// With a journal the book forgets nothing: at its bound the journal stops the
// sale.
func (b *Book) Remember(entry seckill.Entry) {
	now := b.opt.Now()
	r := &record{entry: entry, since: now, ask: now.Add(settleAge)}
	if b.opt.Journal != nil {
		r.at = b.opt.Journal.Append(&entry)
	}
	b.keep(r)
}

// keep adds a record to a stripe.
func (b *Book) keep(r *record) {
	entry := &r.entry
	s := &b.stripes[b.next.Add(1)%stripes]
	s.mu.Lock()
	s.kept = append(s.kept, r)
	s.claims += len(entry.Claims)
	forgotten := 0
	if s.claims > b.room {
		forgotten = s.trim(b.room)
	}
	s.mu.Unlock()
	b.count.Add(int64(len(entry.Claims) - forgotten))
	if forgotten > 0 {
		b.opt.Meter.Forgotten(forgotten)
	}
}

// trim forgets the oldest records above the bound, but never the newest one.
func (s *stripe) trim(most int) (forgotten int) {
	for s.claims > most && len(s.kept) > 1 {
		oldest := s.kept[0]
		n := len(oldest.entry.Claims)
		s.kept[0] = nil
		s.kept = s.kept[1:]
		s.claims -= n
		forgotten += n
	}
	return forgotten
}

// take removes and returns the wanted records, up to room claims. They still
// count as remembered.
func (b *Book) take(room int, wanted func(*record) bool) []*record {
	var taken []*record
	first := int(b.next.Load()) // start at another stripe each time, so none starves
	for i := range b.stripes {
		s := &b.stripes[(first+i)%stripes]
		s.mu.Lock()
		kept := s.kept[:0:0] // a new array, so the memory of trimmed records is freed
		for _, r := range s.kept {
			if n := len(r.entry.Claims); n <= room && wanted(r) {
				room -= n
				s.claims -= n
				taken = append(taken, r)
			} else {
				kept = append(kept, r)
			}
		}
		s.kept = kept
		s.mu.Unlock()
	}
	return taken
}

// putBack returns unsettled records, before the newer ones. It forgets some if
// the stripe is full. Records without claims are settled. had is how many
// claims were taken.
func (b *Book) putBack(records []*record, had int) {
	var back [stripes][]*record
	left := 0
	for i, r := range records {
		if n := len(r.entry.Claims); n > 0 {
			back[i%stripes] = append(back[i%stripes], r)
			left += n
		}
	}
	forgotten := 0
	for i := range b.stripes {
		if len(back[i]) == 0 {
			continue
		}
		s := &b.stripes[i]
		s.mu.Lock()
		s.kept = append(back[i], s.kept...)
		s.claims += countClaims(back[i])
		forgotten += s.trim(b.room)
		s.mu.Unlock()
	}
	b.count.Add(int64(left - had - forgotten))
	if forgotten > 0 {
		b.opt.Meter.Forgotten(forgotten)
	}
}

func countClaims(records []*record) (n int) {
	for _, r := range records {
		n += len(r.entry.Claims)
	}
	return n
}

// dropClaims removes settled claims from a record and from the journal.
func (b *Book) dropClaims(r *record, settled func(no seckill.OrderNo) bool) {
	before := len(r.entry.Claims)
	r.removeClaims(settled)
	if n := before - len(r.entry.Claims); n > 0 && b.opt.Journal != nil {
		b.opt.Journal.Release(r.at, n)
	}
}

// removeClaims removes claims from a record.
func (r *record) removeClaims(wanted func(no seckill.OrderNo) bool) {
	left := r.entry.Claims[:0]
	for _, claim := range r.entry.Claims {
		if !wanted(claim.OrderNo) {
			left = append(left, claim)
		}
	}
	clear(r.entry.Claims[len(left):])
	r.entry.Claims = left
}

// split moves claims into a new record. It returns nil if there are none.
func (r *record) split(wanted func(no seckill.OrderNo) bool) *record {
	part := &record{entry: r.entry, since: r.since, at: r.at}
	part.entry.Claims = nil
	for _, claim := range r.entry.Claims {
		if wanted(claim.OrderNo) {
			part.entry.Claims = append(part.entry.Claims, claim)
		}
	}
	if len(part.entry.Claims) == 0 {
		return nil
	}
	r.removeClaims(wanted)
	return part
}
