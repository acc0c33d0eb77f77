package storesql

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seckill"
	"seckill/internal/payment"
	"seckill/internal/store"
)

// processTime returns the CPU time so far. On a shared machine it is more reliable than the
// clock.
func processTime(tb testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkConfirm measures the worker's transaction: all rows of an order, synced.
func BenchmarkConfirm(b *testing.B) {
	for _, size := range []int{100, 500, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := openNew(b)
			p := sale(b, s, 100_000_000)
			b.ReportAllocs()
			orders, before := 0, processTime(b)
			for b.Loop() {
				b.StopTimer()
				req := request(&p, claims(&p, size))
				b.StartTimer()
				if _, err := s.Confirm(b.Context(), req); err != nil {
					b.Fatal(err)
				}
				orders += size
			}
			b.ReportMetric(float64((processTime(b)-before).Microseconds())/float64(orders), "cpu-µs/order")
			b.ReportMetric(float64(orders)/b.Elapsed().Seconds(), "orders/s")
		})
	}
}

// BenchmarkSell measures the transaction of Sell, while there are units and when all are sold.
func BenchmarkSell(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) { benchmarkSell(b, openNew) })
	b.Run("MariaDB", func(b *testing.B) { benchmarkSell(b, openMaria) })
}

func benchmarkSell(b *testing.B, open func(testing.TB) *Store) {
	for _, size := range []int{20, 100, 500} {
		for name, stock := range map[string]int64{"accepted": 100_000_000, "sold out": 0} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				s := open(b)
				p := sale(b, s, stock, func(p *seckill.Product) { p.Strategy = seckill.StrategyDirect })
				b.ReportAllocs()
				decided, before := 0, processTime(b)
				for b.Loop() {
					b.StopTimer()
					req := store.SellRequest{ProductID: p.ID, Epoch: p.Epoch, ExpireAfter: time.Hour}
					for _, claim := range claimsOf(claims(&p, size)) {
						req.Claims = append(req.Claims, *claim)
					}
					b.StartTimer()
					if _, err := s.Sell(b.Context(), req); err != nil {
						b.Fatal(err)
					}
					decided += size
				}
				b.ReportMetric(float64((processTime(b)-before).Microseconds())/float64(decided), "cpu-µs/claim")
				b.ReportMetric(float64(decided)/b.Elapsed().Seconds(), "claims/s")
			})
		}
	}
}

// BenchmarkLargeSale measures reads of a product with many orders.
func BenchmarkLargeSale(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) { benchmarkLargeSale(b, openNew) })
	b.Run("MariaDB", func(b *testing.B) { benchmarkLargeSale(b, openMaria) })
}

func benchmarkLargeSale(b *testing.B, open func(testing.TB) *Store) {
	const orders, batch = 100_000, 1000
	s := open(b)
	p := sale(b, s, orders)
	for range orders / batch {
		if _, err := s.Confirm(b.Context(), request(&p, claims(&p, batch))); err != nil {
			b.Fatal(err)
		}
	}
	epoch := p.Epoch
	for _, c := range []struct {
		name string
		ask  func(ctx context.Context) error
	}{
		{"Figures", func(ctx context.Context) error { _, err := s.Figures(ctx, p.ID); return err }},
		{"SearchOrders", func(ctx context.Context) error {
			_, err := s.SearchOrders(ctx, store.OrderFilter{ProductID: p.ID, Limit: 50})
			return err
		}},
		{"CheckStockLog", func(ctx context.Context) error { _, err := s.CheckStockLog(ctx, p.ID, 10); return err }},
		{"CheckBuyers", func(ctx context.Context) error { _, err := s.CheckBuyers(ctx, p.Group, 10); return err }},
		{"CheckMoney", func(ctx context.Context) error { _, err := s.CheckMoney(ctx, p.ID, 10); return err }},
		{"OpenEpoch", func(ctx context.Context) error {
			_, err := s.OpenEpoch(ctx, p.ID, epoch, 0, operator, func(seckill.Order) error { return nil })
			epoch++
			return err
		}},
		{"Expire1000", func(ctx context.Context) error { _, err := s.Expire(ctx, batch); return err }},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.name == "Expire1000" {
				damage(b, s, `UPDATE tb_seckill_order SET pay_before = 1`)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := c.ask(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDelete deletes a product of 100,000 orders, a tenth of them paid. Use -benchtime 1x,
// because creating the orders takes longer.
func BenchmarkDelete(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) { benchmarkDelete(b, openNew) })
	b.Run("MariaDB", func(b *testing.B) { benchmarkDelete(b, openMaria) })
}

func benchmarkDelete(b *testing.B, open func(testing.TB) *Store) {
	const orders, batch = 100_000, 1000
	s := open(b)
	for b.Loop() {
		b.StopTimer()
		p := sale(b, s, orders)
		for range orders / batch {
			items := claims(&p, batch)
			if _, err := s.Confirm(b.Context(), request(&p, items)); err != nil {
				b.Fatal(err)
			}
			for i := range batch / 10 {
				no := items[i].Claim.OrderNo.String()
				money := payment.Notice{Provider: "sandbox", TradeNo: no, OrderNo: no, AmountCents: items[i].PriceCents, Currency: items[i].Currency, PaidAt: items[i].At}
				if _, err := s.RecordPayment(b.Context(), money); err != nil {
					b.Fatal(err)
				}
			}
		}
		damage(b, s, `UPDATE tb_seckill_product SET test = 1, state = 2, rebuilding = 0 WHERE id = ?`, p.ID)
		b.StartTimer()
		if _, err := s.BeginDelete(b.Context(), p.ID, operator); err != nil {
			b.Fatal(err)
		}
		var longest time.Duration
		for done := false; !done; {
			began := time.Now()
			var err error
			if _, done, err = s.DeleteSome(b.Context(), p.ID); err != nil {
				b.Fatal(err)
			}
			longest = max(longest, time.Since(began))
		}
		b.ReportMetric(float64(longest.Milliseconds()), "ms/longest")
	}
}

// BenchmarkPay pays many orders of one product at a time.
func BenchmarkPay(b *testing.B) {
	s := openMaria(b)
	p := sale(b, s, 100_000_000)
	var orders []store.Item
	for len(orders) < b.N+1000 {
		batch := claims(&p, 1000)
		if _, err := s.Confirm(b.Context(), request(&p, batch)); err != nil {
			b.Fatal(err)
		}
		orders = append(orders, batch...)
	}
	var next atomic.Int64
	b.SetParallelism(8) // times the processors
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			no := orders[next.Add(1)-1].Claim.OrderNo.String()
			result, err := s.RecordPayment(b.Context(), payment.Notice{
				Provider: "sandbox", OrderNo: no, TradeNo: no, AmountCents: p.PriceCents, Currency: p.Currency, PaidAt: time.Now(),
			})
			if err != nil || result != store.PaymentPaid {
				b.Errorf("%v %v", result, err)
			}
		}
	})
}
