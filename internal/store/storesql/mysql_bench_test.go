package storesql

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
	"seckill/test/server"
)

// These benchmarks compare the store on MariaDB with simpler writers, in one run on one server
// that syncs every commit:
//
//	go test -run '^$' -bench ConfirmOnMariaDB -benchtime 1x ./internal/store/storesql
//
// Confirm takes batches of 500 new orders, with 1, 2 and 4 workers on one product. "plain" is a
// loop that only inserts the same rows into the same tables by multi-row statements. "single"
// is a consumer with one transaction per order and the driver's default settings. "quickest" is
// the same with the driver's fastest setting, which the store uses too. Each writer has its own
// database, so that tables grow alike.
//
// The writers run in turns, round by round, so that other load on the machine affects all of
// them. Ratios compare the same round. The report has the median of the rounds, the lowest and
// the highest.
const (
	yardBatch  = 500
	yardTime   = time.Second // per writer and round
	yardClaims = 200_000     // made before each round; more than it can write
	yardStock  = 100_000_000
)

var yardRounds = flag.Int("rounds", 8, "rounds of the store's yardsticks")

// yardstick is a writer of orders.
type yardstick struct {
	name    string
	workers int
	// write writes n orders of claims.
	write func(ctx context.Context, items []store.Item) error
	batch int
	rates []float64 // orders per second, by round
}

// against returns the ratio to another yardstick, by round.
func (y *yardstick) against(other *yardstick) []float64 {
	ratios := make([]float64, len(y.rates))
	for i := range ratios {
		ratios[i] = y.rates[i] / other.rates[i]
	}
	return ratios
}

func median(rounds []float64) float64 {
	sorted := slices.Sorted(slices.Values(rounds))
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}

// spread reports the median of the rounds, and logs the lowest and the highest. A benchmark may
// log ten lines.
func spread(b *testing.B, unit, format string, rounds []float64) {
	b.ReportMetric(median(rounds), unit)
	b.Logf("%-20s "+format+" ("+format+" – "+format+", %d rounds)", unit, median(rounds), slices.Min(rounds), slices.Max(rounds), len(rounds))
}

func BenchmarkConfirmOnMariaDB(b *testing.B) {
	maria := server.MariaDB(b, server.MariaOptions{Args: []string{
		"--innodb-buffer-pool-size=2G", "--innodb-log-file-size=1G",
	}})
	open := func(dsn string) (*Store, seckill.Product) {
		s := openAt(b, dsn, Options{})
		return s, sale(b, s, yardStock)
	}
	var product seckill.Product
	confirm := func() func(ctx context.Context, items []store.Item) error {
		var ours *Store
		ours, product = open(maria.NewDatabase(b))
		return func(ctx context.Context, items []store.Item) error {
			for i := range items {
				items[i].Epoch = product.Epoch
			}
			_, err := ours.Confirm(ctx, request(&product, items))
			return err
		}
	}
	plain, _ := open(maria.NewDatabase(b))
	consumer := func(setting string) func(context.Context, []store.Item) error {
		dsn := maria.NewDatabase(b)
		open(dsn)
		return singleConsumer(b, dsn+setting)
	}
	one := &yardstick{name: "single", workers: 1, batch: 1, write: consumer("")}
	quickest := &yardstick{name: "quickest", workers: 1, batch: 1, write: consumer("?interpolateParams=true")}
	rows := &yardstick{name: "plain", workers: 1, batch: yardBatch, write: plainInserts(plain)}
	confirm1 := &yardstick{name: "confirm-1", workers: 1, batch: yardBatch, write: confirm()}
	confirm2 := &yardstick{name: "confirm-2", workers: 2, batch: yardBatch, write: confirm()}
	confirm4 := &yardstick{name: "confirm-4", workers: 4, batch: yardBatch, write: confirm()}
	yards := []*yardstick{one, quickest, rows, confirm1, confirm2, confirm4}
	for b.Loop() {
		for range *yardRounds {
			for _, y := range yards {
				y.measure(b, &product)
			}
		}
	}
	for _, y := range yards {
		b.ReportMetric(median(y.rates), y.name+"/s")
	}
	spread(b, "x-single", "%.1f", confirm1.against(one))
	spread(b, "x-single-2workers", "%.1f", confirm2.against(one))
	spread(b, "x-quickest", "%.1f", confirm1.against(quickest))
	spread(b, "x-quickest-2workers", "%.1f", confirm2.against(quickest))
	spread(b, "x-plain", "%.2f", confirm1.against(rows))
	spread(b, "x-1to2workers", "%.2f", confirm2.against(confirm1))
	spread(b, "x-2to4workers", "%.2f", confirm4.against(confirm2))
	b.ReportMetric(0, "ns/op")
}

