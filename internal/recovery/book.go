package recovery

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"seckill"
)

// The book remembers the 202 answers of this instance until the store has their
// rows (protocol 3, step 1). While the ledger still has its answers, its outbox
// carries every promise and the book changes nothing. If the ledger loses them,
// the book confirms them before the rebuild, or adopts them after it.

const (
	// DefaultMost is how many promises an instance remembers: at about 200 bytes
	// each, some 50 MB, and twenty seconds of 10,000 a second without a worker.
	DefaultMost = 1 << 18
	// stripes keep the batchers of many shards from meeting in one lock.
	stripes = 16
	// settleAge is how old a promise is when the store is first asked for it:
	// nearly all have their row by then.
	settleAge = time.Second
	// askAgainMost bounds the pause between questions about one promise. A
	// parked claim waits for hours, and a lagging store is not helped by asking.
	askAgainMost = 30 * time.Second
)

// Book is the promises of one instance.
type Book struct {
	opt     BookOptions
	stripes [stripes]stripe
	next    atomic.Uint32
	count   atomic.Int64
	// hand holds who has taken promises out of the stripes to settle them.
	hand chan struct{}
}

type stripe struct {
	mu     sync.Mutex
	kept   []*record // oldest first, as far as the pauses between questions allow
	claims int
}

// record is what one ledger step accepted, less what the store has.
type record struct {
	entry seckill.Entry
	since time.Time
	ask   time.Time // not before
	// at is where the journal has it, if there is one. A loaded record is of a
	// former life: the ledger may have lost it unnoticed.
	at     JournalPlace
	loaded bool
}

// NewBook makes an empty book.
func NewBook(opt BookOptions) *Book {
	if opt.Most <= 0 {
		opt.Most = DefaultMost
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Terms == nil {
		opt.Terms = func(uint32) *seckill.Product { return nil }
	}
	return &Book{opt: opt, hand: make(chan struct{}, 1)}
}

// Len is how many promises are remembered.
func (b *Book) Len() int64 { return b.count.Load() }

// Remember keeps what one ledger step accepted. The entry is given away. Where
// there is no room, the oldest are forgotten: the ledger has had the most time
// to hand them on.
//
// With a journal nothing is forgotten: the journal stops the sale at its bound.
func (b *Book) Remember(entry seckill.Entry) {
	now := b.opt.Now()
	r := &record{entry: entry, since: now, ask: now.Add(settleAge)}
	if b.opt.Journal != nil {
		r.at = b.opt.Journal.Append(&entry)
	}
	b.keep(r)
}

// keep takes a record into a stripe.
func (b *Book) keep(r *record) {
	entry := &r.entry
	s := &b.stripes[b.next.Add(1)%stripes]
	s.mu.Lock()
	s.kept = append(s.kept, r)
	s.claims += len(entry.Claims)
	forgotten := s.trim(b.room())
	s.mu.Unlock()
	b.count.Add(int64(len(entry.Claims) - forgotten))
	if forgotten > 0 {
		b.opt.OnForgotten(forgotten)
	}
}

// room is how many claims a stripe may have.
func (b *Book) room() int {
	if b.opt.Journal != nil {
		return math.MaxInt
	}
	return b.opt.Most / stripes
}

// trim forgets the oldest beyond the bound, but never the newest record.
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

// take moves the records that are wanted out of the stripes, as long as their
// claims fit in room; they still count as remembered.
func (b *Book) take(room int, wanted func(*record) bool) []*record {
	var taken []*record
	first := int(b.next.Load()) // another one each time: no stripe starves
	for i := range b.stripes {
		s := &b.stripes[(first+i)%stripes]
		s.mu.Lock()
		kept := s.kept[:0:0] // its own room: what was trimmed is given back here
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

// putBack returns records that are not settled, before what came meanwhile, as
// far as that has left them room; those without claims are settled. had is how
// many claims were taken.
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
		forgotten += s.trim(b.room())
		s.mu.Unlock()
	}
	b.count.Add(int64(left - had - forgotten))
	if forgotten > 0 {
		b.opt.OnForgotten(forgotten)
	}
}

func countClaims(records []*record) (n int) {
	for _, r := range records {
		n += len(r.entry.Claims)
	}
	return n
}

// drop takes settled claims off a record, for good.
func (b *Book) drop(r *record, settled func(no seckill.OrderNo) bool) {
	before := len(r.entry.Claims)
	r.strike(settled)
	if n := before - len(r.entry.Claims); n > 0 && b.opt.Journal != nil {
		b.opt.Journal.Release(r.at, n)
	}
}

// strike takes claims off a record.
func (r *record) strike(wanted func(no seckill.OrderNo) bool) {
	left := r.entry.Claims[:0]
	for _, claim := range r.entry.Claims {
		if !wanted(claim.OrderNo) {
			left = append(left, claim)
		}
	}
	clear(r.entry.Claims[len(left):])
	r.entry.Claims = left
}

// split moves claims to a record of their own, which is nil if there are none.
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
	r.strike(wanted)
	return part
}
