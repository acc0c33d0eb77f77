package app

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/config"
	"seckill/internal/ledger"
	"seckill/internal/store"
	"seckill/test/rig"
	"seckill/test/server"
)

// onCluster is an instance's settings on a Cluster of which every master can be
// stopped, and a product at home on each of two of them: not that of the first
// bucket, which has the ledger's clock.
func onCluster(t *testing.T) (cfg *config.Config, first, away *server.RedisServer, gone, alive uint32) {
	t.Helper()
	cluster := server.Cluster(t, server.ClusterOptions{Args: []string{"--cluster-require-full-coverage", "no"}})
	maria := server.SharedMariaDB(t)
	cfg = sharedSettings(t, strings.Join(cluster.Addrs(), ","), maria.NewDatabase(t), nil)
	a, err := New(cfg, Options{})
	rig.Must(t, err)
	defer func() { rig.Must(t, a.close()) }()
	first = cluster.Owner(cluster.Slot("{b0}"))
	for id := uint32(1); gone == 0 || alive == 0; id++ {
		preheated(t, a, id)
		var home *server.RedisServer
		for _, node := range cluster.Nodes() {
			if strings.TrimSpace(node.Must("KEYS", fmt.Sprintf("*:shard:%d:0", id))) != "" {
				home = node
			}
		}
		switch {
		case home == first:
		case away == nil || home == away:
			away, gone = home, id
		default:
			alive = id
		}
	}
	return cfg, first, away, gone, alive
}

// heardOnce calls once when something is logged whose message and error have
// these words.
type heardOnce struct {
	slog.Handler
	message, cause string
	once           sync.Once
	call           func()
}

func (h *heardOnce) Enabled(context.Context, slog.Level) bool { return true }

func (h *heardOnce) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" && strings.Contains(r.Message, h.message) && strings.Contains(a.Value.String(), h.cause) {
			h.once.Do(h.call)
		}
		return true
	})
	return nil
}

// A start finds the master with the clock away, which comes back meanwhile: it
// waits as for all of Redis.
func TestAStartWaitsForTheMasterWithTheClock(t *testing.T) {
	cfg, first, _, gone, alive := onCluster(t)
	waited := false
	first.Pause()
	a, err := New(cfg, Options{Logger: slog.New(&heardOnce{
		Handler: slog.DiscardHandler, message: "waiting for", cause: "clock",
		call: func() { waited = true; first.Resume() },
	})})
	rig.Must(t, err)
	if !waited {
		t.Error("it was not waited for")
	}
	m := a.parts.memory
	m.Trust(m.Doubts()) // as after the board is joined
	if m.MayHoldIn(gone, "zoe") || m.MayHoldIn(alive, "zoe") {
		t.Error("groups are doubted that were read")
	}
	rig.Must(t, a.close())
}

// A master that stays away keeps no instance from selling and counting those of the
// others. Whoever asks for one of its own may have an order.
func TestAMasterThatStaysAwayHindersNeitherStartNorCount(t *testing.T) {
	cfg, _, away, gone, alive := onCluster(t)
	a, err := New(cfg, Options{})
	rig.Must(t, err)
	defer a.close()
	p := a.parts
	for _, c := range []struct {
		name       string
		stop, back func()
	}{{"frozen", away.Pause, away.Resume}, {"dead", away.Kill, away.Start}} {
		name := c.name
		c.stop()
		if _, err := p.lifecycle.Stats(t.Context(), alive); err != nil {
			t.Errorf("%s: figures of a product on another master: %v", name, err)
		}
		if _, err := p.lifecycle.Stats(t.Context(), gone); seckill.CodeOf(err) != seckill.CodeBusy {
			t.Errorf("%s: figures of a product on the one that is away: %v", name, err)
		}
		if report, err := p.reconciler.Run(t.Context(), alive, false, "test"); err != nil || report.Balanced == nil || !*report.Balanced {
			t.Errorf("%s: the count of a product on another master: %+v, %v", name, report, err)
		}
		began := time.Now()
		rig.Must(t, p.buyersRead.ReadAll(t.Context()))
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%s: the buyers were read for %v", name, took)
		}
		p.memory.Trust(p.memory.Doubts())
		if !p.memory.MayHoldIn(gone, "zoe") || p.memory.MayHoldIn(alive, "zoe") {
			t.Errorf("%s: the silent group is doubted: %v, the other: %v", name, p.memory.MayHoldIn(gone, "zoe"), p.memory.MayHoldIn(alive, "zoe"))
		}
		if waiting := p.requests.Waiting(); len(waiting) != 0 {
			t.Errorf("%s: a recovery of %v was asked for", name, waiting)
		}
		c.back()
		rig.Until(t, "the silent group is read", func() bool {
			return p.buyersRead.Read(t.Context(), p.memory.InDoubt) == nil
		})
		if p.memory.MayHoldIn(gone, "zoe") {
			t.Errorf("%s: the group is doubted after its master's return", name)
		}
	}
}

// Without the master of the first bucket, which has the ledger's clock, products
// of the others are recovered.
func TestAProductIsRecoveredWhileTheFirstMasterIsAway(t *testing.T) {
	cfg, first, _, _, alive := onCluster(t)
	a, err := New(cfg, Options{})
	rig.Must(t, err)
	defer a.close()
	first.Pause()
	p, err := a.parts.lifecycle.Recover(t.Context(), alive, rig.Operator)
	if err != nil || p.Epoch != 2 {
		t.Fatalf("epoch %d: %v", p.Epoch, err)
	}
	change, err := a.parts.lifecycle.ChangeStock(t.Context(), alive, 5, "more", rig.Operator)
	if err != nil || change.Status != store.ChangeDone {
		t.Errorf("the change of stock is %+v, %v", change, err)
	}
	live, err := a.parts.ledger.Read(t.Context(), ledger.ShardOf(&p, 0))
	if err != nil || live.Epoch != 2 || live.Available != 15 {
		t.Errorf("the ledger has %+v, %v", live, err)
	}
}
