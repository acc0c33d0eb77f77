package spentsql_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"seckill/internal/spent"
	"seckill/internal/spent/spentsql"
	"seckill/internal/spent/spenttest"
	"seckill/internal/store/storesql"
	"seckill/test/rig"
	"seckill/test/server"
)

// open opens the tables at dsn, as one instance does.
func open(t *testing.T, dsn string, opt storesql.Options) *storesql.Store {
	t.Helper()
	s, err := storesql.Open(t.Context(), dsn, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformanceOnSQLite(t *testing.T) {
	spenttest.Run(t, func(t *testing.T) *spenttest.Fixture {
		var clock rig.Clock
		s := open(t, "sqlite:"+filepath.Join(t.TempDir(), "store.db"), storesql.Options{Now: clock.Now})
		return &spenttest.Fixture{Registers: []spent.Register{spentsql.New(s, clock.Now)}, Now: clock.Now, Wait: clock.Advance}
	})
}

func TestConformanceOnMariaDB(t *testing.T) {
	maria := server.SharedMariaDB(t)
	spenttest.Run(t, func(t *testing.T) *spenttest.Fixture {
		dsn := maria.NewDatabase(t)
		var registers []spent.Register
		for range 2 {
			registers = append(registers, spentsql.New(open(t, dsn, storesql.Options{MaxConns: 8}), time.Now))
		}
		// The server has no clock to move: the suite's polls wait.
		return &spenttest.Fixture{Registers: registers, Now: time.Now, Wait: func(time.Duration) {}}
	})
}

// What has ended is dropped, as many as are asked for, and nothing else: also not
// what was made again after it had ended.
func TestWhatHasEndedIsForgottenAndNothingElse(t *testing.T) {
	var clock rig.Clock
	s := open(t, "sqlite:"+filepath.Join(t.TempDir(), "store.db"), storesql.Options{Now: clock.Now})
	r := spentsql.New(s, clock.Now)
	spend := func(id string, life time.Duration) bool {
		t.Helper()
		first, err := r.Spend(t.Context(), id, clock.Now().Add(life))
		if err != nil {
			t.Fatal(err)
		}
		return first
	}
	for i := range 8 {
		spend(fmt.Sprint("short:", i), time.Minute)
	}
	spend("long", time.Hour)
	clock.Advance(2 * time.Minute)
	spend("short:0", time.Hour)
	for _, want := range []int{4, 3, 0} {
		if n, err := s.ForgetUses(t.Context(), 4); n != want || err != nil {
			t.Errorf("%d were forgotten, %v, want %d", n, err, want)
		}
	}
	if spend("long", time.Hour) || spend("short:0", time.Hour) {
		t.Error("a use that has not ended was forgotten")
	}
	clock.Advance(2 * time.Hour)
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := s.ForgetUses(t.Context(), 4); n != 0 || err != nil {
		t.Errorf("a sweep has left %d, %v", n, err)
	}
}

// crowded is a table with uses that have ended.
type crowded struct {
	spentsql.Table
	ended, steps int
}

func (c *crowded) ForgetUses(_ context.Context, limit int) (int, error) {
	n := min(limit, c.ended)
	c.ended -= n
	c.steps++
	return n, nil
}

func TestASweepGoesOnUntilNothingIsLeftOrItHasDoneItsShare(t *testing.T) {
	some, many := &crowded{ended: 1234}, &crowded{ended: 1 << 20}
	for _, c := range []*crowded{some, many} {
		if err := spentsql.New(c, time.Now).Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if some.ended != 0 || some.steps != 3 {
		t.Errorf("%d of 1234 are left after %d steps", some.ended, some.steps)
	}
	if many.ended == 0 || many.ended == 1<<20 {
		t.Errorf("%d of a million are left", many.ended)
	}
}
