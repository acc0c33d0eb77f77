package storetest

import (
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

var leaseTests = []test{
	{"a lease has one holder", func(t *testing.T, s *suite) {
		name := newLease()
		equal(t, "first", s.lease(t, name, "a", far), true)
		equal(t, "second", s.lease(t, name, "b", far), false)
		equal(t, "another lease", s.lease(t, newLease(), "b", far), true)
	}},
	{"the holder renews its lease", func(t *testing.T, s *suite) {
		name := newLease()
		equal(t, "taken", s.lease(t, name, "a", tick), true)
		equal(t, "renewed", s.lease(t, name, "a", far), true)
		s.advance(t, 2*tick)
		equal(t, "taken by another", s.lease(t, name, "b", far), false)
	}},
	{"a lease that ran out can be taken", func(t *testing.T, s *suite) {
		name := newLease()
		equal(t, "taken", s.lease(t, name, "a", tick), true)
		s.advance(t, 2*tick)
		equal(t, "taken over", s.lease(t, name, "b", far), true)
		equal(t, "taken back", s.lease(t, name, "a", far), false)
	}},
	{"a lease from before the clock was set back can be taken", func(t *testing.T, s *suite) {
		name := newLease()
		equal(t, "taken", s.lease(t, name, "dead", far), true) // as if given by a clock that was ahead
		equal(t, "taken over", s.lease(t, name, "a", far/10), true)
		equal(t, "taken back", s.lease(t, name, "b", far/10), false)
	}},
	{"only its holder can release a lease", func(t *testing.T, s *suite) {
		name := newLease()
		equal(t, "taken", s.lease(t, name, "a", far), true)
		must(t, s.Store.ReleaseLease(t.Context(), name, "b"))
		equal(t, "taken over", s.lease(t, name, "b", far), false)
		must(t, s.Store.ReleaseLease(t.Context(), name, "a"))
		equal(t, "taken when free", s.lease(t, name, "b", far), true)
		must(t, s.Store.ReleaseLease(t.Context(), newLease(), "b"))
	}},
	{"one of many callers at once gets the lease", func(t *testing.T, s *suite) {
		name := newLease()
		has := make([]bool, rivals)
		var group errgroup.Group
		for i := range rivals {
			group.Go(func() (err error) {
				has[i], err = s.Store.AcquireLease(t.Context(), name, numbered("holder", i), far)
				return err
			})
		}
		must(t, group.Wait())
		holders := 0
		for _, one := range has {
			if one {
				holders++
			}
		}
		equal(t, "holders", holders, 1)
	}},
}

func newLease() string { return numbered("lease", int(newProductID())) }

func (s *suite) lease(t *testing.T, name, holder string, ttl time.Duration) bool {
	t.Helper()
	has, err := s.Store.AcquireLease(t.Context(), name, holder, ttl)
	must(t, err)
	return has
}
