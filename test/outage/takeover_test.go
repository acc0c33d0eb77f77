package outage

import (
	"context"
	"maps"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
	"seckill/test/market"
)

// takeoversEnv is how often a sale is taken over and returned. It also has every
// fault of the stories below happen; unset, it is once, with the faults that
// differ most.
const takeoversEnv = "SECKILL_TAKEOVERS"

func takeoverRounds(t *testing.T) (rounds int, all bool) {
	t.Helper()
	text := os.Getenv(takeoversEnv)
	if text == "" {
		return 1, false
	}
	rounds, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return rounds, true
}

// falling are products that fall back on the store, one of every way in which
// the ledger sells.
func falling() []engine.Product {
	all := products()
	for i := range all {
		if all[i].Strategy != string(seckill.StrategyDirect) {
			all[i].Fallback = string(seckill.FallbackStore)
		}
	}
	return all
}

// soldBy waits until every product with a ledger is sold by somebody.
func (s *site) soldBy(ctx context.Context, seller string) {
	s.t.Helper()
	for id, p := range s.Products {
		if p.Strategy == string(seckill.StrategyDirect) {
			continue
		}
		market.Eventually(s.t, "product "+strconv.Itoa(int(id))+" is sold by the "+seller, func(context.Context) bool {
			for _, e := range s.engines {
				if figures, err := e.Operator().Stats(ctx, id); err == nil {
					return figures.Seller == seller
				}
			}
			return false
		})
	}
}

// Redis is killed; it is frozen, for 20 s if every fault is to happen, and answers
// again while the takeover is under way; one instance is cut off from it, which is no reason to take a sale over,
// and an operator does so all the same. The store sells all that is left, the
// ledger sells again afterwards, and every promise keeps its unit.
func TestTakeover_PromisesKeepTheirUnits(t *testing.T) {
	_, all := takeoverRounds(t)
	frozen, held := time.Duration(0), "takeover.before_ack~1s"
	if all { // Redis is back before the instances acknowledge
		frozen, held = 20*time.Second, "takeover.before_ack~20s"
	}
	s := open(t, plan{products: falling(), networks: true, faults: []string{held, held}})
	moving := func(ctx context.Context) bool {
		figures, err := s.engines[0].Operator().Stats(ctx, spared)
		return err == nil && figures.Seller == api.SellerMoving
	}
	s.during(func(ctx context.Context) {
		market.Pause(ctx, warmUp)
		s.Away(s.ledgered()...)
		s.redis.Kill()
		s.soldBy(ctx, api.SellerStore)
		if order := s.Confirmed(s.sells(ctx)); order.Status == "failed" {
			t.Errorf("an order of the store is %+v", order)
		}
		s.redis.Start()
		s.soldBy(ctx, api.SellerLedger)

		market.Pause(ctx, warmUp)
		s.redis.Pause()
		thawed := time.Now().Add(frozen)
		market.Eventually(t, "the takeover has begun", moving)
		market.Pause(ctx, time.Until(thawed))
		if all && !moving(ctx) {
			t.Error("the takeover was over before Redis was back")
		}
		s.redis.Resume()
		s.Back()
		s.soldBy(ctx, api.SellerLedger)
		if !all {
			return
		}
		market.Pause(ctx, warmUp)
		s.toRedis[0].Cut()
		market.Pause(ctx, outage)
		s.soldBy(ctx, api.SellerLedger)
		s.takeOver(ctx, s.engines[1])
		s.soldBy(ctx, api.SellerStore)
		s.Confirmed(s.sells(ctx))
		s.toRedis[0].Heal()
		s.soldBy(ctx, api.SellerLedger)
		market.Pause(ctx, afterwards)
	})
	s.keepsItsPromises()
	s.wantAllKept()
}

// Redis is emptied while the store sells: nobody misses what it held. Then the
// double partition: one instance is cut off from the store, and alone still
// reaches Redis, while the other one takes over. Its promises may fail; no unit
// is sold twice.
func TestTakeover_TwoSellersSellNoUnitTwice(t *testing.T) {
	_, all := takeoverRounds(t)
	s := open(t, plan{products: falling(), networks: true})
	s.pauseWithin = pausedByStore
	s.during(func(ctx context.Context) {
		market.Pause(ctx, warmUp)
		if all {
			s.redis.Kill()
			s.soldBy(ctx, api.SellerStore)
			s.redis.Start()
			s.redis.FlushAll()
			s.soldBy(ctx, api.SellerLedger)
		}
		s.Lose(slices.Collect(maps.Keys(s.Products))...) // what instance 0 promises may fail
		s.split.from = time.Now()                        // there are two sellers until both are together again
		s.toStore[0].Cut()
		s.toRedis[1].Cut()
		market.Eventually(t, "the store sells", func(context.Context) bool {
			figures, err := s.engines[1].Operator().Stats(ctx, spared)
			return err == nil && figures.Seller == api.SellerStore
		})
		market.Pause(ctx, warmUp)
		s.toStore[0].Heal()
		s.toRedis[1].Heal()
		s.soldBy(ctx, api.SellerLedger)
		s.split.to = time.Now()
		market.Pause(ctx, afterwards)
	})
	s.keepsItsPromises()
}

