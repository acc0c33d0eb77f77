package app

import (
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
	"seckill/test/rig"
	"seckill/test/server"
)

// A fallback share needs its buyers remembered. Those of a direct product, who
// may be millions, the store is asked for one by one.
func TestInstancesThatShareAStoreDoNotReadTheBuyersOfDirectProducts(t *testing.T) {
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	a, err := New(sharedSettings(t, redis.Addr(), maria.NewDatabase(t), nil), Options{})
	rig.Must(t, err)
	defer a.close()
	p := a.parts
	const direct, share = uint32(1), uint32(2)
	now := time.Now()
	for id, as := range map[uint32]struct {
		strategy seckill.Strategy
		origin   seckill.Origin
		share    float64
	}{
		direct: {seckill.StrategyDirect, seckill.OriginDirect, 0},
		share:  {seckill.StrategyAsync, seckill.OriginFallback, 0.5},
	} {
		_, err := p.desk.Create(t.Context(), seckill.Product{
			ID: id, Group: id, Name: "product", PriceCents: 999, Currency: "CNY", Stock: 10, PerUserLimit: 1, Shards: 1,
			Strategy: as.strategy, FallbackShare: as.share, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
		}, rig.Operator)
		rig.Must(t, err)
		_, err = p.desk.Preheat(t.Context(), id, rig.Operator)
		rig.Must(t, err)
		sold, err := p.store.Sell(t.Context(), store.SellRequest{
			ProductID: id, Origin: as.origin, ExpireAfter: time.Hour,
			Claims: []seckill.Claim{{OrderNo: seckill.NewOrderNo(now, id, uint64(id)), Buyer: "bob", Quantity: 1}},
		})
		rig.Must(t, err)
		if verdict := sold.Verdicts[0].Code; verdict != ledger.VerdictAccepted {
			t.Fatalf("product %d: the store answered %v", id, verdict)
		}
	}
	rig.Must(t, p.remember(t.Context()))
	if got := p.memory.Groups(); !slices.Equal(got, []uint32{share}) {
		t.Errorf("buyers of groups %v are remembered, want those of the share", got)
	}
}
