package app

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/purchase"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/test/rig"
	"seckill/test/server"
)

// The buyers of a direct product may be millions. Among several instances its
// flag holds back no proven buyer: the store is asked for them one by one.
func TestInstancesThatShareAStoreDoNotReadTheBuyersOfDirectProducts(t *testing.T) {
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	a, err := New(sharedSettings(t, redis.Addr(), maria.NewDatabase(t), nil), Options{})
	rig.Must(t, err)
	defer a.close()
	p, now := a.parts, time.Now()
	_, err = p.lifecycle.Create(t.Context(), seckill.Product{
		ID: 1, Group: 1, Name: "product", PriceCents: 999, Currency: "CNY", Stock: 10, PerUserLimit: 1, Shards: 1,
		Strategy: seckill.StrategyDirect, Fallback: seckill.FallbackWait, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
	}, rig.Operator)
	rig.Must(t, err)
	preheated, err := p.lifecycle.Preheat(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	sold, err := p.store.Sell(t.Context(), store.SellRequest{
		ProductID: 1, Epoch: preheated.Epoch, ExpireAfter: time.Hour,
		Claims: []seckill.Claim{{OrderNo: seckill.NewOrderNo(now, 1, 1), Buyer: "bob", Quantity: 1}},
	})
	rig.Must(t, err)
	if verdict := sold.Verdicts[0].Code; verdict != ledger.VerdictAccepted {
		t.Fatalf("the store answered %v", verdict)
	}
	rig.Must(t, p.buyersRead.ReadAll(t.Context()))
	if got := p.memory.Groups(); len(got) != 0 {
		t.Errorf("buyers of groups %v are remembered", got)
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
	if err := p.buyersRead.Read(t.Context(), p.memory.InDoubt); !errors.Is(err, sale.ErrUnread) || !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("read again: %v", err)
	}

	// The first claim meets the damage, and has the product recovered.
	if _, err := p.stage.Buy(p.catalog.Find(damaged), purchase.Claim{Buyer: "ann", Quantity: 1}); seckill.CodeOf(err) != seckill.CodeBusy {
		t.Errorf("a claim was answered %v", err)
	}
	if waiting := p.requests.Waiting(); !slices.Equal(waiting, []uint32{damaged}) {
		t.Errorf("a recovery of %v was asked for", waiting)
	}
	p.supervisor.Look(t.Context(), damaged)
	rig.Must(t, p.buyersRead.Read(t.Context(), p.memory.InDoubt))
	if p.memory.MayHoldIn(damaged, "zoe") {
		t.Error("the group is doubted after its recovery")
	}
}

// preheated puts ten units of a product on sale.
func preheated(t *testing.T, a *App, id uint32) {
	t.Helper()
	now := time.Now()
	_, err := a.parts.lifecycle.Create(t.Context(), seckill.Product{
		ID: id, Group: id, Name: "product", PriceCents: 999, Currency: "CNY", Stock: 10, PerUserLimit: 1, Shards: 1,
		Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
	}, rig.Operator)
	rig.Must(t, err)
	_, err = a.parts.lifecycle.Preheat(t.Context(), id, rig.Operator)
	rig.Must(t, err)
}
