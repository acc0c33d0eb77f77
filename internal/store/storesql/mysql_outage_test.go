package storesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"seckill/internal/store"
	"seckill/test/server"
)

// healTime bounds how long a store may need to work again after its server does.
const healTime = 10 * time.Second

// heals waits until the store can be written again.
func heals(t *testing.T, s *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), healTime)
	defer cancel()
	for {
		err := s.Ping(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the store does not come back: %v", err)
		}
	}
}

// All parts share one server.
func TestMariaDBOutage_UnavailableThenWorksAgain(t *testing.T) {
	t.Parallel()
	maria := server.MariaDB(t, server.MariaOptions{})
	t.Run("killed in mid-batch", func(t *testing.T) { killedInMidBatch(t, maria) })
	t.Run("frozen", func(t *testing.T) { frozen(t, maria) })
	t.Run("read-only", func(t *testing.T) { readOnly(t, maria) })
	t.Run("locked out", func(t *testing.T) { lockedOut(t, maria) })
	t.Run("too many connections", func(t *testing.T) { tooManyConnections(t, maria) })
}

// killedInMidBatch kills the server a few times while workers confirm. Each batch must be
// written as a whole or not at all, and once after retries.
func killedInMidBatch(t *testing.T, maria *server.MariaServer) {
	const workers, size, kills = 3, 40, 2
	s := openAt(t, maria.NewDatabase(t), Options{Timeout: 5 * time.Second})
	p := sale(t, s, 1_000_000)
	var stop atomic.Bool
	var mu sync.Mutex
	var batches [][]store.Item
	var confirmed atomic.Int64
	var group errgroup.Group
	for range workers {
		group.Go(func() error {
			for !stop.Load() {
				items := claims(&p, size)
				mu.Lock()
				batches = append(batches, items)
				mu.Unlock()
				for { // retry until it succeeds, like a worker
					_, err := s.Confirm(t.Context(), request(&p, items))
					if err == nil {
						confirmed.Add(1)
						break
					}
					if !errors.Is(err, store.ErrUnavailable) {
						return fmt.Errorf("a killed server is %w", err)
					}
					if err := pause(t.Context(), maxPause); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	for range kills {
		after := confirmed.Load() + 20
		waitFor(t, "batches", func() bool { return confirmed.Load() > after })
		maria.Kill()
		maria.Start()
	}
	heals(t, s)
	stop.Store(true)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	f, err := s.Figures(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(len(batches) * size); f.Pending != want {
		t.Errorf("%d units pending, %d were confirmed", f.Pending, want)
	}
	if f.Product.Version != p.Version+uint64(len(batches)) {
		t.Errorf("version %d after %d batches from %d", f.Product.Version, len(batches), p.Version)
	}
	checkSound(t, s, f)
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*healTime)
	defer cancel()
	for !holds() {
		if err := pause(ctx, maxPause); err != nil {
			t.Fatalf("timeout waiting for %s", what)
		}
	}
}

// frozen stops the server's process. Connections stay open, but get no answer.
func frozen(t *testing.T, maria *server.MariaServer) {
	s := openAt(t, maria.NewDatabase(t), Options{})
	p := sale(t, s, 100)
	maria.Pause()
	defer maria.Resume()
	const deadline, late = 300 * time.Millisecond, 2 * time.Second
	calls := map[string]func(ctx context.Context) error{
		"Confirm": func(ctx context.Context) error { _, err := s.Confirm(ctx, request(&p, claims(&p, 1))); return err },
		"Product": func(ctx context.Context) error { _, err := s.Product(ctx, p.ID); return err },
		"Figures": func(ctx context.Context) error { _, err := s.Figures(ctx, p.ID); return err },
		"Events":  func(ctx context.Context) error { _, err := s.Events(ctx, 0, 10); return err },
		"Ping":    s.Ping,
	}
	var group errgroup.Group
	for name, call := range calls {
		for range 20 { // more than there are connections
			group.Go(func() error {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				began := time.Now()
				if err := call(ctx); !errors.Is(err, store.ErrUnavailable) {
					return fmt.Errorf("%s: %v, want ErrUnavailable", name, err)
				}
				if took := time.Since(began); took > late {
					return fmt.Errorf("%s took %v", name, took)
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	maria.Resume()
	heals(t, s)
	if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 1))); err != nil {
		t.Errorf("Confirm afterwards: %v", err)
	}
}

// asShop opens the database with an account that has only the rights it needs.
func asShop(t *testing.T, maria *server.MariaServer, dsn string) *Store {
	t.Helper()
	database := dsn[strings.LastIndexByte(dsn, '/')+1:]
	for _, query := range []string{
		"CREATE USER IF NOT EXISTS shop@'%' IDENTIFIED BY 'hunter2'",
		"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON " + database + ".* TO shop@'%'",
	} {
		if err := maria.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	return openAt(t, "mysql:shop:hunter2@tcp("+maria.Addr()+")/"+database, Options{MaxConns: 4})
}

func readOnly(t *testing.T, maria *server.MariaServer) {
	s := asShop(t, maria, maria.NewDatabase(t))
	p := sale(t, s, 100)
	if err := maria.Exec("SET GLOBAL read_only = 1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Ping: %v, want ErrUnavailable", err)
	}
	if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 1))); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Confirm: %v, want ErrUnavailable", err)
	}
	if _, err := s.Product(t.Context(), p.ID); err != nil {
		t.Errorf("reading: %v", err)
	}
	if err := maria.Exec("SET GLOBAL read_only = 0"); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping afterwards: %v", err)
	}
	if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 1))); err != nil {
		t.Errorf("Confirm afterwards: %v", err)
	}
}

