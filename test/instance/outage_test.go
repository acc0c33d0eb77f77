package instance

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// What is promised while Redis is away, and when it is back.
const (
	answerWithin    = time.Second
	sellAgainWithin = 2 * time.Second
)

func TestALedgerThatForgotAllIsRebuiltOnceAndNobodyIsToldNoMeanwhile(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{})
	a, b := pair(t, engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t))))
	openSale(t, a, engine.Product{ID: 1, Stock: 100})
	sees(t, b, 1)
	no := buys(t, b, 1, "early")
	await(t, b, "early", no, "pending")
	redis.FlushAll()
	var shopping sync.WaitGroup
	for i, e := range []*engine.Engine{a, b} {
		shopping.Go(func() {
			for n := range 10 {
				no := buys(t, e, 1, fmt.Sprintf("buyer-%d-%d", i, n))
				await(t, e, fmt.Sprintf("buyer-%d-%d", i, n), no, "pending")
			}
		})
	}
	shopping.Wait()
	if _, code := buy(t.Context(), a, 1, "early"); code != seckill.CodeAlreadyPurchased {
		t.Errorf("a buyer of before was answered %q", code)
	}
	p, err := b.Operator().Product(t.Context(), 1)
	must(t, "read the product", err)
	// Once, and once more if a worker had something in hand that the queue lost;
	// not once per instance.
	if p.Epoch > 3 {
		t.Errorf("the product has epoch %d: it was rebuilt in turns", p.Epoch)
	}
	recovered, err := b.Operator().Recover(t.Context(), 1)
	must(t, "recover", err)
	buys(t, a, 1, "after")
	report, err := a.Operator().Reconcile(t.Context(), 1, false)
	if err != nil || report.Balanced == nil || !*report.Balanced || recovered.Epoch <= p.Epoch {
		t.Errorf("epoch %d, reconciled: %+v, %v", recovered.Epoch, report, err)
	}
}

// The loss is met by shards and queue, by every product, lane and worker. With
// nothing in hand it costs each product one epoch all the same.
func TestALossAtRestCostsEveryProductOneEpoch(t *testing.T) {
	t.Parallel()
	const products = 12
	redis := server.Redis(t, server.RedisOptions{})
	a, b := pair(t, engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t))))
	buysAll := func(buyer string) {
		t.Helper()
		for id := uint32(1); id <= products; id++ {
			await(t, a, buyer, buys(t, b, id, buyer), "pending")
		}
	}
	for id := uint32(1); id <= products; id++ {
		openSale(t, a, engine.Product{ID: id, Stock: 10})
		sees(t, b, id)
	}
	buysAll("early")
	until(t, "nothing waits for a worker", func() bool { return metric(t, a, "seckill_outbox_waiting") == 0 })
	redis.FlushAll()
	epochs := func() (epochs []uint64, rebuilding bool) {
		for id := uint32(1); id <= products; id++ {
			p, err := a.Operator().Product(t.Context(), id)
			must(t, "read a product", err)
			epochs, rebuilding = append(epochs, p.Epoch), rebuilding || p.Rebuilding
		}
		return epochs, rebuilding
	}
	once := slices.Repeat([]uint64{2}, products)
	until(t, "all are rebuilt", func() bool {
		now, rebuilding := epochs()
		return !rebuilding && slices.Min(now) > 1
	})
	buysAll("late") // with which workers acknowledge again
	if now, _ := epochs(); !slices.Equal(now, once) {
		t.Errorf("the epochs are %v", now)
	}
}

func TestTheShopSellsWithoutMySQL(t *testing.T) {
	t.Parallel()
	maria := server.MariaDB(t, server.MariaOptions{})
	redis := server.Redis(t, server.RedisOptions{})
	e := engine.Start(t, engine.Options{Settings: engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(maria.NewDatabase(t)))})
	openSale(t, e, engine.Product{ID: 1, Stock: 100})
	confirmed := buys(t, e, 1, "before")
	await(t, e, "before", confirmed, "pending")
	for name, outage := range map[string][2]func(){
		"killed": {maria.Kill, maria.Start}, "frozen": {maria.Pause, maria.Resume},
	} {
		until(t, "nothing waits for the worker", func() bool { return metric(t, e, "seckill_outbox_waiting") == 0 })
		outage[0]()
		buyer := "during-" + name
		began := time.Now()
		no := buys(t, e, 1, buyer)
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s: a purchase took %s", name, took)
		}
		o, err := e.Buyer(buyer).Order(t.Context(), no)
		if err != nil || o.Status != "queued" {
			t.Errorf("%s: the order reads %+v, %v", name, o, err)
		}
		list, err := e.Buyer(buyer).Orders(t.Context())
		if err != nil || len(list) != 1 || list[0].OrderNo != no {
			t.Errorf("%s: the orders are %+v, %v", name, list, err)
		}
		if _, err := e.Buyer("before").Order(t.Context(), confirmed); engine.CodeOf(err) != seckill.CodeBusy {
			t.Errorf("%s: an order that only the store knows was answered %v", name, err)
		}
		if body, status := get(t, e.ShopURL+"/readyz"); status != http.StatusOK {
			t.Errorf("%s: the shop is not ready: %s", name, body)
		}
		if _, status := get(t, e.AdminURL+"/readyz"); status != http.StatusServiceUnavailable {
			t.Errorf("%s: the operator's side is ready: %d", name, status)
		}
		outage[1]()
		await(t, e, buyer, no, "pending")
	}
}

