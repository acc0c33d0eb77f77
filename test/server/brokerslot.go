package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/test/broker"
)

// A test waits up to slotWithin for the brokers of other tests, and checks
// every slotPoll.
const (
	slotWithin = 10 * time.Minute
	slotPoll   = 50 * time.Millisecond
)

// slot is the one broker that this process may run. A lock on a file makes it
// one for all test processes of a user, because brokers are large and two of
// them would slow each other and all other tests.
var slot brokerSlot

type brokerSlot struct {
	mu     sync.Mutex
	unlock func()        // releases the lock of all processes; nil while it is not held
	users  []string      // the tests that use the present broker
	kind   broker.Kind   // of the shared broker
	shared brokerMachine // nil if there is none
	failed map[broker.Kind]error
}

// take gives the slot to a test that starts a broker of its own. It waits until
// no test uses the current broker, and stops a shared one.
func (s *brokerSlot) take(t testing.TB) {
	t.Helper()
	s.wait(t, func() bool { return false })
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.users = nil
		s.release()
	})
}

// share returns the shared broker of a kind. It starts the broker if it does
// not run: at its first use, after a broker of another kind, or if the last
// test left it down.
func (s *brokerSlot) share(t testing.TB, kind broker.Kind, build func(jars string) (brokerMachine, error)) brokerMachine {
	t.Helper()
	jars := needJars(t, kind)
	s.wait(t, func() bool { return s.shared != nil && s.kind == kind })
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.Index(s.users, t.Name())
		s.users = slices.Delete(s.users, i, i+1)
		if s.shared == nil {
			s.release() // it did not start
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failed[kind]; err != nil {
		t.Fatalf("start the shared %s: %v", kind, err)
	}
	if err := s.revive(kind, jars, build); err != nil {
		if s.failed == nil {
			s.failed = map[broker.Kind]error{}
		}
		s.failed[kind] = err
		t.Fatalf("start the shared %s: %v", kind, err)
	}
	return s.shared
}

// revive makes and starts the shared broker if needed.
func (s *brokerSlot) revive(kind broker.Kind, jars string, build func(jars string) (brokerMachine, error)) error {
	if s.shared == nil {
		machine, err := build(jars)
		if err != nil {
			return err
		}
		s.shared, s.kind = machine, kind
		if err := removeAtExit(machine.base().dir); err != nil {
			return err
		}
	}
	return s.shared.base().begin()
}

// wait makes t a user of the slot when the slot is free, or when the test wants
// to share its current broker.
func (s *brokerSlot) wait(t testing.TB, mayShare func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), slotWithin, fmt.Errorf("not within %s", slotWithin))
	defer cancel()
	tick := time.NewTicker(slotPoll)
	defer tick.Stop()
	for {
		joined, err := s.join(ctx, t.Name(), mayShare)
		if err != nil {
			t.Fatalf("wait for the brokers of other tests to end: %v", err)
		}
		if joined {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("wait for the brokers of other tests to end: %v", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func (s *brokerSlot) join(ctx context.Context, test string, mayShare func() bool) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mayShare() {
		s.users = append(s.users, test)
		return true, nil
	}
	for _, user := range s.users {
		if strings.HasPrefix(test+"/", user+"/") {
			return false, errors.New(user + " has a broker already, and a test may have one at a time")
		}
	}
	if len(s.users) > 0 {
		return false, nil
	}
	s.release()
	dir, err := broker.Dir()
	if err != nil {
		return false, err
	}
	// Other tests of this process wait for the mutex meanwhile.
	if s.unlock, err = broker.Lock(ctx, filepath.Join(dir, "running.lock")); err != nil {
		return false, err
	}
	s.users = append(s.users, test)
	return true, nil
}

// release stops a shared broker and frees the slot.
func (s *brokerSlot) release() {
	if s.shared != nil {
		s.shared.base().end()
		s.shared = nil
	}
	if s.unlock != nil {
		s.unlock()
		s.unlock = nil
	}
}
