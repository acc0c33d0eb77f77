package app

import (
	"errors"
	"slices"
	"strings"
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

// One key that somebody has written over must not keep an instance from
// starting, nor its sales from anybody. Until it is mended, anybody of that
// group may have an order.
func TestADamagedGroupIsDoubtedAndHindersNoStart(t *testing.T) {
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	cfg := sharedSettings(t, redis.Addr(), maria.NewDatabase(t), nil)
	a, err := New(cfg, Options{})
	rig.Must(t, err)
	defer a.close()
	const damaged, whole = uint32(1), uint32(2)
	for _, id := range []uint32{damaged, whole} {
		preheated(t, a, id)
	}
	group := redis.Must("KEYS", "*group:1:0")
	redis.Must("SET", strings.Replace(group, "group", "mark", 1), "something else")

	other, err := New(cfg, Options{})
	rig.Must(t, err)
	defer other.close()
	p := other.parts
	p.memory.Trust(p.memory.Doubts()) // as after the board is joined
	if !p.memory.MayHoldIn(damaged, "zoe") || p.memory.MayHoldIn(whole, "zoe") {
		t.Errorf("the damaged group is doubted: %v, the other: %v", p.memory.MayHoldIn(damaged, "zoe"), p.memory.MayHoldIn(whole, "zoe"))
	}
	raised, ok := p.signals.troubles.take()
	if _, more := p.signals.troubles.take(); !ok || more || raised.product != damaged || !errors.Is(raised.err, ledger.ErrDamaged) {
		t.Errorf("raised %+v, %v", raised, ok)
	}
	if err := p.remember(t.Context()); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("read again: %v", err)
	}
	if again, ok := p.signals.troubles.take(); ok {
		t.Errorf("raised again: %+v", again)
	}

	p.look(t.Context(), damaged)
	rig.Must(t, p.rememberGroups(t.Context(), p.memory.InDoubt))
	if p.memory.MayHoldIn(damaged, "zoe") {
		t.Error("the group is doubted after its recovery")
	}
}

// preheated puts ten units of a product on sale.
func preheated(t *testing.T, a *App, id uint32) {
	t.Helper()
	now := time.Now()
	_, err := a.parts.desk.Create(t.Context(), seckill.Product{
		ID: id, Group: id, Name: "product", PriceCents: 999, Currency: "CNY", Stock: 10, PerUserLimit: 1, Shards: 1,
		Strategy: seckill.StrategyAsync, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
	}, rig.Operator)
	rig.Must(t, err)
	_, err = a.parts.desk.Preheat(t.Context(), id, rig.Operator)
	rig.Must(t, err)
}
