package outage

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"seckill/test/market"
)

// commitHeld is how long the first instance is held up before each commit of a
// batch: long enough for a busy machine to kill MariaDB meanwhile.
const commitHeld = 5 * time.Second

// MariaDB dies in the middle of batches. The shop goes on selling; orders stay
// queued and readable; when it is back they appear.
func TestTheStoreIsKilledAndRestarted(t *testing.T) {
	s := open(t, plan{ownStore: true, faults: []string{"store.confirm.before_commit~" + commitHeld.String(), ""}})
	var halfway []string
	s.during(func(ctx context.Context) {
		market.Pause(ctx, warmUp)
		var since time.Time
		halfway, since = s.uncommitted(ctx)
		s.maria.Kill()
		struck := time.Now()
		if took := struck.Sub(since); took >= commitHeld {
			t.Errorf("MariaDB was killed %v after a look at its batches: they may have been committed by then", took)
		}
		t.Logf("killed with %d orders written and not committed", len(halfway))
		c := s.sells(ctx)
		market.Pause(ctx, outage)
		s.wantAnswers(struck, time.Now())
		s.readsQueued(ctx, c)
		s.maria.Start()
		s.engines[0].MustStop()
		s.engines[0].Start() // which is held up no more
		s.Confirmed(c)
		market.Pause(ctx, afterwards)
	})
	s.keepsItsPromises()
	s.wantRows(halfway)
}

// uncommitted waits until a batch is written whose transaction is open, and
// returns its orders with an instant at which they were not written yet.
func (s *site) uncommitted(ctx context.Context) (orders []string, since time.Time) {
	s.t.Helper()
	db := s.tables(s.t)
	defer db.Close()
	began := time.Now()
	before := s.rows(ctx, db, sql.LevelReadUncommitted)
	market.Eventually(s.t, "a batch is written and not committed", func(context.Context) bool {
		since, began = began, time.Now()
		// In this order: what is committed by the second look is not halfway.
		written, committed := s.rows(ctx, db, sql.LevelReadUncommitted), s.rows(ctx, db, sql.LevelReadCommitted)
		for no := range written {
			if !before[no] && !committed[no] {
				orders = append(orders, no)
			}
		}
		before = written
		return len(orders) > 0
	})
	return orders, since
}

// rows are the numbers of the orders that workers have written, as a transaction
// sees them: what a direct product sells is promised after its commit only.
func (s *site) rows(ctx context.Context, db *sql.DB, level sql.IsolationLevel) map[string]bool {
	s.t.Helper()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level, ReadOnly: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	found, err := tx.QueryContext(ctx, `SELECT order_no FROM tb_seckill_order WHERE product_id <> ?`, direct)
	if err != nil {
		s.t.Fatal(err)
	}
	defer found.Close()
	numbers := make(map[string]bool)
	for found.Next() {
		var no string
		if err := found.Scan(&no); err != nil {
			s.t.Fatal(err)
		}
		numbers[no] = true
	}
	if err := found.Err(); err != nil {
		s.t.Fatal(err)
	}
	return numbers
}

// wantRows wants each of the orders to be in the store once.
func (s *site) wantRows(orders []string) {
	s.t.Helper()
	db := s.tables(s.t)
	defer db.Close()
	for _, no := range orders {
		var rows int
		if err := db.QueryRow(`SELECT COUNT(*) FROM tb_seckill_order WHERE order_no = ?`, no).Scan(&rows); err != nil || rows != 1 {
			s.t.Errorf("I4: order %s, which was in a batch, has %d rows (%v)", no, rows, err)
		}
	}
}

// readsQueued reads an order that the store has not heard of, at every
// instance.
func (s *site) readsQueued(ctx context.Context, c *market.Claim) {
	s.t.Helper()
	for range s.engines {
		order, err := s.Read(ctx, c)
		if err != nil || order.Status != "queued" {
			s.t.Errorf("without the store, order %s is %q (%v)", c.No, order.Status, err)
		}
	}
}
