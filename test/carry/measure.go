package carry

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/sale"
	"seckill/internal/store/storesql"
	"seckill/test/engine"
	"seckill/test/market"
	"seckill/test/server"
)

// measureEnv is the number of reservations of a measurement; without it the
// measurement is skipped.
const measureEnv = "SECKILL_CARRY_MEASURE"

const (
	// perStep is the number of claims in one step of the ledger, as under load.
	perStep = 34
	// rounds alternate between outbox and broker.
	rounds = 3
	// feedFor is how long reservations come at a steady rate.
	feedFor = 15 * time.Second
	// joinFor is how long a worker takes to join a group.
	joinFor = 8 * time.Second
	// expireAfter is longer than any measurement.
	expireAfter = 30 * time.Minute
	// measureWithin bounds a measurement.
	measureWithin = 10 * time.Minute
)

// Measure measures how fast a worker instance writes reservations to the store,
// from the outbox and through the broker in turn, and how long one reservation
// takes at a steady rate. It reserves in the ledger directly, because HTTP
// requests would take CPU time.
func Measure(t *testing.T, broker Broker, rate int) {
	n, err := strconv.Atoi(os.Getenv(measureEnv))
	if err != nil || n <= 0 {
		t.Skipf("set %s to the number of reservations", measureEnv)
	}
	for round := range rounds {
		for _, kind := range []string{"outbox", broker.Settings(t)["queue.kind"]} {
			m := newMeasurement(t, broker, measured{kind: kind, stock: n, expireAfter: expireAfter})
			m.reserve(n)
			began := time.Now()
			cpu := m.work(kind)
			m.stored(n)
			took := time.Since(began)
			t.Logf("round %d: %s: %d reservations in %s, %.0f a second; CPU: %s", round+1, kind, n, took.Round(time.Millisecond), float64(n)/took.Seconds(), cpu())
			m.close()
		}
	}
	for _, kind := range []string{"outbox", broker.Settings(t)["queue.kind"]} {
		m := newMeasurement(t, broker, measured{kind: kind, stock: int(float64(rate)*feedFor.Seconds()) + rate, expireAfter: expireAfter})
		m.work(kind)
		market.Pause(t.Context(), joinFor)
		fed := m.feed(rate, feedFor)
		m.stored(fed)
		t.Logf("%s at %d a second: %s", kind, rate, m.delays())
		m.close()
	}
}

// measurement is a sale whose orders wait for a worker.
type measurement struct {
	t        *testing.T
	settings map[string]string
	admin    *engine.Engine
	worker   *engine.Engine
	db       *sql.DB
	store    *storesql.Store
	ledger   *ledgerredis.Ledger
	lanes    *sale.Lanes
	product  seckill.Product
	made     int
}

// measured is what a measurement sells, and how.
type measured struct {
	kind        string // queue.kind
	stock       int
	expireAfter time.Duration
}

