package storesql

import (
	"sync"
	"testing"
)

func TestAStoreHasOneIdentityForGood(t *testing.T) {
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
				t.Fatalf("asked at once it is %q", names)
			}
		}
		if seen[names[0]] {
			t.Error("two stores have one identity")
		}
		seen[names[0]] = true
	})
}
