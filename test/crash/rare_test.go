package crash

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgermem"
	"seckill/test/engine"
	"seckill/test/market"
)

// rareOrdeals are those that need more than a request: time that passes, a
// store that refuses a row, a file that somebody has touched.
func rareOrdeals(around func(string) []string) []ordeal {
	var all []ordeal
	add := func(o ordeal, points ...string) {
		for _, point := range points {
			o.point = point
			all = append(all, o)
		}
	}
	short := map[string]string{"order.expire_after": "2s"}
	add(ordeal{while: "expire", settings: short, prepare: overdue}, around("store.expire")...)
	add(ordeal{while: "release an expired order", settings: short, prepare: overdue},
		append(append(around("ledger"), around("store.release")...), "release.after_ledger")...)
	add(ordeal{while: "warn", settings: short, prepare: almostDue}, around("store.warn")...)

	oneLong := map[string]string{"worker.retry_delays": "1h"}
	add(ordeal{while: "retry", settings: oneLong, prepare: parked, drive: retrying, after: retried}, around("store.letter")...)
	add(ordeal{while: "adopt", settings: oneLong, prepare: parkedLate, drive: retrying, after: retried},
		"worker.after_adopt")
	add(ordeal{while: "refuse adoption", settings: oneLong, prepare: parkedLate, drive: refusingAdoption, after: refused}, around("store.fail")...)
	oneShort := map[string]string{"worker.retry_delays": "10ms"}
	add(ordeal{while: "discard", settings: oneShort, prepare: dead, after: discarded}, around("store.discard")...)

	add(ordeal{while: "repair", prepare: wrongRecord, drive: repairing, after: repaired}, append(around("store.repair"), around("store.audit")...)...)
	add(ordeal{while: "forget a lost journal", prepare: lostJournal, drive: buying}, around("store.witness")...)
	add(ordeal{while: "compact", prepare: longJournal, drive: buying}, "ledger.compact.between")
	return all
}

// overdue has an order whose time to pay passes while nobody looks.
func overdue(s *scene) {
	s.order = s.Buy(sneaker, 1)
	due := s.Confirmed(s.order).PayBefore.Time()
	s.engine.Kill()
	market.Pause(s.T.Context(), time.Until(due))
}

// almostDue has an order whose last sixth of the time to pay begins while
// nobody looks.
func almostDue(s *scene) {
	s.order = s.Buy(sneaker, 1)
	due := s.Confirmed(s.order).PayBefore.Time()
	s.engine.Kill()
	market.Pause(s.T.Context(), time.Until(due.Add(-250*time.Millisecond)))
}

const (
	poison   = `CREATE TRIGGER poison BEFORE INSERT ON tb_seckill_order WHEN NEW.ref = 'poison' AND NEW.status = 0 BEGIN SELECT RAISE(ABORT, 'poisoned'); END`
	antidote = `DROP TRIGGER poison`
)

// touch changes the store's file while the engine does not run.
func (s *scene) touch(statements ...string) {
	s.T.Helper()
	s.engine.Kill()
	db := market.OpenStore(s.T, s.engine)
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			s.T.Fatal(err)
		}
	}
}

// poisoned has an order that the store refuses, and waits for a letter that
// satisfies.
func (s *scene) poisoned(enough func(api.Letter) bool) {
	s.T.Helper()
	s.touch(poison)
	s.engine.Start()
	s.order = s.NewClaim(s.NewBuyer(), sneaker, engine.Purchase{Quantity: 1, Key: "first", Ref: "poison"})
	if err := market.UntilAnswered(s.T, "buy", func(ctx context.Context) error { return s.Send(ctx, s.order) }); err != nil {
		s.T.Fatal(err)
	}
	market.Eventually(s.T, "the claim is a letter", func(ctx context.Context) bool {
		letters, err := s.Operator().Letters(ctx)
		return err == nil && len(letters) == 1 && enough(letters[0])
	})
	// A stop acknowledges the entry. Killed just before that, the engine would be
	// given it again at its next start, and confirm it, which is no letter then.
	s.engine.MustStop()
	s.touch(antidote)
}

func parked(s *scene) { s.poisoned(func(api.Letter) bool { return true }) }

