package market

import (
	"slices"
	"time"

	"seckill"
)

// FlagLife is how long a sold-out flag stands (I7), and so how long an instance
// may refuse a buyer to whom another has just sold a unit that came back after
// the flag was raised: as long as neither the return nor the sale has reached
// it. That is some milliseconds, and this at most.
const FlagLife = time.Second

// doubt is a while in which a product's ledger may not know all that it said,
// or sell what it had promised.
type doubt struct {
	from, to time.Time // to is zero as long as it lasts
	lost     bool      // and not only rebuilt
}

// meets reports whether the doubt has a moment in common with a while.
func (d doubt) meets(from, to time.Time) bool {
	return !d.from.After(to) && (d.to.IsZero() || !d.to.Before(from))
}

// Rebuild begins a doubt about products whose epoch is about to change without
// a loss, by a rebuild or a takeover. Promises that the store does not have by then may be refused, and
// their keys with them.
func (b *Book) Rebuild(products ...uint32) { b.begin(false, products) }

// Lose begins a doubt about products whose ledger is about to lose something.
// Until that is noticed a count may find it, and until it is mended a promise
// may be nowhere for a moment.
func (b *Book) Lose(products ...uint32) { b.begin(true, products) }

func (b *Book) begin(lost bool, products []uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range products {
		if all := b.doubts[id]; len(all) > 0 && all[len(all)-1].to.IsZero() {
			all[len(all)-1].lost = all[len(all)-1].lost || lost
			continue
		}
		b.doubts[id] = append(b.doubts[id], doubt{from: time.Now(), lost: lost})
	}
}

// Away notes that the ledger of products is about to be away, so that the store
// may take them over without it. A call that nobody heard the answer of may have
// reserved there: its order is decided when it turns up, after the store has sold
// what it had (protocol 5).
func (b *Book) Away(products ...uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range products {
		b.away[id] = append(b.away[id], doubt{from: time.Now()})
	}
}

// Back notes that all ledgers are there again.
func (b *Book) Back() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, all := range b.away {
		if last := len(all) - 1; all[last].to.IsZero() {
			all[last].to = time.Now()
		}
	}
}

// Mended ends all doubts: whoever says so has seen that the store has every
// promise, and that all ledgers agree with it.
func (b *Book) Mended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, all := range b.doubts {
		if last := len(all) - 1; all[last].to.IsZero() {
			all[last].to = time.Now()
		}
	}
}

// Doubted reports whether the product's ledger was in doubt at some moment of a
// while.
func (b *Book) Doubted(product uint32, from, to time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.doubted(product, from, to)
}

func (b *Book) doubted(product uint32, from, to time.Time) bool {
	return slices.ContainsFunc(b.doubts[product], func(d doubt) bool { return d.meets(from, to) })
}

// DoubtedUntil is when the doubt ended that a while met last; zero if it met
// none, or one that lasts.
func (b *Book) DoubtedUntil(product uint32, from, to time.Time) (until time.Time, met bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.doubts[product] {
		if d.meets(from, to) {
			until, met = d.to, true
		}
	}
	return until, met
}

// mayMiss reports whether the product's ledger may not have known, in a while,
// all that it had said.
func (b *Book) mayMiss(product uint32, from, to time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.missing(product, from, to)
}

func (b *Book) missing(product uint32, from, to time.Time) bool {
	return slices.ContainsFunc(b.doubts[product], func(d doubt) bool { return d.lost && d.meets(from, to) })
}

// knows reports whether a promised key that was repeated at an instant must
// have found its order, which is kept or not. It may not in two cases. The
// ledger was losing what it said. Or it was in doubt before the store had the
// order, and the key, asked again, got another one, or nothing, until the first
// came to be adopted and was refused. A rebuilt ledger has the keys of all orders of the store, dead ones too, as
// long as a buyer has no more than ledger.MaxReturned of these: no customer of
// a crowd stays for so many.
func (b *Book) knows(c *Claim, kept bool, called time.Time) bool {
	now := time.Now()
	return !b.missing(c.Product, called, now) && (kept || !b.doubted(c.Product, c.asked, now))
}

// mayFail reports whether a promised order may have failed at an instant for a
// reason: its ledger was in doubt in between, or away while nobody had heard of
// the order yet.
func (b *Book) mayFail(c *Claim, at time.Time, reason string) bool {
	switch reason {
	case seckill.ReasonLost, seckill.ReasonLimit, seckill.ReasonDuplicate:
		return b.doubted(c.Product, c.asked, at) || b.decidedUnheard(c, at)
	case seckill.ReasonDiscarded:
		return b.discarded[c.No]
	}
	return false
}

// decidedUnheard reports whether the ledger was away between the first request
// and an instant at which the buyer had no order number yet. Who repeats the key
// later is told that number, and reads that the order failed.
func (b *Book) decidedUnheard(c *Claim, at time.Time) bool {
	return c.since.After(at) && slices.ContainsFunc(b.away[c.Product], func(d doubt) bool { return d.meets(c.asked, at) })
}

// Discard notes that a promise was parked, and given up by an operator or for
// its age.
func (b *Book) Discard(c *Claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.discarded[c.No] = true
}
