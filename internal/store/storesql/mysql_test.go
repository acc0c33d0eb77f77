package storesql

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"seckill"
	"seckill/internal/store"
	"seckill/test/server"
)

// openMaria opens a store in a new database of the shared server.
func openMaria(tb testing.TB) *Store {
	tb.Helper()
	return openAt(tb, server.SharedMariaDB(tb).NewDatabase(tb), Options{})
}

func TestOpen_ErrorHidesThePassword(t *testing.T) {
	for _, dsn := range []string{
		"mysql:root:hunter2@tcp(127.0.0.1:1)/shop", // no server on this port
		"mysql:root:hunter2@tcp(127.0.0.1:1)/",
		"mysql:root:hunter2@tcp(127.0.0.1:1/shop",
		"mysql:root:hunter2@nothing(x)/shop",
		"mysql:root:hunter2@tcp(127.0.0.1:1)/shop?parseTime=hunter2",
		"mysql:root:hunter2",
		"root:hunter2@tcp(127.0.0.1:1)/shop",
		"hunter2",
	} {
		s, err := Open(t.Context(), dsn, Options{Timeout: 2 * time.Second})
		if err == nil {
			s.Close()
			t.Errorf("%s was opened", dsn)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

// The store overrides settings of the address that it relies on.
func TestConnect_AppliesTheStoresSettings(t *testing.T) {
	dsn := server.SharedMariaDB(t).NewDatabase(t) +
		"?charset=latin1&clientFoundRows=false&interpolateParams=false&sql_mode=ANSI&time_zone=%27%2B08%3A00%27&loc=Local&multiStatements=true"
	s := openAt(t, dsn, Options{})
	var charset, collation, mode, zone, isolation string
	query := `SELECT @@character_set_client, @@collation_connection, @@sql_mode, @@time_zone`
	err := s.db.write(t.Context(), func(tx *session) error {
		if _, err := tx.row(t.Context(), query, nil, &charset, &collation, &mode, &zone); err != nil {
			return err
		}
		// The first name is MariaDB's, the second MySQL's.
		_, err := tx.row(t.Context(), `SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')`, nil, new(string), &isolation)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(charset, collation, zone, isolation)
	if want := fmt.Sprintln("utf8mb4", "utf8mb4_bin", "+00:00", "READ-COMMITTED"); got != want {
		t.Errorf("got %swant %s", got, want)
	}
	if !strings.Contains(mode, "STRICT_ALL_TABLES") || !strings.Contains(mode, "ONLY_FULL_GROUP_BY") || strings.Contains(mode, "ANSI") {
		t.Errorf("sql_mode is %s", mode)
	}
	p := sale(t, s, 10)
	if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 3))); err != nil {
		t.Errorf("Confirm: %v", err)
	}
}

func TestConfirm_WorkersOnOneProductDoNotConflict(t *testing.T) {
	const workers, batches, size = 4, 15, 60
	dsn := server.SharedMariaDB(t).NewDatabase(t)
	p := sale(t, openAt(t, dsn, Options{}), workers*batches*size)
	var group errgroup.Group
	for range workers {
		s := openAt(t, dsn, Options{MaxConns: 4}) // like a separate instance
		group.Go(func() error {
			for range batches {
				if _, err := s.Confirm(t.Context(), request(&p, claims(&p, size))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, dsn, Options{})
	f, err := s.Figures(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if f.Pending != workers*batches*size || f.Product.Stock != 0 {
		t.Errorf("%d units pending, %d in stock", f.Pending, f.Product.Stock)
	}
	if want := p.Version + workers*batches; f.Product.Version != want {
		t.Errorf("version %d, want one step per batch: %d", f.Product.Version, want)
	}
	checkSound(t, s, f)
}

// The products of a limit group have one lock each, and share one limit.
func TestConfirm_LimitGroupHoldsUnderConcurrency(t *testing.T) {
	s := openMaria(t)
	owner := sale(t, s, 1000)
	member := owner
	member.ID, member.Stock = 8, 1000
	if _, err := s.CreateProduct(t.Context(), member, operator); err != nil {
		t.Fatal(err)
	}
	member, err := s.OpenEpoch(t.Context(), member.ID, 0, 0, operator, func(seckill.Order) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	const buyers = 100
	var group errgroup.Group
	for _, p := range []*seckill.Product{&owner, &member, &owner, &member} {
		group.Go(func() error {
			for i := range buyers {
				items := claims(p, 1)
				items[0].Claim.Buyer = fmt.Sprintf("buyer-%d", i)
				if _, err := s.Confirm(t.Context(), request(p, items)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if findings, err := s.CheckBuyers(t.Context(), owner.Group, 10); err != nil || len(findings) > 0 {
		t.Errorf("I3: %v %v", findings, err)
	}
	pending := int64(0)
	for _, id := range []uint32{owner.ID, member.ID} {
		f, err := s.Figures(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		pending += f.Pending
	}
	if pending != buyers {
		t.Errorf("%d units for %d buyers of one each", pending, buyers)
	}
}

func TestChange_RetriesDeadlock(t *testing.T) {
	s := openMaria(t)
	const rivals = 2
	for id := range uint32(rivals) {
		damage(t, s, `INSERT INTO tb_witness (stream, seq, tag) VALUES (?, 0, 0)`, fmt.Sprint(id))
	}
	var met sync.WaitGroup
	met.Add(rivals)
	var group errgroup.Group
	for me := range rivals {
		runs := 0
		group.Go(func() error {
			return s.change(t.Context(), "cross", func(ctx context.Context, tx *session) error {
				runs++
				raise := func(stream int) error {
					_, err := tx.exec(ctx, `UPDATE tb_witness SET seq = seq + 1 WHERE stream = ?`, fmt.Sprint(stream))
					return err
				}
				if err := raise(me); err != nil {
					return err
				}
				if runs == 1 { // now each waits for the other's row
					met.Done()
					met.Wait()
				}
				return raise(1 - me)
			})
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	ids, err := s.Witness(t.Context())
	if err != nil || len(ids) != rivals || ids[0].Seq != rivals || ids[1].Seq != rivals {
		t.Errorf("not each change happened once: %v %v", ids, err)
	}
}

// Many changes deadlock again and again. Each happens once, or returns an error.
func TestChange_ManyDeadlocksLoseNothing(t *testing.T) {
	s := openMaria(t)
	const rows, rivals, rounds = 3, 6, 20
	for id := range rows {
		damage(t, s, `INSERT INTO tb_witness (stream, seq, tag) VALUES (?, 0, 0)`, fmt.Sprint(id))
	}
	var happened atomic.Int64
	var group errgroup.Group
	for me := range rivals {
		group.Go(func() error {
			for round := range rounds {
				err := s.change(t.Context(), "storm", func(ctx context.Context, tx *session) error {
					for step := range rows { // half of them in reverse order
						stream := (round + step) % rows
						if me%2 == 0 {
							stream = rows - 1 - stream
						}
						if _, err := tx.exec(ctx, `UPDATE tb_witness SET seq = seq + 1 WHERE stream = ?`, fmt.Sprint(stream)); err != nil {
							return err
						}
					}
					return nil
				})
				if err == nil {
					happened.Add(1)
				} else if !errors.Is(err, store.ErrConflict) {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	ids, err := s.Witness(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if int64(id.Seq) != happened.Load() {
			t.Errorf("row %s was changed %d times by %d changes", id.Stream, id.Seq, happened.Load())
		}
	}
	if happened.Load() < rivals*rounds/2 {
		t.Errorf("only %d of %d changes happened", happened.Load(), rivals*rounds)
	}
}

// A statement may run as long as its caller waits, and not much longer.
func TestStatements_EndWithTheirCaller(t *testing.T) {
	const usual = 500 * time.Millisecond
	s := openAt(t, server.SharedMariaDB(t).NewDatabase(t), Options{Timeout: usual})
	sleep := func(timeout time.Duration, query string) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		return s.snapshot(ctx, "sleep", func(ctx context.Context, r *session) error {
			_, err := r.row(ctx, query, nil, new(int))
			return err
		})
	}
	if err := sleep(10*time.Second, "SELECT SLEEP(1)"); err != nil {
		t.Errorf("a caller with more time than usual: %v", err)
	}
	if err := sleep(usual/5, "SELECT SLEEP(1000) AS gone"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a caller with less: %v, want ErrUnavailable", err)
	}
	waitFor(t, "the server to end it", func() bool {
		var running int
		err := s.read(t.Context(), "count", func(ctx context.Context, r *session) error {
			_, err := r.row(ctx, `SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP(1000)%'`, nil, &running)
			return err
		})
		return err == nil && running == 0
	})
}

func TestChange_WaitForLockEndsAtDeadline(t *testing.T) {
	s := openMaria(t)
	p := sale(t, s, 10)
	locked, done := make(chan struct{}), make(chan struct{})
	var group errgroup.Group
	group.Go(func() error {
		return s.db.write(context.Background(), func(tx *session) error {
			_, err := lockProduct(t.Context(), tx, p.ID)
			close(locked)
			<-done
			return err
		})
	})
	<-locked
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Confirm(ctx, request(&p, claims(&p, 1))); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Confirm: %v, want ErrUnavailable", err)
	}
	if _, err := s.Product(t.Context(), p.ID); err != nil {
		t.Errorf("a reader waits for the writer: %v", err)
	}
	close(done)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 1))); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

// If another session holds a product's row, the orders of that product do not expire, but those
// of other products do.
func TestExpire_LockedProductDoesNotBlockOthers(t *testing.T) {
	t.Run("scan", func(t *testing.T) {
		lockedProduct(t, func(s *Store, _ []seckill.OrderNo) ([]seckill.Order, error) { return s.Expire(t.Context(), 10) })
	})
	t.Run("given orders", func(t *testing.T) {
		lockedProduct(t, func(s *Store, nos []seckill.OrderNo) ([]seckill.Order, error) {
			return s.ExpireOrders(t.Context(), nos)
		})
	})
}

func lockedProduct(t *testing.T, expire func(s *Store, nos []seckill.OrderNo) ([]seckill.Order, error)) {
	t.Helper()
	s := openMaria(t)
	var nos []seckill.OrderNo
	held, free := sale(t, s, 10), sale(t, s, 10, func(p *seckill.Product) { p.ID = 8 })
	for _, p := range []*seckill.Product{&held, &free} {
		req := request(p, claims(p, 1))
		req.ExpireAfter = time.Millisecond
		nos = append(nos, req.Items[0].Claim.OrderNo)
		if _, err := s.Confirm(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	locked, done := make(chan struct{}), make(chan struct{})
	var group errgroup.Group
	group.Go(func() error {
		return s.db.write(context.Background(), func(tx *session) error {
			_, err := lockProduct(t.Context(), tx, held.ID)
			close(locked)
			<-done
			return err
		})
	})
	<-locked
	var expired []seckill.Order
	waitFor(t, "the other's order to expire", func() bool {
		orders, err := expire(s, nos)
		if err != nil {
			t.Fatal(err)
		}
		expired = append(expired, orders...)
		return len(expired) > 0
	})
	if len(expired) != 1 || expired[0].ProductID != free.ID {
		t.Errorf("expired are %+v", expired)
	}
	close(done)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// A transaction that begins first commits last. Its events come after those that were read
// before, and no reader skips them.
func TestEvents_LaterCommitComesLater(t *testing.T) {
	s := openMaria(t)
	write := func(order string, then func()) error {
		return s.db.write(t.Context(), func(tx *session) error {
			err := writeEvents(t.Context(), tx, []any{1, string(seckill.EventOrderPaid), 7, nil, order, 1, string(seckill.EventOrderPaid), 7, nil, order})
			then()
			return err
		})
	}
	written, commit := make(chan struct{}), make(chan struct{})
	var group errgroup.Group
	group.Go(func() error {
		return write("slow", func() { close(written); <-commit })
	})
	<-written
	if err := write("quick", func() {}); err != nil {
		t.Fatal(err)
	}
	read := func(after int64) (reasons []string, last int64) {
		events, err := s.Events(t.Context(), after, 10)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range events {
			reasons = append(reasons, e.Reason)
			if want := after + 1 + int64(i); e.ID != want {
				t.Errorf("event %d has id %d", want, e.ID)
			}
			last = e.ID
		}
		return reasons, last
	}
	first, last := read(0)
	close(commit)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	second, _ := read(last)
	if !slices.Equal(first, []string{"quick", "quick"}) || !slices.Equal(second, []string{"slow", "slow"}) {
		t.Errorf("read %v, then %v", first, second)
	}
	if page, _ := read(1); !slices.Equal(page, []string{"quick", "slow", "slow"}) {
		t.Errorf("from the middle of a batch: %v", page)
	}
}

// Several instances read the feed while several write it.
func TestEvents_AllReadersSeeTheSame(t *testing.T) {
	const writers, followers, changes = 4, 3, 40
	dsn := server.SharedMariaDB(t).NewDatabase(t)
	s := openAt(t, dsn, Options{})
	written := make(chan struct{})
	var write, follow errgroup.Group
	for w := range writers {
		write.Go(func() error {
			for i := range changes {
				err := s.change(t.Context(), "note", func(ctx context.Context, tx *session) error {
					rows := make([]any, 0, 15)
					for range 1 + (w+i)%3 {
						rows = append(rows, i, string(seckill.EventSaleStarted), w+1, nil, "")
					}
					return writeEvents(ctx, tx, rows)
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	seen := make([][]seckill.Event, followers)
	for f := range followers {
		other := openAt(t, dsn, Options{MaxConns: 4})
		follow.Go(func() error {
			var after int64
			for last := false; ; {
				page, err := other.Events(t.Context(), after, 5+f)
				if err != nil {
					return err
				}
				for _, e := range page {
					seen[f], after = append(seen[f], e), e.ID
				}
				if len(page) == 0 && last {
					return nil
				}
				select {
				case <-written:
					last = true // one more round
				default:
				}
			}
		})
	}
	if err := write.Wait(); err != nil {
		t.Fatal(err)
	}
	close(written)
	if err := follow.Wait(); err != nil {
		t.Fatal(err)
	}
	all, err := s.Events(t.Context(), 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for f, events := range seen {
		if !reflect.DeepEqual(events, all) {
			t.Errorf("follower %d saw %d events, there are %d", f, len(events), len(all))
		}
	}
	next := make([]int, writers+1) // by writer: each writer's changes must be in order
	for _, e := range all {
		if at := int(e.At.UnixMilli()); at < next[e.ProductID] {
			t.Fatalf("change %d of writer %d comes after its change %d", at, e.ProductID, next[e.ProductID])
		} else {
			next[e.ProductID] = at
		}
	}
}