func dead(s *scene) {
	s.poisoned(func(l api.Letter) bool { return l.State == "dead" })
	s.engine.Set("worker.discard_after", "100ms")
}

// retrying has the operator retry the letter.
func retrying(s *scene) {
	letters, err := s.Operator().Letters(s.T.Context())
	if err == nil && len(letters) == 1 {
		s.Operator().RetryLetter(s.T.Context(), letters[0].ID)
	}
}

// retried retries until the order is an order.
func retried(s *scene) {
	market.Eventually(s.T, "the letter's order is confirmed", func(ctx context.Context) bool {
		retrying(s)
		order, err := s.Read(ctx, s.order)
		return err == nil && order.Status != "queued"
	})
	if order := s.Confirmed(s.order); order.Status != "pending" {
		s.T.Errorf("the letter's order is %s (%s), not pending", order.Status, order.Reason)
	}
}

// parkedLate has a letter for which the ledger holds nothing: its claim was
// tried before the ledger was rebuilt, and parked after.
func parkedLate(s *scene) {
	parked(s)
	s.touch(`UPDATE tb_dead_letter SET closed_time = create_time`)
	s.engine.Start()
	s.Rebuild(sneaker)
	if _, err := s.Operator().Recover(s.T.Context(), sneaker); err != nil {
		s.T.Fatal(err)
	}
	s.touch(`UPDATE tb_dead_letter SET closed_time = NULL`)
}

// refusingAdoption lets the letter's buyer use up the limit in the new epoch.
func refusingAdoption(s *scene) {
	s.Send(s.T.Context(), s.NewClaim(s.order.Buyer, sneaker, engine.Purchase{Quantity: limit, Key: "second"}))
	retrying(s)
}

func refused(s *scene) {
	if order := s.Confirmed(s.order); order.Status != "failed" || order.Reason != seckill.ReasonLimit {
		s.T.Errorf("the letter's order is %s (%s), not failed for the limit", order.Status, order.Reason)
	}
}

func discarded(s *scene) {
	s.engine.Kill()
	s.engine.Unset("worker.retry_delays")
	s.engine.Start() // discard_after is still short
	if order := s.Confirmed(s.order); order.Status != "failed" || order.Reason != seckill.ReasonDiscarded {
		s.T.Errorf("the letter's order is %s (%s), not failed by its age", order.Status, order.Reason)
	}
	s.Discard(s.order) // the one failure without a new epoch
}

// wrongRecord has a buyer record that contradicts the orders.
func wrongRecord(s *scene) {
	pending(s)
	s.touch(`UPDATE tb_user_seckill SET quantity = quantity + 1`)
}

func repaired(s *scene) {
	if report, err := s.Operator().Reconcile(s.T.Context(), sneaker, true); err != nil || report.Balanced == nil || !*report.Balanced {
		s.T.Errorf("repair again: %v, %+v", err, report)
	}
}

// lostJournal has lost its journal: the engine recovers, and forgets what the
// lost one had confirmed.
func lostJournal(s *scene) {
	pending(s)
	s.engine.Kill()
	aside(s.T, s.engine)
	s.Rebuild(sneaker)
}

// longJournal has a journal so long that it is compacted at the next write.
func longJournal(s *scene) {
	pending(s)
	s.engine.Kill()
	ctx := s.T.Context()
	l, err := ledgermem.Open(ctx, filepath.Join(s.engine.DataDir, "journal.db"), ledgermem.Options{CompactRows: 1 << 40, CompactBytes: 1 << 40})
	if err != nil {
		s.T.Fatal(err)
	}
	shard := ledger.Shard{Product: sneaker, Group: sneaker, Epoch: 1}
	var group sync.WaitGroup
	for n := range 512 {
		group.Go(func() {
			for rows := int64(0); rows < ledgermem.DefaultCompactRows+1000; rows, _ = l.JournalSize() {
				state := seckill.SaleState(n % 2) // open, paused
				if _, err := l.SetState(ctx, shard, state, 0); err != nil {
					s.T.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if _, err := l.SetState(ctx, shard, seckill.SaleOpen, 0); err != nil {
		s.T.Fatal(err)
	}
	if err := l.Shutdown(ctx); err != nil {
		s.T.Fatal(err)
	}
}
