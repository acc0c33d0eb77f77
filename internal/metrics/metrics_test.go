package metrics

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/admission"
	"seckill/internal/api"
	"seckill/internal/notify"
	"seckill/internal/order"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.Code != 200 {
		t.Fatalf("status %d, error %v", answer.Code, err)
	}
	return string(body)
}

func expect(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, "\nseckill_"+line+"\n") {
			t.Errorf("%q is not there", line)
		}
	}
}

func TestEveryStageHasItsFigures(t *testing.T) {
	m := New("v1.2.3")
	m.Accepted.Inc()
	m.Refused(seckill.CodeSoldOut, admission.GateSoldOut)
	m.Refused(seckill.CodeBusy, "")
	m.Refused("unheard_of", "unheard_of")
	m.ReserveClaims.Observe(3)
	m.ReserveSeconds.Observe((time.Millisecond).Seconds())
	m.Commit(2, time.Millisecond)
	m.Worker(5, 2*time.Second, time.Millisecond)
	m.Duty("expire", time.Second, nil)
	m.Duty("expire", time.Second, errors.New("down"))
	m.Route("buy", "202").Inc()
	yes, no := true, false
	m.Reconciled(api.Report{ProductID: 1, Balanced: &yes})
	m.Reconciled(api.Report{ProductID: 2, Balanced: &no})
	m.Reconciled(api.Report{ProductID: 3})
	expect(t, scrape(t, m),
		`claims_accepted_total 1`,
		`claims_refused_total{code="sold_out"} 1`,
		`claims_refused_total{code="busy"} 1`,
		`claims_refused_total{code="paused"} 0`,
		`gate_refused_total{gate="sold_out"} 1`,
		`gate_refused_total{gate="queue"} 0`,
		`reserve_batch_claims_sum 3`,
		`journal_commit_rows_sum 2`,
		`worker_batch_claims_sum 5`,
		`worker_lag_seconds 2`,
		`duty_seconds_count{duty="expire"} 2`,
		`duty_failures_total{duty="expire"} 1`,
		`http_requests_total{route="buy",status="202"} 1`,
		`reconcile_balanced{product="1"} 1`,
		`reconcile_balanced{product="2"} 0`,
		`reconcile_balanced{product="3"} -1`,
		`reconciliations_total{result="violated"} 1`,
		`build_info{version="v1.2.3"} 1`,
	)
}

func TestExpiry_CountsMessagesFromZero(t *testing.T) {
	m := New("test")
	e := m.Expiry()
	e.Message(order.Published)
	m.Expired.WithLabelValues(ExpiredByScan).Add(3)
	expect(t, scrape(t, m),
		`expiry_messages_total{result="published"} 1`,
		`expiry_messages_total{result="forged"} 0`,
		`orders_expired_total{by="message"} 0`,
		`orders_expired_total{by="scan"} 3`,
	)
}

// twoSales can read the first of two sales. The store has taken over the second.
type twoSales struct{}

func (twoSales) ShownSales() []uint32     { return []uint32{1, 2} }
func (twoSales) InstructionsWaiting() int { return 4 }
func (twoSales) TakenOver(id uint32) bool { return id == 2 }
func (twoSales) Stats(_ context.Context, id uint32) (api.Stats, error) {
	if id == 2 {
		return api.Stats{}, errors.New("down")
	}
	s := api.Stats{Offered: 10, Epoch: 3}
	s.Ledger.Reserved, s.Store.Paid, s.Queue.Depth, s.Queue.OldestMS = 6, 5, 1, 1500
	return s, nil
}

type fourSteps struct{}

func (fourSteps) Steps() int64 { return 4 }

// A sale that cannot be read is left out: a gap is honest, a zero is not.
func TestSalesAreReadWhenAsked(t *testing.T) {
	m := New("test")
	m.Register(&Sales{Sales: twoSales{}, Clock: fourSteps{}})
	text := scrape(t, m)
	expect(t, text,
		`units{product="1",where="offered"} 10`,
		`units{product="1",where="ledger_reserved"} 6`,
		`units{product="1",where="paid"} 5`,
		`queue_depth{product="1"} 1`,
		`queue_oldest_seconds{product="1"} 1.5`,
		`epoch{product="1"} 3`,
		`clock_steps_total 4`,
		`taken_over{product="1"} 0`,
		`taken_over{product="2"} 1`,
	)
	if strings.Contains(text, `epoch{product="2"}`) {
		t.Error("a sale that cannot be read is shown")
	}
}

// manySales counts how many of its sales are read.
type manySales struct {
	twoSales
	read      int
	unbounded bool // a read had no deadline
}

func (*manySales) ShownSales() []uint32 {
	ids := make([]uint32, 3*scrapeProducts)
	for i := range ids {
		ids[i] = uint32(i + 1)
	}
	return ids
}

func (s *manySales) Stats(ctx context.Context, _ uint32) (api.Stats, error) {
	_, bounded := ctx.Deadline()
	s.unbounded = s.unbounded || !bounded
	s.read++
	return api.Stats{}, nil
}

func TestAScrapeIsBounded(t *testing.T) {
	m := New("test")
	sales := &manySales{}
	m.Register(&Sales{Sales: sales, Clock: fourSteps{}})
	scrape(t, m)
	if sales.read != scrapeProducts || sales.unbounded {
		t.Errorf("%d sales were read, without a deadline: %t", sales.read, sales.unbounded)
	}
}

// A part that is down is said to be; figures that cannot be read are left out.
func TestPartsAreReadWhenAsked(t *testing.T) {
	m := New("test")
	m.Durable("crash", true)
	m.Durable("failover", false)
	down := errors.New("down")
	outbox := Outbox{Length: 9, Waiting: 3, Foreign: 1, Oldest: 1500 * time.Millisecond, Consumers: 2, Relays: 1}
	var broken error
	m.Register(&Parts{
		Ledger: func(context.Context) error { return broken }, Store: func(context.Context) error { return nil },
		Outbox:   func(context.Context) (Outbox, error) { return outbox, broken },
		Bulletin: func() notify.Stats { return notify.Stats{Posted: 5, Heard: 6, Dropped: 7} },
		Silent:   func() int { return 4 },
	})
	expect(t, scrape(t, m),
		`up{part="ledger"} 1`, `up{part="store"} 1`,
		`ledger_durable{fault="crash"} 1`, `ledger_durable{fault="failover"} 0`, `ledger_silent_shards 4`,
		`outbox_length 9`, `outbox_waiting 3`, `outbox_foreign 1`, `outbox_oldest_seconds 1.5`, `outbox_consumers 2`, `outbox_relays 1`,
		`bulletin_notices_total{result="posted"} 5`, `bulletin_notices_total{result="heard"} 6`, `bulletin_notices_total{result="dropped"} 7`,
	)
	broken = down
	text := scrape(t, m)
	expect(t, text, `up{part="ledger"} 0`, `up{part="store"} 1`)
	if strings.Contains(text, "\nseckill_outbox") {
		t.Error("an outbox that cannot be read is shown")
	}
}
