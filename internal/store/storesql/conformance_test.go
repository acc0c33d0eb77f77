package storesql

import (
	"path/filepath"
	"testing"

	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/server"
)

func TestConformanceOfSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(part *testing.T, clock *storetest.Clock) *storetest.Harness {
		dsn := "sqlite:" + filepath.Join(part.TempDir(), "store.db")
		opt := Options{Now: clock.Now}
		s := openAt(part, dsn, opt)
		h := &storetest.Harness{Store: s}
		h.Reopen = func(t *testing.T) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openAt(part, dsn, opt) // later parts of the test use it
			return s
		}
		h.Exec = func(t *testing.T, query string, args ...any) { damage(t, s, query, args...) }
		return h
	})
}

func TestConformanceOfMariaDB(t *testing.T) {
	t.Parallel()
	maria := server.SharedMariaDB(t)
	storetest.Run(t, func(part *testing.T, _ *storetest.Clock) *storetest.Harness {
		dsn := maria.NewDatabase(part)
		s := openAt(part, dsn, Options{})
		h := &storetest.Harness{Store: s, OwnClock: true}
		h.Reopen = func(t *testing.T) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openAt(part, dsn, Options{}) // later parts of the test use it
			return s
		}
		h.Exec = func(t *testing.T, query string, args ...any) { damage(t, s, query, args...) }
		return h
	})
}
