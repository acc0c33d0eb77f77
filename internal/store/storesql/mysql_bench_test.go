package storesql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
	"seckill/test/server"
)

// The yardsticks of the store on MariaDB, in one run on one server that syncs
// every commit:
//
//	go test -run '^$' -bench ConfirmOnMariaDB -benchtime 1x ./internal/store/storesql
//
// Confirm takes batches of 500 new orders, with 1, 2 and 4 workers on one
// product. "x-plain" is its rate against a loop that inserts the same rows into
// the same tables by multi-row statements and does nothing else; "x-single"
// against a consumer that handles each order in a transaction of its own, by
// the driver as it comes: read the product, take a unit, insert order, log and
// buyer. Each has a database of its own, so that tables grow alike.
const (
	yardBatch  = 500
	yardRounds = 8           // of all yardsticks in turn: a busy machine is busy for all
	yardTime   = time.Second // of each in a round
	yardClaims = 200_000     // made before each: more than it can write
)

// yardstick is something that can write orders.
type yardstick struct {
	name    string
	workers int
	// write writes n orders of claims.
	write  func(ctx context.Context, items []store.Item) error
	batch  int
	orders int
	took   time.Duration
}

func (y *yardstick) rate() float64 { return float64(y.orders) / y.took.Seconds() }

func BenchmarkConfirmOnMariaDB(b *testing.B) {
	maria := server.MariaDB(b, server.MariaOptions{Args: []string{
		"--innodb-buffer-pool-size=2G", "--innodb-log-file-size=1G",
	}})
	open := func(dsn string) (*Store, seckill.Product) {
		s := openAt(b, dsn, Options{})
		return s, sale(b, s, 100_000_000)
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
	single := maria.NewDatabase(b)
	open(single)
	yards := []*yardstick{
		{name: "single", workers: 1, batch: 1, write: singleConsumer(b, single)},
		{name: "plain", workers: 1, batch: yardBatch, write: plainInserts(plain)},
		{name: "confirm-1", workers: 1, batch: yardBatch, write: confirm()},
		{name: "confirm-2", workers: 2, batch: yardBatch, write: confirm()},
		{name: "confirm-4", workers: 4, batch: yardBatch, write: confirm()},
	}
	for b.Loop() {
		for range yardRounds {
			for _, y := range yards {
				y.measure(b, &product)
			}
		}
	}
	rates := make(map[string]float64)
	for _, y := range yards {
		rates[y.name] = y.rate()
		b.ReportMetric(y.rate(), y.name+"/s")
	}
	b.ReportMetric(rates["confirm-1"]/rates["single"], "x-single")
	b.ReportMetric(rates["confirm-4"]/rates["single"], "x-single-4workers")
	b.ReportMetric(rates["confirm-1"]/rates["plain"], "x-plain")
	b.ReportMetric(rates["confirm-2"]/rates["confirm-1"], "x-2workers")
	b.ReportMetric(rates["confirm-4"]/rates["confirm-1"], "x-4workers")
	b.ReportMetric(0, "ns/op")
}

// measure lets the workers write for yardTime. Claims are made outside it.
func (y *yardstick) measure(b *testing.B, p *seckill.Product) {
	ready := make(chan []store.Item, yardClaims/y.batch)
	for range cap(ready) {
		ready <- claims(p, y.batch)
	}
	close(ready)
	ctx := b.Context()
	began := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range y.workers {
		wg.Go(func() {
			orders := 0
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
				orders += len(items)
			}
			mu.Lock()
			defer mu.Unlock()
			y.orders += orders
		})
	}
	wg.Wait()
	y.took += time.Since(began)
}

// plainInserts writes the rows of each batch, and nothing else.
func plainInserts(s *Store) func(context.Context, []store.Item) error {
	seq, batch := int64(1), int64(1<<40)
	return func(ctx context.Context, items []store.Item) error {
		at := time.Now()
		var orders, logs, buyers, events []any
		for i := range items {
			o := orderFromItem(&items[i])
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

// singleConsumer is the common consumer: one message, one transaction.
func singleConsumer(b *testing.B, dsn string) func(context.Context, []store.Item) error {
	pool, err := sql.Open("mysql", strings.TrimPrefix(dsn, "mysql:"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { pool.Close() })
	one := func(l list) string { return statement{l, 1}.text() }
	seq := int64(1)
	return func(ctx context.Context, items []store.Item) error {
		o, at := orderFromItem(&items[0]), time.Now()
		if err := o.Confirm(at, 30*time.Minute); err != nil {
			return err
		}
		no := o.OrderNo.String()
		tx, err := pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		var stock, version int64
		if err := tx.QueryRowContext(ctx, `SELECT stock, version FROM tb_seckill_product WHERE id = ?`, o.ProductID).Scan(&stock, &version); err != nil {
			return err
		}
		seq++
		for _, st := range []struct {
			query string
			args  []any
		}{
			{`UPDATE tb_seckill_product SET stock = stock - 1, version = version + 1 WHERE id = ? AND version = ? AND stock >= 1`, []any{o.ProductID, version}},
			{one(sqlInsertOrders), insertArgs(nil, &o, no, owing{}, 0)},
			{one(sqlInsertStockLog), []any{o.ProductID, seq, no, 1, stock, stock - 1, logSold, millis(at)}},
			{one(sqlNewBuyers), []any{o.Group, buyerBytes(o.Buyer), no, 1}},
		} {
			if _, err := tx.ExecContext(ctx, st.query, st.args...); err != nil {
				return fmt.Errorf("%s: %w", st.query, err)
			}
		}
		return tx.Commit()
	}
}
