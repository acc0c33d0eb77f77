package storesql

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"seckill"
	"seckill/internal/fault"
	"seckill/internal/payment"
	"seckill/internal/store"
	"seckill/test/server"
)

// The arguments of the child process: its store, and the change in which it dies.
const (
	crashStoreEnv = "STORESQL_CRASH_STORE"
	crashNameEnv  = "STORESQL_CRASH_NAME"
)

// crashes are changes during which a process may die. Each runs on a sale with one pending and
// one paid order, and has a function that tells whether the change happened.
var crashes = []struct {
	name     string
	change   func(ctx context.Context, s *Store, pending, paid seckill.Order) error
	happened func(f *store.Figures) bool
}{
	{"confirm", func(ctx context.Context, s *Store, pending, _ seckill.Order) error {
		p, err := s.Product(ctx, pending.ProductID)
		if err != nil {
			return err
		}
		_, err = s.Confirm(ctx, request(&p, claims(&p, 5)))
		return err
	}, func(f *store.Figures) bool { return f.Pending == 6 }},
	{"sell", func(ctx context.Context, s *Store, pending, _ seckill.Order) error {
		p, err := takeOver(ctx, s, pending.ProductID)
		if err != nil {
			return err
		}
		var batch []seckill.Claim
		for _, item := range claims(&p, 5) {
			batch = append(batch, item.Claim)
		}
		_, err = s.Sell(ctx, store.SellRequest{ProductID: p.ID, Epoch: p.Epoch, Claims: batch, ExpireAfter: time.Hour})
		return err
	}, func(f *store.Figures) bool { return f.Pending == 6 && f.Product.Stock == 93 }},
	{"takeover", func(ctx context.Context, s *Store, pending, _ seckill.Order) error {
		_, err := takeOver(ctx, s, pending.ProductID)
		return err
	}, func(f *store.Figures) bool { return f.Product.Seller == seckill.SellerStore && f.Product.Epoch == 2 }},
	{"open", func(ctx context.Context, s *Store, pending, _ seckill.Order) error {
		_, err := takeOver(ctx, s, pending.ProductID)
		return err
	}, func(f *store.Figures) bool { return f.Product.StoreOpen }},
	{"cancel", func(ctx context.Context, s *Store, pending, _ seckill.Order) error {
		_, err := s.Cancel(ctx, pending.OrderNo, seckill.ReasonByBuyer, operator)
		return err
	}, func(f *store.Figures) bool { return f.Cancelled == 1 && f.ReleasesDue == 1 }},
	{"expire", func(ctx context.Context, s *Store, _, _ seckill.Order) error {
		_, err := s.Expire(ctx, 10)
		return err
	}, func(f *store.Figures) bool { return f.Cancelled == 1 && f.ReleasesDue == 1 }},
	{"pay", func(ctx context.Context, s *Store, pending, _ seckill.Order) error {
		_, err := s.RecordPayment(ctx, exactNotice(pending))
		return err
	}, func(f *store.Figures) bool { return f.Paid == 2 }},
	{"refund", func(ctx context.Context, s *Store, _, paid seckill.Order) error {
		_, err := s.Refund(ctx, paid.OrderNo, operator)
		return err
	}, func(f *store.Figures) bool { return f.Refunded == 1 && f.ReleasesDue == 1 }},
	{"stock", func(ctx context.Context, s *Store, pending, _ seckill.Order) error {
		_, err := s.BeginStockChange(ctx, store.StockChange{ID: "up", ProductID: pending.ProductID, Delta: 7, Actor: operator})
		return err
	}, func(f *store.Figures) bool { return f.Product.Offered == 107 && f.OpenChanges == 1 }},
}

// crashesOfMariaDB are fewer, because the changes are the same code. They show that the server
// undoes uncommitted changes.
var crashesOfMariaDB = []string{"confirm", "sell", "refund"}

func exactNotice(o seckill.Order) payment.Notice {
	return payment.Notice{
		Provider: "sandbox", TradeNo: "T" + o.OrderNo.String(), OrderNo: o.OrderNo.String(),
		AmountCents: o.AmountCents(), Currency: o.Currency,
	}
}