// measure lets the workers write for yardTime. The claims are made before.
func (y *yardstick) measure(b *testing.B, p *seckill.Product) {
	ready := make(chan []store.Item, yardClaims/y.batch)
	for range cap(ready) {
		ready <- claims(p, y.batch)
	}
	close(ready)
	ctx := b.Context()
	began := time.Now()
	var written atomic.Int64
	var wg sync.WaitGroup
	for range y.workers {
		wg.Go(func() {
			for time.Since(began) < yardTime {
				items, more := <-ready
				if !more {
					b.Errorf("%s wrote all %d orders in less than %s", y.name, yardClaims, yardTime)
					return
				}
				if err := y.write(ctx, items); err != nil {
					b.Error(err)
					return
				}
				written.Add(int64(len(items)))
			}
		})
	}
	wg.Wait()
	y.rates = append(y.rates, float64(written.Load())/time.Since(began).Seconds())
}

// plainInserts only inserts the rows of each batch.
func plainInserts(s *Store) func(context.Context, []store.Item) error {
	seq, batch := int64(1), int64(1<<40)
	return func(ctx context.Context, items []store.Item) error {
		at := time.Now()
		var orders, logs, buyers, events []any
		for i := range items {
			o := items[i].Order()
			if err := o.Confirm(at, 30*time.Minute); err != nil {
				return err
			}
			no := o.OrderNo.String()
			seq++
			orders = insertArgs(orders, &o, no, owing{}, 0)
			logs = append(logs, o.ProductID, seq, no, 1, 1<<30-seq, 1<<30-seq-1, logSold, millis(at))
			buyers = append(buyers, o.Group, buyerBytes(o.Buyer), no, 1)
			events = append(events, batch, i, millis(at), "order.confirmed", o.ProductID, no, "")
		}
		batch++
		return s.db.write(ctx, func(tx *session) error {
			for _, rows := range []struct {
				list
				args []any
			}{{sqlInsertOrders, orders}, {sqlInsertStockLog, logs}, {sqlNewBuyers, buyers}, {sqlInsertBatched, events}} {
				if _, err := tx.execRows(ctx, rows.list, nil, rows.args); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// singleConsumer is a simple consumer: one transaction of four statements per message (take a
// unit, write order, log and buyer). It reads nothing before, because it runs alone and knows
// the stock.
func singleConsumer(b *testing.B, dsn string) func(context.Context, []store.Item) error {
	pool, err := sql.Open("mysql", strings.TrimPrefix(dsn, "mysql:"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { pool.Close() })
	one := func(l list) string { return statement{l, 1}.text() }
	insertOrder, insertLog, insertBuyer := one(sqlInsertOrders), one(sqlInsertStockLog), one(sqlNewBuyers)
	seq, stock := int64(1), int64(yardStock)
	return func(ctx context.Context, items []store.Item) error {
		o, at := items[0].Order(), time.Now()
		if err := o.Confirm(at, 30*time.Minute); err != nil {
			return err
		}
		no := o.OrderNo.String()
		tx, err := pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		seq++
		stock--
		for _, st := range []struct {
			query string
			args  []any
		}{
			{`UPDATE tb_seckill_product SET stock = stock - 1, version = version + 1 WHERE id = ? AND stock >= 1`, []any{o.ProductID}},
			{insertOrder, insertArgs(nil, &o, no, owing{}, 0)},
			{insertLog, []any{o.ProductID, seq, no, 1, stock + 1, stock, logSold, millis(at)}},
			{insertBuyer, []any{o.Group, buyerBytes(o.Buyer), no, 1}},
		} {
			if _, err := tx.ExecContext(ctx, st.query, st.args...); err != nil {
				return fmt.Errorf("%s: %w", st.query, err)
			}
		}
		return tx.Commit()
	}
}
