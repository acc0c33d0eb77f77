package instance

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// stopsWithin is how soon an operator who stops a sale has an answer while MySQL
// is away, with room for a machine that runs other tests too.
const stopsWithin = 4 * time.Second

// instruct pauses, resumes or ends a sale in the name of an operator, and returns
// the status of the answer.
func instruct(t *testing.T, e *engine.Engine, product uint32, verb string) int {
	t.Helper()
	url := fmt.Sprintf("%s/admin/v1/products/%d/%s", e.AdminURL, product, verb)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(`{"reason":"wrong price"}`)))
	must(t, "ask", err)
	req.Header = http.Header{"Authorization": {"Bearer " + engine.AdminToken}, "X-Operator": {"mei"}, "Content-Type": {"application/json"}}
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	must(t, verb, err)
	res.Body.Close()
	if took := time.Since(began); took > stopsWithin {
		t.Errorf("%s was answered after %s", verb, took)
	}
	return res.StatusCode
}

// stopped wants a status of shoppers' product, and claims refused by a code.
func stopped(t *testing.T, e *engine.Engine, product uint32, status string, code seckill.Code) {
	t.Helper()
	if _, got := decided(t, e, product, fmt.Sprintf("too-late-%d", time.Now().UnixNano())); got != code {
		t.Errorf("product %d was answered %q, want %q", product, got, code)
	}
	until(t, fmt.Sprintf("the page of product %d shows %s", product, status), func() bool {
		body, _ := get(t, fmt.Sprintf("%s/api/v1/products/%d", e.ShopURL, product))
		return strings.Contains(body, `"status":"`+status+`"`)
	})
}

// written waits until the store has a state, and wants one line of mei in the
// audit, and one event, for each of times.
func written(t *testing.T, e *engine.Engine, product uint32, state, verb string, times int) {
	t.Helper()
	until(t, fmt.Sprintf("the store has product %d %s", product, state), func() bool {
		p, err := e.Operator().Product(t.Context(), product)
		return err == nil && p.State == state
	})
	audit, err := e.Operator().Audit(t.Context(), product)
	must(t, "read the audit", err)
	lines := 0
	for _, line := range audit {
		if line.Action == "product."+verb && line.Actor == "mei" && line.Reason == "wrong price" && strings.Contains(line.Detail, "given ") {
			lines++
		}
	}
	events, _, err := e.Operator().Events(t.Context(), 0)
	must(t, "read the events", err)
	told := 0
	for _, event := range events {
		if event.ProductID == product && string(event.Event) == "sale."+state {
			told++
		}
	}
	if lines != times || told != times {
		t.Errorf("product %d has %d audit lines and %d events of %s, want %d", product, lines, told, verb, times)
	}
}

// restarting starts an instance that has to wait for MySQL. What it returns waits
// until the instance is ready.
func restarting(t *testing.T, e *engine.Engine) (ready func()) {
	t.Helper()
	e.Kill()
	log, started := len(e.Log()), make(chan error, 1)
	go func() { started <- e.TryStart() }()
	until(t, "the instance waits for the store", func() bool { return strings.Contains(e.Log()[log:], "waiting for the store") })
	return func() { must(t, "start again", <-started) }
}

