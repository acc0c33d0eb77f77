package instance

import (
	"strings"
	"syscall"
	"testing"

	"seckill/test/engine"
	"seckill/test/server"
)

// otherLedger is what a process says that is refused.
const otherLedger = "another ledger sells for this database"

// wantRefused wants a start to end with an error that says what to do.
func wantRefused(t *testing.T, e *engine.Engine) {
	t.Helper()
	err := e.TryStart()
	if err == nil {
		t.Fatal("a second ledger was started on one database")
	}
	for _, word := range []string{otherLedger, "it is held by", "ledger.kind: redis"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal does not say %q: %v", word, err)
		}
	}
}

func TestMemoryLedger_SecondProcessOnOneDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	settings := engine.OnStore(server.SharedMariaDB(t).NewDatabase(t))
	first, second := engine.Start(t, engine.Options{Settings: settings}), engine.New(t, engine.Options{Settings: settings})
	openSale(t, first, engine.Product{ID: 1, Stock: 5})
	wantRefused(t, second)
	buys(t, first, 1, "ann")

	// A killed process locks nobody out, and a stopped one does not even make
	// its successor wait.
	first.Kill()
	second.Start()
	second.MustStop()
	first.Start()
	if strings.Count(first.Log(), "waiting for the lease") != 0 {
		t.Error("a start after a graceful stop waited for the lease")
	}
}

func TestMemoryLedger_RefusedBesideRedisOnOneDatabase(t *testing.T) {
	t.Parallel()
	onStore := engine.OnStore(server.SharedMariaDB(t).NewDatabase(t))
	onBoth := engine.Join(engine.OnRedis(server.SharedRedis(t).Addr()), onStore)
	embedded := engine.New(t, engine.Options{Settings: onStore})
	a, b := pair(t, onBoth)
	wantRefused(t, embedded)
	a.MustStop() // the lease is the other's as well
	wantRefused(t, embedded)
	b.Kill()
	embedded.Start()
	wantRefused(t, a)
	embedded.MustStop()
	a.Start()
}

func TestMemoryLedger_SurvivesRestartOfDatabase(t *testing.T) {
	t.Parallel()
	maria := server.MariaDB(t, server.MariaOptions{})
	settings := engine.OnStore(maria.NewDatabase(t))
	first := engine.Start(t, engine.Options{Settings: settings})
	openSale(t, first, engine.Product{ID: 1, Stock: 5})
	maria.Kill()
	until(t, "the lease cannot be renewed", func() bool {
		return metric(t, first, `seckill_duty_failures_total{duty="ledger-lease"}`) > 0
	})
	maria.Start()
	await(t, first, "ann", buys(t, first, 1, "ann"), "pending")
	wantRefused(t, engine.New(t, engine.Options{Settings: settings}))
	if !first.Running() {
		t.Error("the first process ended with the restart of its database")
	}
}

// A process that was frozen for longer than its lease finds another one in its
// place, and ends: both would sell the same stock.
func TestMemoryLedger_StopsWhenAnotherTookOver(t *testing.T) {
	t.Parallel()
	settings := engine.OnStore(server.SharedMariaDB(t).NewDatabase(t))
	first := engine.Start(t, engine.Options{Settings: settings})
	first.Signal(syscall.SIGSTOP)
	second := engine.Start(t, engine.Options{Settings: settings})
	first.Signal(syscall.SIGCONT)
	if err := first.WaitEnd(engine.StopWithin); err == nil {
		t.Error("it ended with exit code 0")
	}
	if !strings.Contains(first.Log(), otherLedger) {
		t.Error("it does not say why")
	}
	if !second.Running() {
		t.Error("the second process ended too")
	}
}
