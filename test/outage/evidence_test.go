package outage

import (
	"context"
	"maps"
	"time"

	"seckill"
	"seckill/test/engine"
	"seckill/test/market"
)

// evidence is all that the outside knows of a site: what was asked and answered,
// the orders and the changes of stock, when somebody who watched the store saw
// them to be done, and when the ledger was in doubt.
type evidence struct {
	products map[uint32]engine.Product
	acts     []market.Act
	rows     []row
	changes  []market.StockChange
	settled  map[string]settled
	absent   map[string]time.Time
	back     map[string]time.Time
	held     []while
	split    span // when instances had two ledgers
	// doubted and doubtedUntil are the book's.
	doubted      func(product uint32, from, to time.Time) bool
	doubtedUntil func(product uint32, from, to time.Time) (time.Time, bool)
}

// span is a while; the zero span is none.
type span struct{ from, to time.Time }

// meets reports whether the span has a moment in common with a while.
func (s span) meets(from, to time.Time) bool {
	return !s.from.IsZero() && !s.from.After(to) && !s.to.Before(from)
}

// evidence gathers that of a site at rest.
func (s *site) evidence() *evidence {
	s.t.Helper()
	market.Eventually(s.t, "the tables are read", func(ctx context.Context) bool { return s.watch.look(ctx) == nil })
	db := s.tables(s.t)
	defer db.Close()
	w := s.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	return &evidence{
		products: s.Products, acts: s.trace.all(), rows: readRows(s.t, db), changes: s.StockChanges(),
		settled: maps.Clone(w.settled), absent: maps.Clone(w.absent), back: maps.Clone(w.back), held: w.held, split: s.split,
		doubted: s.Doubted, doubtedUntil: s.DoubtedUntil,
	}
}

// failures counts promises that ended as failed, by reason, and orders that had
// failed before their buyers were told the number. Whether each of them may have
// is the book's to say.
func (e *evidence) failures() map[string]int {
	promised, reasons := e.askedFor().heard, make(map[string]int)
	for _, r := range e.rows {
		switch heard, told := promised[r.no]; {
		case !told || r.status != seckill.OrderFailed:
		case heard.After(r.closed):
			reasons[r.reason+", before its number was told"]++
		default:
			reasons[r.reason]++
		}
	}
	return reasons
}
