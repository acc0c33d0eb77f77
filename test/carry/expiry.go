package carry

import (
	"database/sql"
	"os"
	"strconv"
	"testing"
	"time"

	"seckill/test/market"
)

const (
	// expiryEnv is the number of orders that become due within a minute; without
	// it the measurement is skipped.
	expiryEnv = "SECKILL_CARRY_EXPIRY"
	// payWithin is longer than the minute in which the orders are made, so that no
	// order is due before the last one is made.
	payWithin = 75 * time.Second
	// lateMost is the latest that an order may expire after its time.
	lateMost = 2 * time.Second
)

// MeasureExpiry makes orders that become due at a steady rate for a minute. It
// measures how late an instance expires them by delayed messages of the broker
// and by its scan. It reads the oldest unpaid order from the store's tables.
func MeasureExpiry(t *testing.T, broker Broker) {
	n, err := strconv.Atoi(os.Getenv(expiryEnv))
	if err != nil || n <= 0 {
		t.Skipf("set %s to the number of orders", expiryEnv)
	}
	kind := broker.Settings(t)["queue.kind"]
	m := newMeasurement(t, broker, measured{kind: kind, stock: n + n/10, expireAfter: payWithin})
	m.work(kind)
	market.Pause(t.Context(), joinFor)
	made := m.feed(n/60, time.Minute)
	m.stored(made)
	latest, left := m.watchExpiry(made)
	byMessage, err := m.worker.Metric(t.Context(), `seckill_orders_expired_total{by="message"}`)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d orders due within a minute, the latest expired %s after its time; %.0f by messages", kind, made, latest, byMessage)
	if latest > lateMost || left > 0 {
		t.Errorf("an order expired %s after its time, want at most %s; %d orders are left", latest, lateMost, left)
	}
	m.close()
}

// watchExpiry waits until every order has expired. It returns the longest delay
// of a due order, and how many orders never expired.
func (m *measurement) watchExpiry(made int) (latest time.Duration, left int) {
	m.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ends := time.Now().Add(payWithin + time.Minute)
	for now := range tick.C {
		oldest, pending := m.oldestPending()
		if !pending || now.After(ends) {
			break
		}
		latest = max(latest, now.Sub(oldest).Round(time.Millisecond))
	}
	if err := m.db.QueryRow(`SELECT COUNT(*) FROM tb_seckill_order WHERE status <> 2`).Scan(&left); err != nil {
		m.t.Fatal(err)
	}
	return latest, left
}

// oldestPending is the time at which the oldest unpaid order was due.
func (m *measurement) oldestPending() (due time.Time, pending bool) {
	m.t.Helper()
	for _, warned := range []int{0, 1} { // as the index has them
		var first sql.NullInt64
		if err := m.db.QueryRow(`SELECT MIN(pay_before) FROM tb_seckill_order WHERE status = 0 AND warned = ?`, warned).Scan(&first); err != nil {
			m.t.Fatal(err)
		}
		if at := time.UnixMilli(first.Int64); first.Valid && (!pending || at.Before(due)) {
			due, pending = at, true
		}
	}
	return due, pending
}
