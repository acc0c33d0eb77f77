package storesql

import (
	"path/filepath"
	"testing"

	"seckill/test/server"
)

func TestVersion_CreatesNothing(t *testing.T) {
	for name, dsn := range map[string]func() string{
		"SQLite":  func() string { return "sqlite:" + filepath.Join(t.TempDir(), "store.db") },
		"MariaDB": func() string { return server.SharedMariaDB(t).NewDatabase(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), dsn(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for range 2 { // the first call must not change the result of the second
				if current, latest, err := s.Version(t.Context()); current != 0 || latest != 1 || err != nil {
					t.Fatalf("a new store has version %d of %d, %v", current, latest, err)
				}
			}
			if err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if current, latest, err := s.Version(t.Context()); current != latest || err != nil {
				t.Errorf("a migrated store has version %d of %d, %v", current, latest, err)
			}
		})
	}
}
