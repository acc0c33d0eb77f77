package storesql

import (
	"context"
	"testing"
	"time"

	"seckill"
)

// A confirmation for a member of a limit group has locked the member, and waits for the group's
// owner. A transaction that marks all products must not lock the owner first and then wait for
// the member: that would be a deadlock.
func TestWitnessLost_LocksProductsInTheCommonOrder(t *testing.T) {
	s := openMaria(t)
	owner := sale(t, s, 1) // the first row of the table
	member := sale(t, s, 1, func(p *seckill.Product) { p.ID, p.Group = owner.ID+1, owner.ID })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	requested := make(chan error, 1)
	err := s.db.write(ctx, func(tx *session) error {
		if err := lockRow(ctx, tx, member.ID); err != nil {
			return err
		}
		go func() {
			_, err := s.WitnessLost(ctx, nil, nil)
			requested <- err
		}()
		waitForLock(ctx, t, s)
		_, err := tx.row(ctx, sqlLockProduct+` FOR UPDATE NOWAIT`, []any{owner.ID}, new(uint32))
		return err
	})
	if err != nil {
		t.Errorf("the owner is locked by a transaction that waits for its member: %v", err)
	}
	if err := <-requested; err != nil {
		t.Error(err)
	}
}

// A loss of the queue locks every product. One statement per product would take seconds on a
// busy server, while all sales and rebuilds wait.
func TestLockProducts_FewStatementsForThousandsOfProducts(t *testing.T) {
	const products = 2000
	s := openMaria(t)
	groups := make(map[uint32]uint32, products)
	for id := uint32(1); id <= products; id++ {
		groups[id] = id
		if id%2 == 0 {
			groups[id] = id - 1
		}
	}
	err := s.db.write(t.Context(), func(tx *session) error {
		before := tx.ran.Load()
		err := lockProducts(t.Context(), tx, groups)
		if ran := tx.ran.Load() - before; ran > products/preparedRows {
			t.Errorf("%d statements", ran)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// waitForLock waits until a transaction waits for a product of this database.
func waitForLock(ctx context.Context, t *testing.T, s *Store) {
	t.Helper()
	const query = `SELECT COUNT(*) FROM information_schema.PROCESSLIST p JOIN information_schema.INNODB_TRX w ON w.trx_mysql_thread_id = p.id
		WHERE p.db = DATABASE() AND w.trx_state = 'LOCK WAIT'`
	tick := time.NewTicker(150 * time.Millisecond) // InnoDB refreshes the table only after 100 ms without a reader
	defer tick.Stop()
	for waiting := 0; waiting == 0; <-tick.C {
		err := s.read(ctx, "look for a lock", func(ctx context.Context, r *session) error {
			_, err := r.row(ctx, query, nil, &waiting)
			return err
		})
		if err != nil {
			t.Error(err)
			return
		}
	}
}
