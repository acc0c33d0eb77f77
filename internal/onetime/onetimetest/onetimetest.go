// Package onetimetest is the conformance suite of onetime.Register.
package onetimetest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/onetime"
)

const (
	// patience bounds the wait for an end; it is far longer than needed.
	patience  = 20 * time.Second
	pollEvery = 10 * time.Millisecond
	callers   = 32
)

// Fixture is a register under test. Now is its clock. Wait lets time of that
// clock pass.
type Fixture struct {
	// Registers are one register as seen by one or more instances.
	Registers []onetime.Register
	Now       func() time.Time
	Wait      func(time.Duration)
}

// any returns one of the instances.
func (f *Fixture) any(i int) onetime.Register { return f.Registers[i%len(f.Registers)] }

// Run runs the suite. Each test has its own register.
func Run(t *testing.T, open func(t *testing.T) *Fixture) {
	for name, test := range map[string]func(t *testing.T, f *Fixture){
		"SpentOnce":                   testSpentOnce,
		"OneOfManyCallersIsFirst":     testOneIsFirst,
		"FirstOutcomeStands":          testFirstOutcomeStands,
		"AllCallersGetTheSameOutcome": testAllAreToldOne,
		"AnyTextIsADistinctID":        testAnyID,
		"EndedUseMayBeUsedAgain":      testEnd,
		"RememberedForMinLife":        testMinLife,
		"RepeatedUseKeepsItsEnd":      testRepeatKeepsEnd,
		"EndOfOneUseChangesNoOther":   testEndsApart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of them wait
			test(t, open(t))
		})
	}
}

func (f *Fixture) spend(t *testing.T, i int, id string, until time.Time) bool {
	t.Helper()
	first, err := f.any(i).Spend(t.Context(), id, until)
	if err != nil {
		t.Fatalf("spend %.40q: %v", id, err)
	}
	return first
}

func (f *Fixture) settle(t *testing.T, i int, id string, outcome onetime.Outcome, until time.Time) onetime.Outcome {
	t.Helper()
	standing, err := f.any(i).Settle(t.Context(), id, outcome, until)
	if err != nil {
		t.Fatalf("settle %.40q: %v", id, err)
	}
	return standing
}

func testSpentOnce(t *testing.T, f *Fixture) {
	until := f.Now().Add(time.Minute)
	for _, id := range []string{"login:a", "login:b"} {
		for i := range 6 {
			if first := f.spend(t, i, id, until); first != (i == 0) {
				t.Errorf("use %d of %s: first is %v", i+1, id, first)
			}
		}
	}
}

func testOneIsFirst(t *testing.T, f *Fixture) {
	until := f.Now().Add(time.Minute)
	var firsts atomic.Int64
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			if first, err := f.any(i).Spend(t.Context(), "login:a", until); err != nil {
				t.Error(err)
			} else if first {
				firsts.Add(1)
			}
		})
	}
	group.Wait()
	if firsts.Load() != 1 {
		t.Errorf("%d callers were first", firsts.Load())
	}
}

func testFirstOutcomeStands(t *testing.T, f *Fixture) {
	until := f.Now().Add(time.Minute)
	for i, said := range []onetime.Outcome{3, 7, 0, 3, 255} {
		if standing := f.settle(t, i, "challenge:a", said, until); standing != 3 {
			t.Errorf("outcome %d: %d stands, want 3", said, standing)
		}
	}
	if standing := f.settle(t, 0, "challenge:b", 0, until); standing != 0 {
		t.Errorf("another id: %d stands", standing)
	}
	if standing := f.settle(t, 1, "challenge:b", 9, until); standing != 0 {
		t.Errorf("another id, again: %d stands", standing)
	}
}

func testAllAreToldOne(t *testing.T, f *Fixture) {
	until := f.Now().Add(time.Minute)
	told := make([]onetime.Outcome, callers)
	var group sync.WaitGroup
	for i := range told {
		group.Go(func() {
			standing, err := f.any(i).Settle(t.Context(), "challenge:a", onetime.Outcome(i+1), until)
			if err != nil {
				t.Error(err)
			}
			told[i] = standing
		})
	}
	group.Wait()
	for i := range told {
		if told[i] != told[0] || told[i] == 0 {
			t.Fatalf("the callers got %v", told)
		}
	}
}

func testAnyID(t *testing.T, f *Fixture) {
	until := f.Now().Add(time.Minute)
	long := strings.Repeat("x", 4<<10)
	ids := []string{"", " ", "a", "A", "{", "}", "{}", "{a}", "a}b{c", "\x00", "\xff\xfe", "a\r\nSET b c", "钥匙", long, long + "y"}
	for round := range 2 {
		for i, id := range ids {
			if first := f.spend(t, i, id, until); first != (round == 0) {
				t.Errorf("round %d: first use of %.20q is %v", round+1, id, first)
			}
		}
	}
}

func testEnd(t *testing.T, f *Fixture) {
	life := 2 * onetime.MinLife
	f.spend(t, 0, "login:a", f.Now().Add(life))
	f.settle(t, 0, "challenge:a", 1, f.Now().Add(life))
	f.Wait(life)
	f.until(t, "the login may be used again", func(i int) bool { return f.spend(t, i, "login:a", f.Now().Add(time.Minute)) })
	f.until(t, "the challenge may be used again", func(i int) bool {
		return f.settle(t, i, "challenge:a", 2, f.Now().Add(time.Minute)) == 2
	})
}

func testMinLife(t *testing.T, f *Fixture) {
	began := time.Now()
	f.spend(t, 0, "login:a", f.Now().Add(-time.Hour))
	if f.spend(t, 1, "login:a", f.Now().Add(time.Minute)) && time.Since(began) < onetime.MinLife {
		t.Error("a use with an end in the past was forgotten at once")
	}
}

func testRepeatKeepsEnd(t *testing.T, f *Fixture) {
	life := 2 * onetime.MinLife
	f.spend(t, 0, "login:a", f.Now().Add(life))
	f.spend(t, 1, "login:a", f.Now().Add(time.Hour))
	f.Wait(life)
	f.until(t, "the login may be used again", func(i int) bool { return f.spend(t, i, "login:a", f.Now().Add(time.Hour)) })
}

func testEndsApart(t *testing.T, f *Fixture) {
	life := 2 * onetime.MinLife
	for i := range 8 {
		f.spend(t, i, fmt.Sprint("short:", i), f.Now().Add(life))
		f.spend(t, i, fmt.Sprint("long:", i), f.Now().Add(time.Hour))
	}
	f.Wait(life)
	f.until(t, "a short one may be used again", func(i int) bool { return f.spend(t, i, "short:7", f.Now().Add(time.Hour)) })
	for i := range 8 {
		if f.spend(t, i+1, fmt.Sprint("long:", i), f.Now().Add(time.Hour)) {
			t.Errorf("long:%d was forgotten", i)
		}
	}
}

// until polls the instances in turn.
func (f *Fixture) until(t *testing.T, what string, holds func(i int) bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for i := 0; !holds(i); i++ {
		select {
		case <-deadline.C:
			t.Fatalf("not within %s: %s", patience, what)
		case <-tick.C:
		}
	}
}