// MySQL is killed. An operator stops sales of every kind at one instance; both
// refuse. Instances are killed and start again, Redis loses all, and when MySQL is
// back nothing was sold since, and it knows who stopped what.
func TestAnOperatorStopsSalesWhileMySQLIsAway(t *testing.T) {
	t.Parallel()
	maria := server.MariaDB(t, server.MariaOptions{})
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	a, b := pair(t, engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(maria.NewDatabase(t))))
	const one, many, direct, ending = 1, 2, 3, 4
	for _, p := range []engine.Product{
		{ID: one, Stock: 100}, {ID: many, Stock: 100, Shards: 4, Strategy: "sharded"},
		{ID: direct, Stock: 100, Strategy: "direct"}, {ID: ending, Stock: 100},
	} {
		openSale(t, a, p)
		sees(t, b, p.ID)
	}
	await(t, b, "before", buys(t, b, one, "before"), "pending")

	maria.Kill()
	queued := buys(t, b, one, "during")
	paused := []uint32{one, many, direct}
	for _, id := range paused {
		if status := instruct(t, a, id, "pause"); status != http.StatusAccepted {
			t.Errorf("pause of product %d was answered %d", id, status)
		}
	}
	if status := instruct(t, a, ending, "end"); status != http.StatusAccepted {
		t.Errorf("end was answered %d", status)
	}
	for verb, want := range map[string]int{"resume": http.StatusServiceUnavailable, "pause": http.StatusAccepted} {
		if status := instruct(t, b, one, verb); status != want {
			t.Errorf("%s at the other instance was answered %d, want %d", verb, status, want)
		}
	}
	if status := instruct(t, a, ending, "pause"); status != http.StatusConflict {
		t.Errorf("pause of an ended sale was answered %d", status)
	}
	for _, e := range []*engine.Engine{a, b} {
		for _, id := range paused[:2] { // by the ledger, at once
			if _, code := decided(t, e, id, "too-late"); code != seckill.CodePaused {
				t.Errorf("product %d was answered %q", id, code)
			}
		}
		for _, id := range paused {
			until(t, "the door is shut", func() bool { _, code := buy(t.Context(), e, id, "late"); return code == seckill.CodePaused })
			stopped(t, e, id, "paused", seckill.CodePaused)
		}
		stopped(t, e, ending, "ended", seckill.CodeEnded)
		until(t, "it is told of", func() bool { return metric(t, e, "seckill_instructions_waiting") == 4 })
	}
	ready := restarting(t, a)
	stopped(t, b, one, "paused", seckill.CodePaused)
	maria.Start()
	ready()
	for _, id := range paused {
		written(t, b, id, "paused", "pause", 1)
		stopped(t, a, id, "paused", seckill.CodePaused)
	}
	written(t, b, ending, "ended", "end", 1)
	await(t, a, "during", queued, "pending")
	for _, id := range paused {
		if status := instruct(t, a, id, "resume"); status != http.StatusOK {
			t.Errorf("resume was answered %d", status)
		}
		buys(t, a, id, "after")
		sees(t, b, id)
		buys(t, b, id, "after-too")
	}
	for _, e := range []*engine.Engine{a, b} {
		until(t, "nothing waits any more", func() bool { return metric(t, e, "seckill_instructions_waiting") == 0 })
	}

	// Whoever knew is killed: the ledger knows.
	maria.Kill()
	for _, id := range paused {
		instruct(t, b, id, "pause")
	}
	readyA, readyB := restarting(t, a), restarting(t, b)
	maria.Start()
	readyA()
	readyB()
	for _, id := range paused {
		written(t, a, id, "paused", "pause", 2)
		stopped(t, b, id, "paused", seckill.CodePaused)
		instruct(t, a, id, "resume")
		buys(t, a, id, "third")
		sees(t, b, id)
	}

	// The ledger loses it: whoever lives knows.
	maria.Kill()
	for _, id := range paused {
		instruct(t, b, id, "pause")
	}
	until(t, "the other one knows", func() bool { return metric(t, a, "seckill_instructions_waiting") == 3 })
	redis.FlushAll()
	watch, cancel := context.WithCancel(t.Context())
	sold := make(chan string, 1)
	go func() {
		defer close(sold)
		for n := 0; watch.Err() == nil; n++ {
			e := []*engine.Engine{a, b}[n%2]
			if no, code := buy(watch, e, paused[n%3], fmt.Sprintf("watch-%d", n)); code == "" {
				sold <- no
				return
			}
		}
	}()
	maria.Start()
	for _, id := range paused {
		written(t, a, id, "paused", "pause", 3)
		stopped(t, a, id, "paused", seckill.CodePaused)
	}
	cancel()
	if no := <-sold; no != "" {
		t.Errorf("order %s was sold after a pause", no)
	}
	for _, id := range paused {
		until(t, "it is resumed", func() bool { return instruct(t, a, id, "resume") == http.StatusOK })
		sees(t, b, id)
		buys(t, b, id, "fourth")
	}
	for _, id := range []uint32{one, many, direct, ending} {
		until(t, "the count is balanced", func() bool {
			report, err := a.Operator().Reconcile(t.Context(), id, false)
			return err == nil && report.Balanced != nil && *report.Balanced
		})
	}
}

// With the embedded ledger the journal keeps what MySQL could not be told.
func TestAnEmbeddedLedgerKeepsAPauseForMySQL(t *testing.T) {
	t.Parallel()
	maria := server.MariaDB(t, server.MariaOptions{})
	e := engine.Start(t, engine.Options{Settings: engine.OnStore(maria.NewDatabase(t))})
	openSale(t, e, engine.Product{ID: 1, Stock: 10})
	openSale(t, e, engine.Product{ID: 2, Stock: 10, Strategy: "direct"})
	for id := range uint32(2) {
		buys(t, e, id+1, "before")
	}
	maria.Kill()
	for id := range uint32(2) {
		if status := instruct(t, e, id+1, "pause"); status != http.StatusAccepted {
			t.Errorf("pause was answered %d", status)
		}
		stopped(t, e, id+1, "paused", seckill.CodePaused)
	}
	ready := restarting(t, e)
	maria.Start()
	ready()
	for id := range uint32(2) {
		written(t, e, id+1, "paused", "pause", 1)
		stopped(t, e, id+1, "paused", seckill.CodePaused)
		instruct(t, e, id+1, "resume")
		buys(t, e, id+1, "after")
	}
}

// One instance is cut off from MySQL, the other is not. An operator pauses at the
// first, resumes at the second, and pauses at the first again.
func TestASecondPauseAtAnInstanceThatIsCutOffStands(t *testing.T) {
	t.Parallel()
	maria := server.MariaDB(t, server.MariaOptions{})
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	way := server.Proxy(t, maria.Addr())
	dsn := maria.NewDatabase(t)
	through, onRedis := strings.Replace(dsn, maria.Addr(), way.Addr(), 1), engine.OnRedis(redis.Addr())
	a := engine.Start(t, engine.Options{Settings: engine.Join(onRedis, engine.OnStore(through))})
	b := engine.Start(t, engine.Options{Settings: engine.Join(onRedis, engine.OnStore(dsn))})
	openSale(t, a, engine.Product{ID: 1, Stock: 100})
	sees(t, b, 1)

	way.Cut()
	for round := range 2 {
		buys(t, b, 1, fmt.Sprintf("before-%d", round))
		if status := instruct(t, a, 1, "pause"); status != http.StatusAccepted {
			t.Errorf("pause %d was answered %d", round+1, status)
		}
		if _, code := decided(t, b, 1, fmt.Sprintf("after-%d", round)); code != seckill.CodePaused {
			t.Errorf("after pause %d a purchase was answered %q", round+1, code)
		}
		written(t, b, 1, "paused", "pause", round+1)
		if round == 0 {
			until(t, "it is resumed", func() bool { return instruct(t, b, 1, "resume") == http.StatusOK })
			sees(t, b, 1)
		}
	}
	way.Heal()
	until(t, "nothing waits any more", func() bool { return metric(t, a, "seckill_instructions_waiting") == 0 })
	for _, e := range []*engine.Engine{a, b} {
		stopped(t, e, 1, "paused", seckill.CodePaused)
	}
	written(t, a, 1, "paused", "pause", 2)
}
