package outage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
	"seckill/test/market"
	"seckill/test/server"
)

// The master dies with writes that its replica never got. Whoever heard of
// them notices with the next call to the new master.
func TestAStaleReplicaTakesOver(t *testing.T) {
	s := open(t, plan{sentinel: true})
	s.during(func(ctx context.Context) {
		market.Pause(ctx, warmUp)
		before := s.epochs(ctx)
		master := s.sentinel.Master()
		s.Lose(s.ledgered()...)
		s.sentinel.Detach(master)
		market.Pause(ctx, warmUp)
		master.Kill()
		s.sentinel.WaitFailover(master)
		s.wantNoticed(ctx, before)
		market.Pause(ctx, afterwards)
	})
	s.keepsItsPromises()
}

// The sentinels have replaced a master that is alive, and one instance, cut
// off from them, goes on with it: for a while there are two ledgers that sell
// the same units. The store sells each of them once, and who came second reads
// that the order failed.
func TestTheOldMasterIsStillReachableByOneInstance(t *testing.T) {
	const units = 4
	s := open(t, plan{
		sentinel: true, products: append(products(), engine.Product{ID: soldTwice, Stock: units, PerUserLimit: 1}),
		// No unit comes back by itself, which would make room for who came second.
		settings: map[string]string{"order.expire_after": "5m"},
	})
	before, old := s.epochs(t.Context()), s.sentinel.Master()
	s.Lose(s.ledgered()...)
	s.sentinel.CutOff(instanceName(0))
	s.sentinel.Hide(old)
	master := s.sentinel.WaitFailover(old)
	s.sentinel.WaitMoved(instanceName(1), old, master)
	s.split.from = time.Now()
	// Before the crowd comes, and before the store has any of it: what either
	// instance does there tells the other that its ledger is not all there is.
	release := s.hold(soldTwice)
	twice := s.sellTwice(units)
	s.wantMarked(old, twice[:units], true)
	s.wantMarked(master, twice[:units], false)
	s.wantMarked(master, twice[units:], true)
	s.wantMarked(old, twice[units:], false)
	release()
	var healed time.Time
	s.pauseWithin = pausedByStore
	s.during(func(ctx context.Context) {
		market.Pause(ctx, outage)
		healed = time.Now()
		s.sentinel.LetIn(instanceName(0))
		s.sentinel.Show(old)
		s.sentinel.WaitDemoted(old)
		s.split.to = time.Now()
		s.wantNoticed(ctx, before)
		market.Pause(ctx, afterwards)
	})
	failed := 0
	for _, c := range twice {
		if order := s.Confirmed(c); order.Status == "failed" && order.Reason == seckill.ReasonLost {
			failed++
		} else if order.Status != "pending" {
			t.Errorf("order %s is %s (%q)", order.OrderNo, order.Status, order.Reason)
		}
	}
	if failed != len(twice)-units {
		t.Errorf("of %d orders of %d units %d failed", len(twice), units, failed)
	}
	apart := slices.DeleteFunc(s.trace.accepted(s.split.from, healed, s.ledgered()...), func(a market.Act) bool { return a.At != s.engines[0] })
	s.keepsItsPromises()
	t.Logf("of the %d orders that the old master sold meanwhile became %v", len(apart), s.became(apart))
}

// pausedByStore is when a pause is met by an instance that has another ledger
// than the one that was told of it: the store tells both, within a second, and
// the machine may be busy.
const pausedByStore = 2 * time.Second

// hold keeps the store from taking orders of a product until it is released.
func (s *site) hold(product uint32) (release func()) {
	s.t.Helper()
	db := s.tables(s.t)
	tx, err := db.BeginTx(s.t.Context(), nil)
	if err == nil {
		var id uint32
		err = tx.QueryRow(`SELECT id FROM tb_seckill_product WHERE id = ? FOR UPDATE`, product).Scan(&id)
	}
	if err != nil {
		s.t.Fatalf("hold product %d: %v", product, err)
	}
	return func() {
		tx.Rollback()
		db.Close()
	}
}

// sellTwice has each instance sell all units of the product that two ledgers
// have, to a buyer each and at once: the first instance's orders come first.
func (s *site) sellTwice(units int) []*market.Claim {
	s.t.Helper()
	sold := make([]*market.Claim, units*len(s.engines))
	var sales sync.WaitGroup
	for i := range sold {
		sold[i] = s.NewClaim(s.NewBuyer(), soldTwice, engine.Purchase{Quantity: 1, Key: "apart"})
		sales.Go(func() {
			err := s.SendTo(s.t.Context(), s.engines[i/units], sold[i])
			for market.Temporary(err) && market.Pause(s.t.Context(), askEvery) {
				err = s.SendTo(s.t.Context(), s.engines[i/units], sold[i])
			}
			if err != nil {
				s.t.Errorf("instance %d did not sell what its ledger had: %v", i/units, err)
			}
		})
	}
	sales.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
	return sold
}

// wantMarked wants a server to know all buyers of that product, or none.
func (s *site) wantMarked(r *server.RedisServer, claims []*market.Claim, known bool) {
	s.t.Helper()
	marks := r.Must("KEYS", fmt.Sprintf("*}:mark:%d:0", soldTwice))
	for _, c := range claims {
		if has := marks != "" && r.Must("HEXISTS", marks, c.Buyer.Name) == "1"; has != known {
			s.t.Errorf("%s has bought at %s: %v, want %v", c.Buyer.Name, r.Addr(), has, known)
		}
	}
}

// became counts promised orders by what they are in the store at last.
func (s *site) became(acts []market.Act) map[string]int {
	s.t.Helper()
	db := s.tables(s.t)
	defer db.Close()
	counts := make(map[string]int)
	for _, a := range acts {
		var status seckill.OrderStatus
		var reason string
		if err := db.QueryRow(`SELECT status, COALESCE(reason, '') FROM tb_seckill_order WHERE order_no = ?`, a.No).Scan(&status, &reason); err != nil {
			s.t.Errorf("I4: order %s: %v", a.No, err)
		}
		counts[strings.TrimSpace(status.String()+" "+reason)]++
	}
	return counts
}