// Redis freezes as it is asked for the last unit, and the buyer hears busy. The
// store takes over and sells the unit. Redis goes on and reserves: that order fails
// when it turns up, and its buyer reads so. If Redis was closed first, there is no
// such order.
func TestTakeover_ReservationThatNobodyHeardOfFailsIfItsUnitIsSold(t *testing.T) {
	t.Parallel()
	const last = asyncOne
	s := open(t, plan{
		products: []engine.Product{{ID: last, Stock: 1, PerUserLimit: 1, Fallback: string(seckill.FallbackStore)}},
		settings: map[string]string{"order.expire_after": "10m"},
	})
	s.Away(last)
	s.redis.Pause()
	unheard := s.NewClaim(s.NewBuyer(), last, engine.Purchase{Quantity: 1, Key: "unheard"})
	if err := s.Send(t.Context(), unheard); engine.CodeOf(err) != seckill.CodeBusy {
		t.Fatalf("a purchase while Redis is frozen: %v", err)
	}
	s.soldBy(t.Context(), api.SellerStore)
	s.Pay(s.Buy(last, 1))
	s.redis.Resume()
	s.Back()
	s.soldBy(t.Context(), api.SellerLedger)
	err := market.UntilAnswered(t, "repeat the key", func(ctx context.Context) error { return s.Send(ctx, unheard) })
	switch {
	case err == nil:
		if order := s.Confirmed(unheard); order.Status != "failed" || order.Reason != seckill.ReasonLost {
			t.Errorf("the order that nobody heard of is %+v", order)
		}
	case engine.CodeOf(err) != seckill.CodeSoldOut:
		t.Errorf("the key, repeated: %v", err)
	}
	t.Logf("the key, repeated: order %q, %v", s.OrderNo(unheard), err)
	s.keepsItsPromises()
}

// An instance stops while Redis is frozen, and nobody has written its promises
// yet. It writes them before it leaves, so that they keep their units.
func TestTakeover_StoppedInstanceHasWrittenItsPromises(t *testing.T) {
	t.Parallel()
	const stock = 10
	s := open(t, plan{
		roles:    [][]string{{engine.RoleShop}, {engine.RoleShop, engine.RoleAdmin}, {engine.RoleWorker}},
		products: []engine.Product{{ID: asyncOne, Stock: stock, PerUserLimit: 1, Fallback: string(seckill.FallbackStore)}},
		settings: map[string]string{"order.expire_after": "10m"},
	})
	s.engines[2].Signal(syscall.SIGSTOP)
	var promised []*market.Claim
	for range stock {
		claim := s.NewClaim(s.NewBuyer(), asyncOne, engine.Purchase{Quantity: 1, Key: "promised"})
		err := market.UntilAnswered(t, "buy", func(ctx context.Context) error { return s.SendTo(ctx, s.engines[0], claim) })
		if err != nil {
			t.Fatal(err)
		}
		promised = append(promised, claim)
	}
	s.Away(asyncOne)
	s.redis.Pause()
	s.engines[2].Signal(syscall.SIGCONT)
	if err := s.engines[0].Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	market.Eventually(t, "the store sells", func(ctx context.Context) bool {
		figures, err := s.engines[1].Operator().Stats(ctx, asyncOne)
		return err == nil && figures.Seller == api.SellerStore
	})
	late := s.NewClaim(s.NewBuyer(), asyncOne, engine.Purchase{Quantity: 1, Key: "late"})
	err := market.UntilAnswered(t, "ask for one more", func(ctx context.Context) error { return s.SendTo(ctx, s.engines[1], late) })
	if engine.CodeOf(err) != seckill.CodeSoldOut {
		t.Errorf("a unit beyond those that are promised: %v", err)
	}
	s.redis.Resume()
	s.Back()
	s.engines[0].Start()
	for _, claim := range promised {
		if order := s.Confirmed(claim); order.Status == "failed" {
			t.Errorf("a promise of the instance that stopped is %+v", order)
		}
	}
	s.keepsItsPromises()
}

// Sales are taken over and returned again and again, under load.
func TestTakeover_ManyTimesUnderLoad(t *testing.T) {
	rounds, _ := takeoverRounds(t)
	s := open(t, plan{products: products(), settings: map[string]string{"ledger.return_after": "1h"}})
	s.during(func(ctx context.Context) {
		market.Pause(ctx, warmUp)
		for i := range rounds {
			s.takeOver(ctx, s.engines[i%2])
			s.soldBy(ctx, api.SellerStore)
			market.Pause(ctx, afterwards/2)
			for id, p := range s.Products {
				if p.Strategy != string(seckill.StrategyDirect) {
					market.Eventually(t, "the product returns", func(ctx context.Context) bool {
						_, err := s.engines[i%2].Operator().Recover(ctx, id)
						return err == nil
					})
				}
			}
			s.soldBy(ctx, api.SellerLedger)
			market.Pause(ctx, afterwards/2)
		}
	})
	s.keepsItsPromises()
	s.wantAllKept()
}

// takeOver has an operator take every product with a ledger over.
func (s *site) takeOver(ctx context.Context, at *engine.Engine) {
	s.t.Helper()
	for id, p := range s.Products {
		if p.Strategy == string(seckill.StrategyDirect) {
			continue
		}
		market.Eventually(s.t, "the product is taken over", func(context.Context) bool {
			_, err := at.Operator().TakeOver(ctx, id)
			return err == nil
		})
	}
}

// wantAllKept wants that no promise has failed for want of units, or over the
// limit. An order that failed before anybody had its number was none.
func (s *site) wantAllKept() {
	s.t.Helper()
	failures := s.evidence().failures()
	if failed := failures[seckill.ReasonLost] + failures[seckill.ReasonLimit]; failed != 0 {
		s.t.Errorf("%d promises failed, though nothing was lost", failed)
	}
}