// TestChange_AllOrNothingWhenTheProcessIsKilled kills a process right before and right after
// the commit of each change.
func TestChange_AllOrNothingWhenTheProcessIsKilled(t *testing.T) {
	if dsn := os.Getenv(crashStoreEnv); dsn != "" {
		crashChild(t, dsn)
		return
	}
	stores := map[string]func(*testing.T) string{
		"SQLite":  func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "store.db") },
		"MariaDB": func(t *testing.T) string { return server.SharedMariaDB(t).NewDatabase(t) },
	}
	for kind, newStore := range stores {
		for _, c := range crashes {
			if kind == "MariaDB" && !slices.Contains(crashesOfMariaDB, c.name) {
				continue
			}
			for _, point := range []string{"before_commit", "after_commit"} {
				t.Run(kind+" "+c.name+" "+point, func(t *testing.T) {
					dsn := newStore(t)
					before := crashFixture(t, dsn)
					killAt(t, dsn, c.name, point)
					s := openAt(t, dsn, Options{})
					f, err := s.Figures(t.Context(), before.Product.ID)
					if err != nil {
						t.Fatal(err)
					}
					if got, want := c.happened(&f), point == "after_commit"; got != want {
						t.Errorf("happened: %v, want %v: %+v", got, want, f)
					}
					checkSound(t, s, f)
				})
			}
		}
	}
}

// killAt runs a change in a process that is killed at point.
func killAt(t *testing.T, dsn, change, point string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChange_AllOrNothingWhenTheProcessIsKilled$")
	child.Env = append(os.Environ(), crashStoreEnv+"="+dsn, crashNameEnv+"="+change, fault.EnvVar+"=store."+change+"."+point)
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed: %v\n%s", err, out)
	}
}

// crashFixture creates a sale of 100 units with one paid order and one pending order that is
// due.
func crashFixture(t *testing.T, dsn string) store.Figures {
	t.Helper()
	s := openAt(t, dsn, Options{})
	defer s.Close()
	p := sale(t, s, 100)
	items := claims(&p, 2)
	req := request(&p, items)
	req.ExpireAfter = -time.Second
	if _, err := s.Confirm(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	paid, err := s.Order(t.Context(), items[1].Claim.OrderNo)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordPayment(t.Context(), exactNotice(paid)); err != nil {
		t.Fatal(err)
	}
	f, err := s.Figures(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func crashChild(t *testing.T, dsn string) {
	orderCount.Store(1 << 20) // not the claims of the parent process
	s := openAt(t, dsn, Options{})
	find := func(status seckill.OrderStatus) seckill.Order {
		found, err := s.SearchOrders(t.Context(), store.OrderFilter{Status: &status, Limit: 1})
		if err != nil || len(found) != 1 {
			t.Fatalf("no %s order: %v", status, err)
		}
		return found[0]
	}
	for _, c := range crashes {
		if c.name == os.Getenv(crashNameEnv) {
			err := c.change(t.Context(), s, find(seckill.OrderPending), find(seckill.OrderPaid))
			t.Fatalf("the process lives on: %v", err)
		}
	}
}

// checkSound checks I1, I3, I6 and I8.
func checkSound(t *testing.T, s *Store, f store.Figures) {
	t.Helper()
	if f.Product.Offered != f.Product.Stock+f.Pending+f.Paid {
		t.Errorf("I1: offered %d, stock %d, pending %d, paid %d", f.Product.Offered, f.Product.Stock, f.Pending, f.Paid)
	}
	for name, check := range map[string]func(context.Context, uint32, int) ([]store.Finding, error){
		"I3": s.CheckBuyers, "I6": s.CheckStockLog, "I8": s.CheckMoney,
	} {
		if findings, err := check(t.Context(), f.Product.ID, 10); err != nil || len(findings) > 0 {
			t.Errorf("%s: %+v %v", name, findings, err)
		}
	}
}
