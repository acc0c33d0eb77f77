package outage

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"time"

	"seckill/test/market"
)

// keepPoll is how often one looks whether a loss is mended.
const keepPoll = 200 * time.Millisecond

// wantWhole wants a site that has come to rest to have mended whatever it lost.
// What fails, or is refused, after that is no longer excused.
func (s *site) wantWhole() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*market.SettleWithin)
	defer cancel()
	switch {
	case !s.stores(ctx, time.Time{}, time.Now()):
		s.t.Error("I4: the store has not every promise, though nothing goes on any more")
	case !s.balances(ctx):
		s.t.Error("a ledger does not agree with the store, though nothing goes on any more")
	default:
		s.Mended()
	}
}

// stores waits until every promise that was asked for in a while has its row in
// the store, and reports whether it has, when ctx has ended.
func (s *site) stores(ctx context.Context, from, to time.Time) bool {
	var waiting []string
	for _, a := range s.trace.accepted(from, to, slices.Collect(maps.Keys(s.Products))...) {
		waiting = append(waiting, a.No)
	}
	db := s.tables(s.t)
	defer db.Close()
	for ; ctx.Err() == nil; market.Pause(ctx, keepPoll) {
		if waiting = missing(ctx, db, waiting); len(waiting) == 0 {
			return true
		}
	}
	return false
}

// missing are those of the numbers that the store has no order of, or all of
// them while it is away.
func missing(ctx context.Context, db *sql.DB, numbers []string) []string {
	stored := make(map[string]bool)
	for part := range slices.Chunk(numbers, inOne) {
		args := make([]any, len(part))
		for i, no := range part {
			args[i] = no
		}
		found, err := db.QueryContext(ctx, `SELECT order_no FROM tb_seckill_order WHERE order_no IN (?`+strings.Repeat(",?", len(part)-1)+`)`, args...)
		if err != nil {
			continue
		}
		for found.Next() {
			var no string
			if found.Scan(&no) == nil {
				stored[no] = true
			}
		}
		found.Close()
	}
	return slices.DeleteFunc(numbers, func(no string) bool { return stored[no] })
}

// balances waits until a count of every product that has a ledger balances, and
// reports whether it does.
func (s *site) balances(ctx context.Context) bool {
	for _, id := range s.ledgered() {
		for !s.balanced(ctx, id) {
			if !market.Pause(ctx, keepPoll) {
				return false
			}
		}
	}
	return true
}

func (s *site) balanced(ctx context.Context, product uint32) bool {
	p, err := s.Operator().Product(ctx, product)
	if err != nil || p.Rebuilding {
		return false
	}
	report, err := s.Operator().Reconcile(ctx, product, false)
	return err == nil && report.Balanced != nil && *report.Balanced
}