func newMeasurement(t *testing.T, broker Broker, what measured) *measurement {
	t.Helper()
	redis, dsn := server.Redis(t, server.RedisOptions{AppendFsync: "everysec"}), server.SharedMariaDB(t).NewDatabase(t)
	m := &measurement{t: t, settings: engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(dsn), broker.Settings(t), map[string]string{
		"queue.kind": what.kind, "log.level": "warn", "order.expire_after": what.expireAfter.String(), "reconcile.every": "0",
	})}
	m.admin = engine.Start(t, engine.Options{Settings: m.settings, Roles: []string{"admin", "shop"}})
	if _, err := m.admin.Operator().OpenSale(t.Context(), engine.Product{ID: 1, Stock: int64(what.stock), PerUserLimit: 1}); err != nil {
		t.Fatal(err)
	}
	ctx, quiet := t.Context(), slog.New(slog.NewTextHandler(io.Discard, nil))
	var err error
	if m.store, err = storesql.Open(ctx, dsn, storesql.Options{Logger: quiet, MaxConns: 4}); err != nil {
		t.Fatal(err)
	}
	identity, err := m.store.Identity(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m.ledger, err = ledgerredis.Open(ctx, ledgerredis.Options{
		Place: redisclient.Place{Addrs: []string{redis.Addr()}}, Prefix: redisclient.KeysOf(m.settings["redis.prefix"], identity), Logger: quiet, Tag: rand.Uint64(),
	})
	if err != nil {
		t.Fatal(err)
	}
	m.lanes = sale.NewLanes(m.ledger, ledger.LaneOptions{CallTimeout: 5 * time.Second})
	if m.product, err = m.store.Product(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if m.db, err = sql.Open("mysql", strings.TrimPrefix(dsn, "mysql:")); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *measurement) close() {
	m.worker.MustStop()
	m.admin.MustStop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := m.ledger.Shutdown(ctx); err != nil {
		m.t.Error(err)
	}
	if err := m.store.Close(); err != nil {
		m.t.Error(err)
	}
	m.db.Close()
}

// reserve makes n reservations.
func (m *measurement) reserve(n int) {
	for n > 0 {
		claims := make([]seckill.Claim, min(n, perStep))
		for i := range claims {
			m.made++
			claims[i] = seckill.Claim{OrderNo: seckill.NewOrderNo(time.Now(), 1, rand.Uint64()), Buyer: fmt.Sprintf("buyer-%08d", m.made), Quantity: 1}
		}
		ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
		result, err := m.lanes.Do(ctx, ledger.ShardOf(&m.product, 0), ledger.Reserve{
			At: time.Now(), PriceCents: m.product.PriceCents, Currency: m.product.Currency, Name: m.product.Name, Claims: claims,
		})
		cancel()
		if err != nil {
			m.t.Fatal(err)
		}
		for _, v := range result.Verdicts {
			if v.Code != ledger.VerdictAccepted {
				m.t.Fatalf("a claim was answered %d", v.Code)
			}
		}
		n -= len(claims)
	}
}

// feed makes reservations at a steady rate, and returns how many.
func (m *measurement) feed(rate int, length time.Duration) int {
	began, made := time.Now(), 0
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for now := began; now.Sub(began) < length; now = <-tick.C {
		if due := int(now.Sub(began).Seconds()*float64(rate)) - made; due > 0 {
			m.reserve(due)
			made += due
		}
	}
	return made
}

// work starts an instance with the worker role. The result reads its CPU time.
func (m *measurement) work(kind string) (cpu func() string) {
	m.worker = engine.New(m.t, engine.Options{Settings: engine.Join(m.settings, map[string]string{"queue.kind": kind}), Roles: []string{"worker"}})
	m.worker.Start()
	return func() string {
		value, err := m.worker.Metric(m.t.Context(), "process_cpu_seconds_total")
		if err != nil {
			return err.Error()
		}
		carried := 0.0
		if kind != "outbox" {
			if carried, err = m.worker.Metric(m.t.Context(), `seckill_carrier_claims_total{result="published"}`); err != nil {
				return err.Error()
			}
		}
		return fmt.Sprintf("%.1f s of the worker, %.1f µs an order; %.0f went by the broker", value, value*1e6/float64(m.made), carried)
	}
}

// stored waits until the store has n orders.
func (m *measurement) stored(n int) {
	m.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(measureWithin)
	for {
		var left int64
		if err := m.db.QueryRow(`SELECT offered - stock FROM tb_seckill_product WHERE id = 1`).Scan(&left); err == nil && left == int64(n) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			m.t.Fatalf("the store has %d of %d orders", left, n)
		}
	}
}

// delays describes how long reservations took to become orders.
func (m *measurement) delays() string {
	rows, err := m.db.Query(`SELECT order_no, pay_before FROM tb_seckill_order`)
	if err != nil {
		m.t.Fatal(err)
	}
	defer rows.Close()
	var all []time.Duration
	for rows.Next() {
		var text string
		var before int64
		if err := rows.Scan(&text, &before); err != nil {
			m.t.Fatal(err)
		}
		no, err := seckill.ParseOrderNo(text)
		if err != nil {
			m.t.Fatal(err)
		}
		all = append(all, time.UnixMilli(before).Add(-expireAfter).Sub(no.Time()))
	}
	slices.Sort(all)
	at := func(share float64) time.Duration { return all[int(share*float64(len(all)-1))] }
	return fmt.Sprintf("%d orders, delay p50 %s, p99 %s, longest %s", len(all), at(.5), at(.99), at(1))
}