// Whatever Redis does, every shopper is usually answered within a second, and buys
// again within two of its return; always within twice as long.
func TestWithoutRedisEveryAnswerIsBusyAndInTime(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	e := engine.Start(t, engine.Options{Settings: engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))})
	openSale(t, e, engine.Product{ID: 1, Stock: 1000})
	buys(t, e, 1, "before")
	for name, o := range map[string]absence{
		"killed": {redis.Kill, redis.Start, "connection refused"}, "frozen": {redis.Pause, redis.Resume, "reach the ledger"},
	} {
		usuallyInTime(t, func(n int) []timed {
			o.begin()
			all := append(busy(t, e, fmt.Sprintf("%s-%d", name, n)), notReady(t, e, o.says)...)
			all = append(all, operated(t, e, fmt.Sprintf("%s-%d", name, n))...)
			if metric(t, e, `seckill_up{part="ledger"}`) != 0 || metric(t, e, `seckill_up{part="store"}`) != 1 {
				t.Errorf("%s: the metrics do not tell which part is down", name)
			}
			o.end()
			began := time.Now()
			buys(t, e, 1, fmt.Sprintf("after-%s-%d", name, n))
			return append(all, timed{name + ": to sell again", time.Since(began), sellAgainWithin})
		})
	}
}

// absence is how Redis goes and comes back, and what operators are told meanwhile.
type absence struct {
	begin, end func()
	says       string
}

// busy wants every one of a crowd to be told busy, and says how long the slowest
// answer took.
func busy(t *testing.T, e *engine.Engine, name string) []timed {
	t.Helper()
	var crowd sync.WaitGroup
	var mu sync.Mutex
	slowest := timed{name + ": the slowest answer", 0, answerWithin}
	for i := range 20 {
		crowd.Go(func() {
			for n := range 3 {
				began := time.Now()
				_, code := buy(t.Context(), e, 1, fmt.Sprintf("%s-%d-%d", name, i, n))
				took := time.Since(began)
				if code != seckill.CodeBusy {
					t.Errorf("%s: answered %q after %s", name, code, took)
				}
				mu.Lock()
				slowest.took = max(slowest.took, took)
				mu.Unlock()
			}
		})
	}
	crowd.Wait()
	return []timed{slowest}
}

// operated runs the sale while the ledger cannot hear of it, and says how long
// the answers took: the store has what was asked for, and tells it later.
func operated(t *testing.T, e *engine.Engine, name string) (all []timed) {
	t.Helper()
	at := e.Operator()
	for _, move := range []struct {
		name string
		do   func() error
		code seckill.Code
	}{
		{"pause", func() error { _, err := at.Pause(t.Context(), 1); return err }, seckill.CodeBusy},
		{"resume", func() error { _, err := at.Resume(t.Context(), 1); return err }, seckill.CodeBusy},
		{"stock", func() error { _, err := at.ChangeStock(t.Context(), 1, 1, name); return err }, ""},
	} {
		began := time.Now()
		if err := move.do(); engine.CodeOf(err) != move.code {
			t.Errorf("%s: %s was answered %v", name, move.name, err)
		}
		all = append(all, timed{name + ": " + move.name, time.Since(began), answerWithin})
	}
	return all
}

// notReady wants both sides to say that they are not ready, and only operators
// to be told why.
func notReady(t *testing.T, e *engine.Engine, why string) (all []timed) {
	t.Helper()
	until(t, "the shop's last answer of before is old", func() bool { _, status := get(t, e.ShopURL+"/readyz"); return status != http.StatusOK })
	for url, why := range map[string]string{e.ShopURL: "", e.AdminURL: why} {
		began := time.Now()
		if body, status := get(t, url+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, why) {
			t.Errorf("/readyz says %d %s", status, body)
		}
		all = append(all, timed{"/readyz", time.Since(began), answerWithin})
	}
	return all
}

func TestAStartWaitsForItsServers(t *testing.T) {
	t.Parallel()
	maria, redis := server.MariaDB(t, server.MariaOptions{}), server.Redis(t, server.RedisOptions{})
	e := engine.New(t, engine.Options{Settings: engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(maria.NewDatabase(t)))})
	maria.Kill()
	redis.Kill()
	started := make(chan error, 1)
	go func() { started <- e.TryStart() }()
	for _, part := range []struct {
		name  string
		start func()
	}{{"waiting for the store", maria.Start}, {"waiting for Redis", redis.Start}} {
		until(t, "it says that it is "+part.name, func() bool { return strings.Contains(e.Log(), part.name) })
		part.start()
	}
	must(t, "start", <-started)
}

func TestOldTablesAreRefusedUntilTheyAreMigrated(t *testing.T) {
	t.Parallel()
	settings := shared(t, map[string]string{"store.migrate": "false"})
	e := engine.New(t, engine.Options{Settings: settings})
	if err := e.TryStart(); err == nil || !strings.Contains(err.Error(), "seckill migrate") {
		t.Fatalf("with no tables at all it ended with %v", err)
	}
	command := exec.CommandContext(t.Context(), engine.Binary(t), "migrate")
	command.Env = append(slices.Clone(e.Environ()), "SECKILL_LOG_LEVEL=warn")
	out, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "up to date") || strings.Contains(string(out), "seckill:seckill@") {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	e.Start()
}
