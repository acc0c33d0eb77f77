package engine

import (
	"os"
	"testing"
	"time"

	"seckill"
	"seckill/test/server"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestEngine_KeepsDataAndPortsAfterRestart(t *testing.T) {
	e := Start(t, Options{Settings: map[string]string{"worker.batch_wait": "0s"}})
	ctx := t.Context()
	if _, err := e.Operator().OpenSale(ctx, Product{ID: 1, Stock: 1}); err != nil {
		t.Fatal(err)
	}
	ann := e.Buyer("ann")
	no, err := ann.Buy(ctx, 1, Purchase{Quantity: 1, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	e.Kill()
	if _, err := ann.Order(ctx, no); Answered(err) {
		t.Fatalf("a killed engine answered: %v", err)
	}
	e.Start()
	if again, err := ann.Buy(ctx, 1, Purchase{Quantity: 1, Key: "k"}); err != nil || again != no {
		t.Errorf("the key gave %q (%v), not %q", again, err, no)
	}
	if _, err := e.Buyer("bob").Order(ctx, no); CodeOf(err) != seckill.CodeNotFound {
		t.Errorf("another buyer's order: %v", err)
	}
	e.MustStop()
	if e.Running() {
		t.Error("it runs after its end")
	}
}

func TestEngine_DiesAtItsFailpoint(t *testing.T) {
	e := New(t, Options{})
	e.StartArmed("store.create.before_commit")
	if err := e.WaitReady(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Operator().OpenSale(t.Context(), Product{ID: 1, Stock: 1}); Answered(err) {
		t.Fatalf("answered: %v", err)
	}
	if err := e.WaitEnd(StopWithin); err == nil {
		t.Error("it ended with exit code 0")
	}
}

func TestEngine_RolesShareOneStore(t *testing.T) {
	shared := Join(OnRedis(server.SharedRedis(t).Addr()), OnStore(server.SharedMariaDB(t).NewDatabase(t)))
	ctx := t.Context()
	admin := Start(t, Options{Settings: shared, Roles: []string{RoleAdmin}})
	shop := Start(t, Options{Settings: shared, Roles: []string{RoleShop}})
	worker := Start(t, Options{Settings: shared, Roles: []string{RoleWorker}})
	if _, err := admin.Operator().Create(ctx, Product{ID: 1, Name: "shared", PriceCents: 1, Stock: 1, StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if _, err := shop.Buyer("ann").Orders(ctx); err != nil {
		t.Errorf("the shop: %v", err)
	}
	if _, err := shop.Operator().Product(ctx, 1); CodeOf(err) != seckill.CodeNotFound {
		t.Errorf("a process without the role answered operators %v", err)
	}
	if _, err := admin.Buyer("ann").Orders(ctx); Answered(err) {
		t.Errorf("a process without the role answered shoppers: %v", err)
	}
	// A worker becomes ready again after each start.
	worker.MustStop()
	worker.Start()
	worker.Kill()
}
