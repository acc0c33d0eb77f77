package outage

import (
	"context"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
	"seckill/test/market"
)

// While Redis is away the store sells the fallback share, and the ledger sells
// again when it is back; the promises hold across the switch in both
// directions.
func TestTheShareSellsWhileRedisIsAway(t *testing.T) {
	s := open(t, plan{products: append(sharing(), spares()...)})
	s.during(func(ctx context.Context) {
		market.Pause(ctx, warmUp)
		for range 2 {
			s.Confirmed(s.sells(ctx))
			before := s.shareReserved(ctx)
			s.redis.Kill()
			c := s.sells(ctx)
			order := s.Confirmed(c) // at once: the store sold it
			if order.Status == "failed" {
				t.Errorf("an order of the share is %+v", order)
			}
			market.Pause(ctx, outage/2)
			s.redis.Start()
			if took := s.sellsAll(ctx, time.Now()); took > hard*sellWithin {
				t.Errorf("the ledger sold again after %v", took)
			}
			if now := s.shareReserved(ctx); now <= before {
				t.Errorf("the share had sold %d units before the outage, and %d after it", before, now)
			}
		}
		market.Pause(ctx, afterwards)
	})
	s.keepsItsPromises()
}

// sharing are products of which more than one have a share.
func sharing() []engine.Product {
	all := products()
	for i := range all {
		switch all[i].ID {
		case spared, sharded, shared:
			all[i].FallbackShare = 0.5
		}
	}
	return all
}

// shareReserved is how many units of the spared product's share have been sold,
// dead orders included.
func (s *site) shareReserved(ctx context.Context) (units int64) {
	s.t.Helper()
	db := s.tables(s.t)
	defer db.Close()
	err := db.QueryRowContext(ctx, `SELECT COALESCE(SUM(quantity), 0) FROM tb_seckill_order WHERE product_id = ? AND origin = ?`,
		spared, int(seckill.OriginFallback)).Scan(&units)
	if err != nil {
		s.t.Fatal(err)
	}
	return units
}