// lockedOut checks that no new connections means ErrUnavailable: the claims are not at fault.
func lockedOut(t *testing.T, maria *server.MariaServer) {
	dsn := maria.NewDatabase(t)
	s := asShop(t, maria, dsn)
	p := sale(t, s, 100)
	for _, pool := range []*sql.DB{s.db.(*mysqlDB).writePool, s.db.(*mysqlDB).readPool} {
		pool.SetMaxIdleConns(-1)
	}
	if err := maria.Exec("ALTER USER shop@'%' ACCOUNT LOCK"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 1))); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Confirm: %v, want ErrUnavailable", err)
	}
	address := strings.Replace(dsn, "seckill:seckill@", "shop:hunter2@", 1)
	if other, err := Open(t.Context(), address, Options{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "unlock") {
		if err == nil {
			other.Close()
		}
		t.Errorf("Open: %v, want ErrRefused with what to do", err)
	}
	if err := maria.Exec("ALTER USER shop@'%' ACCOUNT UNLOCK"); err != nil {
		t.Fatal(err)
	}
	heals(t, s)
	if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 1))); err != nil {
		t.Errorf("Confirm afterwards: %v", err)
	}
}

func tooManyConnections(t *testing.T, maria *server.MariaServer) {
	s := asShop(t, maria, maria.NewDatabase(t))
	p := sale(t, s, 100)
	limit := func(n int) {
		if err := maria.Exec(fmt.Sprintf("SET GLOBAL max_connections = %d", n)); err != nil {
			t.Fatal(err)
		}
	}
	limit(10) // the server's minimum
	defer limit(500)
	release := takeConnections(t, "shop:hunter2@tcp("+maria.Addr()+")/")
	// The store keeps its connections, but gets no more.
	var group errgroup.Group
	var refused atomic.Int64
	for range 20 {
		group.Go(func() error {
			_, err := s.Figures(t.Context(), p.ID)
			if errors.Is(err, store.ErrUnavailable) {
				refused.Add(1)
				err = nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Errorf("too many connections: %v, want ErrUnavailable", err)
	}
	if refused.Load() == 0 {
		t.Error("no call was refused")
	}
	release()
	heals(t, s)
	waitFor(t, "figures", func() bool {
		_, err := s.Figures(t.Context(), p.ID)
		return err == nil
	})
}

// takeConnections takes all connections that the server gives.
func takeConnections(t *testing.T, dsn string) (release func()) {
	t.Helper()
	pool, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	var taken []*sql.Conn
	for {
		conn, err := pool.Conn(t.Context())
		if mysqlCode(err) == 1040 {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, conn)
	}
	return func() {
		for _, conn := range taken {
			drop(conn)
		}
		pool.Close()
	}
}

// Tablespaces that may not grow simulate a full disk.
func TestMariaDBFullDisk_UnavailableThenWorksAgain(t *testing.T) {
	t.Parallel()
	maria := server.MariaDB(t, server.MariaOptions{Args: []string{
		"--innodb-file-per-table=0", "--innodb-data-file-path=ibdata1:12M:autoextend:max:24M",
	}})
	s := openAt(t, maria.NewDatabase(t), Options{})
	p := sale(t, s, 1_000_000)
	const batch, most = 500, 200
	promised := 0
	var err error
	for range most {
		if _, err = s.Confirm(t.Context(), request(&p, claims(&p, batch))); err != nil {
			break
		}
		promised += batch
	}
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("Confirm without space: %v, want ErrUnavailable", err)
	}
	if _, err := s.Product(t.Context(), p.ID); err != nil {
		t.Errorf("reading without space: %v", err)
	}
	f, err := s.Figures(t.Context(), p.ID)
	if err != nil || f.Pending != int64(promised) {
		t.Errorf("pending %d, want the %d that were confirmed (%v)", f.Pending, promised, err)
	}
	checkSound(t, s, f)
	damage(t, s, `TRUNCATE tb_event`) // an operator makes room
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping when there is space again: %v", err)
	}
	// The server frees the old table's pages in the background. A worker retries as well.
	deadline, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		_, err := s.Confirm(t.Context(), request(&p, claims(&p, 10)))
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("Confirm when there is space again: %v", err)
		case <-tick.C:
		}
	}
}
