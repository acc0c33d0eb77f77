package reconcile_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/reconcile"
	"seckill/internal/store"
	"seckill/internal/store/storesql"
	"seckill/test/rig"
	"seckill/test/server"
)

// BenchmarkReconcile counts a sale at rest on Redis and MariaDB. The number of
// orders is N of -benchtime Nx.
func BenchmarkReconcile(b *testing.B) {
	const batch = 1000
	orders := (b.N + batch - 1) / batch * batch
	s, err := storesql.Open(b.Context(), server.SharedMariaDB(b).NewDatabase(b), storesql.Options{})
	rig.Must(b, err)
	b.Cleanup(func() { s.Close() })
	rig.Must(b, s.Migrate(b.Context()))
	l, err := ledgerredis.Open(b.Context(), ledgerredis.Options{Place: redisclient.Place{Addrs: []string{server.Redis(b, server.RedisOptions{}).Addr()}}})
	rig.Must(b, err)
	b.Cleanup(func() { l.Shutdown(b.Context()) })

	p, err := s.CreateProduct(b.Context(), seckill.Product{
		ID: 1, Group: 1, Name: "phone", PriceCents: 999, Currency: "CNY", Stock: int64(orders), Offered: int64(orders), PerUserLimit: 1, Shards: 1,
		Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait, StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour),
	}, rig.Operator)
	rig.Must(b, err)
	p, err = s.OpenEpoch(b.Context(), p.ID, 0, 0, rig.Operator, func(seckill.Order) error { return nil })
	rig.Must(b, err)
	for n := 0; n < orders; n += batch {
		entry := seckill.Entry{ProductID: p.ID, Group: p.Group, Epoch: p.Epoch, At: time.Now(), PriceCents: 999, Currency: "CNY", Name: "phone", Limit: 1}
		for i := range batch {
			entry.Claims = append(entry.Claims, seckill.Claim{
				OrderNo: seckill.NewOrderNo(time.Now(), 1, uint64(n+i)), Buyer: fmt.Sprintf("buyer-%d", n+i), Quantity: 1, Key: fmt.Sprintf("key-%016d", n+i),
			})
		}
		_, err := s.Confirm(b.Context(), store.ConfirmRequest{ProductID: p.ID, Items: store.Items(&entry), ExpireAfter: time.Hour})
		rig.Must(b, err)
	}
	var marks []ledger.Mark
	p, err = s.OpenEpoch(b.Context(), p.ID, p.Epoch, 0, rig.Operator, func(o seckill.Order) error {
		marks = append(marks, ledger.Mark{Buyer: o.Buyer, OrderNo: o.OrderNo, Quantity: o.Quantity, Key: o.Key})
		return nil
	})
	rig.Must(b, err)
	_, err = l.Install(b.Context(), ledger.Allotment{Shard: ledger.ShardOf(&p, 0), Limit: 1}, func(yield func(ledger.Mark, error) bool) {
		for m := range slices.Values(marks) {
			if !yield(m, nil) {
				return
			}
		}
	})
	rig.Must(b, err)
	_, err = l.Open(b.Context(), ledger.ShardOf(&p, 0))
	rig.Must(b, err)
	rig.Must(b, s.EndRebuild(b.Context(), p.ID, p.Epoch))
	marks = nil
	runtime.GC()

	reconciler := &reconcile.Reconciler{
		Store: s, Ledger: l, Queue: l.Queue(), Deadline: 5 * time.Second, Logger: slog.New(slog.DiscardHandler), OnReport: func(api.Report) {},
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	report, err := reconciler.Run(b.Context(), p.ID, false, "bench")
	b.StopTimer()
	runtime.ReadMemStats(&after)
	rig.Must(b, err)
	if report.Balanced == nil || !*report.Balanced {
		b.Fatalf("%+v", report)
	}
	b.ReportMetric(b.Elapsed().Seconds(), "s/report")
	b.ReportMetric(float64(after.Sys-before.Sys)/float64(orders), "B/order")
}
