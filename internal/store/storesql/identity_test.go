package storesql

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestIdentity_IsOneAndPermanent(t *testing.T) {
	seen := map[string]bool{}
	everyDatabase(t, func(t *testing.T, s *Store) {
		names := make([]string, 8)
		var all sync.WaitGroup
		for i := range names {
			all.Go(func() {
				name, err := s.Identity(t.Context())
				if err != nil {
					t.Error(err)
				}
				names[i] = name
			})
		}
		all.Wait()
		for _, name := range names {
			if name != names[0] || len(name) != 2*identityBytes {
				t.Fatalf("concurrent calls returned %q", names)
			}
		}
		if seen[names[0]] {
			t.Error("two stores have one identity")
		}
		seen[names[0]] = true
	})
}

// Orders may wait in Redis under the lost name.
func TestIdentity_LostIsRefused(t *testing.T) {
	everyDatabase(t, func(t *testing.T, s *Store) {
		forget := func() {
			err := s.change(t.Context(), "forget", func(ctx context.Context, tx *session) error {
				_, err := tx.exec(ctx, `DELETE FROM tb_store`)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		forget()
		if _, err := s.Identity(t.Context()); err != nil {
			t.Errorf("a store without a sale: %v", err)
		}
		sale(t, s, 5)
		if _, err := s.Identity(t.Context()); err != nil {
			t.Errorf("with its name: %v", err)
		}
		forget()
		if name, err := s.Identity(t.Context()); !errors.Is(err, errIdentityLost) {
			t.Errorf("it is %q, %v", name, err)
		}
	})
}
