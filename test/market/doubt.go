package market

import (
	"slices"
	"time"

	"seckill"
)

// FlagLife is the lifetime of a sold-out flag (I7). For so long an instance may
// refuse a buyer that has just bought a returned unit at another instance:
// until it hears of the return or the sale. That takes some milliseconds, and
// FlagLife at most.
const FlagLife = time.Second

// doubt is a period in which a product's ledger may have forgotten its answers,
// or may sell promised units again.
type doubt struct {
	from, to time.Time // to is zero as long as it lasts
	lost     bool      // the ledger lost data; false for a rebuild without a loss
}

// meets reports whether the doubt overlaps the period.
func (d doubt) meets(from, to time.Time) bool {
	return !d.from.After(to) && (d.to.IsZero() || !d.to.Before(from))
}

// Rebuild begins a doubt about products whose epoch is about to change without
// a loss, by a rebuild or a takeover. A promise that the store does not have by
// then may be refused, and its key too.
func (b *Book) Rebuild(products ...uint32) { b.begin(false, products) }

// Lose begins a doubt about products whose ledger is about to lose data. A
// reconciliation may report the loss before the engine detects it. Until the
// ledger is rebuilt, a promised order may be missing for a moment.
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

// Away records that the ledger of products is about to be down, so that the
// store may take them over without it. A call without an answer may have
// reserved in the ledger. Its order is decided when the entry is found, after
// the store has sold its stock (protocol 5).
func (b *Book) Away(products ...uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range products {
		b.away[id] = append(b.away[id], doubt{from: time.Now()})
	}
}

// Back records that all ledgers are up again.
func (b *Book) Back() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, all := range b.away {
		if last := len(all) - 1; all[last].to.IsZero() {
			all[last].to = time.Now()
		}
	}
}

// Mended ends all doubts. The caller has checked that the store has every
// promise and that all ledgers agree with the store.
func (b *Book) Mended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, all := range b.doubts {
		if last := len(all) - 1; all[last].to.IsZero() {
			all[last].to = time.Now()
		}
	}
}

// Doubted reports whether the product's ledger was in doubt at some moment of
// the period.
func (b *Book) Doubted(product uint32, from, to time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.doubted(product, from, to)
}

func (b *Book) doubted(product uint32, from, to time.Time) bool {
	return slices.ContainsFunc(b.doubts[product], func(d doubt) bool { return d.meets(from, to) })
}

// DoubtedUntil is the end of the last doubt that overlaps the period; zero if
// there is none or it has not ended.
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

// mayMiss reports whether the product's ledger may have forgotten answers in
// the period.
func (b *Book) mayMiss(product uint32, from, to time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.missing(product, from, to)
}

func (b *Book) missing(product uint32, from, to time.Time) bool {
	return slices.ContainsFunc(b.doubts[product], func(d doubt) bool { return d.lost && d.meets(from, to) })
}

// knows reports whether a promised key that was repeated at this time must have
// found its order; kept says whether the store had the order. There are two
// exceptions. The ledger was losing data. Or it was in doubt before the store
// had the order: the repeated key then got another order or none, and the first
// order was later refused adoption. A rebuilt ledger has the keys of all orders
// in the store, dead ones too, up to ledger.MaxReturned dead orders of a buyer.
// A customer of a crowd leaves before it has that many.
func (b *Book) knows(c *Claim, kept bool, called time.Time) bool {
	now := time.Now()
	return !b.missing(c.Product, called, now) && (kept || !b.doubted(c.Product, c.asked, now))
}

// mayFail reports whether a promised order may have failed at this time for
// this reason. Either its ledger was in doubt in between, or its ledger was
// down before the buyer had the order number.
func (b *Book) mayFail(c *Claim, at time.Time, reason string) bool {
	switch reason {
	case seckill.ReasonLost, seckill.ReasonLimit, seckill.ReasonDuplicate:
		return b.doubted(c.Product, c.asked, at) || b.decidedUnheard(c, at)
	case seckill.ReasonDiscarded:
		return b.discarded[c.No]
	}
	return false
}

// decidedUnheard reports whether the ledger was down between the first request
// and this time, at which the buyer had no order number yet. A buyer that
// repeats the key later gets the number and reads that the order failed.
func (b *Book) decidedUnheard(c *Claim, at time.Time) bool {
	return c.since.After(at) && slices.ContainsFunc(b.away[c.Product], func(d doubt) bool { return d.meets(c.asked, at) })
}

// Discard records that a promise became a dead letter and was discarded, by an
// operator or for its age.
func (b *Book) Discard(c *Claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.discarded[c.No] = true
}
