package order_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/order"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/test/rig"
	"seckill/test/server"
)

// soon is the bound for "within seconds": well below the 30 s of a round, and
// enough for a busy machine.
const soon = 12 * time.Second

// halfCluster is a Cluster with one master that can be stopped, with products
// on that master and on the others.
type halfCluster struct {
	*rig.Rig
	ledger      *ledgerredis.Ledger
	master      *server.RedisServer
	gone, alive []seckill.Product
}

func newHalfCluster(t *testing.T) *halfCluster {
	t.Helper()
	cluster := server.Cluster(t, server.ClusterOptions{Args: []string{"--cluster-require-full-coverage", "no"}})
	l, err := ledgerredis.Open(t.Context(), ledgerredis.Options{Place: redisclient.Place{Addrs: cluster.Addrs()}, Prefix: "seckill:"})
	rig.Must(t, err)
	t.Cleanup(func() {
		if err := l.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	h := &halfCluster{Rig: rig.New(t), ledger: l}
	h.On(l, l.Queue())
	home := func(p seckill.Product) *server.RedisServer {
		for _, node := range cluster.Nodes() {
			if strings.TrimSpace(node.Must("KEYS", fmt.Sprintf("*:shard:%d:0", p.ID))) != "" {
				return node
			}
		}
		t.Fatalf("product %d is on no node", p.ID)
		return nil
	}
	for id := uint32(1); len(h.gone) < 2 || len(h.alive) < 2; id++ {
		p := h.Open(t, id, 1000)
		if h.master == nil {
			h.master = home(p)
		}
		if home(p) == h.master {
			h.gone = append(h.gone, p)
		} else {
			h.alive = append(h.alive, p)
		}
	}
	return h
}

func (h *halfCluster) free(t *testing.T, p seckill.Product) int64 {
	t.Helper()
	f, err := h.ledger.Read(t.Context(), ledger.ShardOf(&p, 0))
	rig.Must(t, err)
	return f.Available
}

// round runs one round of a job. It fails the test if the round hides that a
// master did not answer, or does not end soon.
func round(t *testing.T, name string, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	began := time.Now()
	if err := do(ctx); !errors.Is(err, background.ErrNoAnswer) {
		t.Errorf("%s: the round ended with %v", name, err)
	}
	if took := time.Since(began); took > soon {
		t.Errorf("%s: the round took %v", name, took)
	}
}

// One master of a Cluster is stopped. It is owed more and older debts than one
// page shows. The debts to the other masters are still paid within seconds.
func TestCluster_MasterAwayDelaysOnlyItsOwnProducts(t *testing.T) {
	h := newHalfCluster(t)
	gone, alive := h.gone[0], h.alive[0]
	const many = 510 // more than a page
	var buyers []string
	for i := range many {
		buyers = append(buyers, fmt.Sprint("buyer-", i))
	}
	h.Buy(t, gone, buyers...)
	h.ConfirmAll(t)
	h.Time.Advance(31 * time.Minute)
	_, err := h.Store.Expire(t.Context(), 2*many)
	rig.Must(t, err)
	nos := h.Buy(t, alive, "ann", "bob")
	h.ConfirmAll(t)
	for _, p := range []seckill.Product{gone, alive} {
		_, err := h.Store.BeginStockChange(t.Context(), store.StockChange{ID: fmt.Sprint("change-", p.ID), ProductID: p.ID, Delta: 7, Actor: rig.Operator})
		rig.Must(t, err)
	}
	h.master.Pause()

	releaser := &order.Releaser{Store: h.Store, Lanes: h.Lanes, OnReleased: func(uint32) {}, OnTrouble: func(uint32, error) {}}
	for i, no := range nos {
		cancel(t, h.Rig, no)
		round(t, "release", releaser.Round)
		if free := h.free(t, alive); free != int64(1000-2+i+1) {
			t.Errorf("release: %d units are free", free)
		}
	}

	round(t, "stock", func(ctx context.Context) error { return h.Lifecycle.FinishStockChanges(ctx, 1) })
	if free := h.free(t, alive); free != 1007 {
		t.Errorf("stock: %d units are free", free)
	}

	rig.Must(t, h.ledger.Close(t.Context(), ledger.ShardOf(&h.alive[1], 0))) // as if it were lost
	var lost []uint32
	keeper := sale.NewKeeper(h.Lifecycle, time.Minute, func(uint32) {}, func(product uint32) { lost = append(lost, product) })
	rig.Must(t, h.Catalog.Refresh(t.Context()))
	round(t, "keep", keeper.Round)
	if len(lost) != 1 || lost[0] != h.alive[1].ID {
		t.Errorf("keep: found lost %v, want %d", lost, h.alive[1].ID)
	}

	h.master.Resume()
	rig.Until(t, "all units are returned on the master that was away", func() bool {
		_ = releaser.Round(t.Context())
		return owed(t, h.Rig) == 0
	})
	rig.Until(t, "the stock change is finished", func() bool {
		return h.Lifecycle.FinishStockChanges(t.Context(), 10) == nil
	})
	if free := h.free(t, gone); free != 1007 {
		t.Errorf("%d units are free where the master was away", free)
	}
}
