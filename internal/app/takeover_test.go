package app

import (
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
	"seckill/test/rig"
	"seckill/test/server"
)

// An instance has a lease before it knows an epoch. If the lease lapsed, the
// instance may have missed a takeover, and reads the epochs again.
func TestInstance_KeepsALeaseAndReadsTheEpochsAfterALapse(t *testing.T) {
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	cfg := sharedSettings(t, redis.Addr(), maria.NewDatabase(t), nil)
	a, err := New(cfg, Options{})
	rig.Must(t, err)
	defer a.close()
	b, err := New(cfg, Options{})
	rig.Must(t, err)
	p := a.parts
	names := func() (all []string) {
		t.Helper()
		rig.Must(t, p.membership.Keep(t.Context())) // no loop does so here
		instances, err := p.store.Instances(t.Context())
		rig.Must(t, err)
		for i := range instances {
			all = append(all, instances[i].Name)
		}
		return all
	}
	want := []string{p.name, b.parts.name}
	slices.Sort(want)
	rig.Until(t, "both have a lease", func() bool {
		rig.Must(t, b.parts.membership.Keep(t.Context()))
		return slices.Equal(names(), want)
	})
	b.close()
	if got := names(); !slices.Equal(got, []string{p.name}) {
		t.Errorf("after one has stopped: leases of %v", got)
	}

	preheated(t, a, 1)
	seen := p.catalog.Find(1).Terms()
	_, err = p.store.TakeOver(t.Context(), 1, seen.Epoch, store.Actor{Name: "another instance"})
	rig.Must(t, err)
	if p.lifecycle.TakenOver(1) {
		t.Fatal("the takeover is known already: the test shows nothing")
	}
	rig.Must(t, p.store.LeaveInstance(t.Context(), p.name)) // as if the lease had run out
	rig.Must(t, p.membership.Keep(t.Context()))
	if now := p.catalog.Find(1).Terms(); now.Seller != seckill.SellerStore || !p.lifecycle.TakenOver(1) || !slices.Equal(names(), []string{p.name}) {
		t.Errorf("after a lapse it knows %+v", now)
	}
}

// What an instance hears of a ledger it says with its lease.
func TestInstance_SaysWhichLedgersAreSilent(t *testing.T) {
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	cfg := sharedSettings(t, redis.Addr(), maria.NewDatabase(t), nil)
	cfg.Ledger.TakeoverAfter = 1 // at once
	a, err := New(cfg, Options{})
	rig.Must(t, err)
	defer a.close()
	p := a.parts
	preheated(t, a, 1) // waits for its ledger
	now := time.Now()
	_, err = p.lifecycle.Create(t.Context(), seckill.Product{
		ID: 2, Group: 2, Name: "product", PriceCents: 999, Currency: "CNY", Stock: 10, PerUserLimit: 1, Shards: 1,
		Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackStore, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
	}, rig.Operator)
	rig.Must(t, err)
	_, err = p.lifecycle.Preheat(t.Context(), 2, rig.Operator)
	rig.Must(t, err)
	silent := func() []uint32 {
		t.Helper()
		rig.Must(t, p.membership.Keep(t.Context()))
		instances, err := p.store.Instances(t.Context())
		rig.Must(t, err)
		return instances[0].Silent
	}
	rig.Must(t, p.heartbeat.Round(t.Context()))
	redis.Kill()
	if err := p.heartbeat.Round(t.Context()); err == nil {
		t.Fatal("a dead Redis was heard")
	}
	if got := silent(); !slices.Equal(got, []uint32{2}) {
		t.Errorf("products %v are silent, want the one that may be taken over", got)
	}
}
