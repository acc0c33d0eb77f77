package shopapi

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/test/virtual"
)

// patient is a part that takes its time, and counts what it is asked.
type patient struct {
	takes time.Duration
	fate  error
	// asked, given up: questions.
	asked, givenUp atomic.Int64
}

func (p *patient) ping(ctx context.Context) error {
	p.asked.Add(1)
	select {
	case <-time.After(p.takes):
		return p.fate
	case <-ctx.Done():
		p.givenUp.Add(1)
		return errors.New("the part did not answer")
	}
}

// However many ask, a part is asked one question at a time, and its answer is
// good for all who come within a moment.
func TestProbe_FloodOfChecksCallsThePartRarely(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		part := &patient{takes: 50 * time.Millisecond}
		probe := newProbe(part.ping)
		var crowd sync.WaitGroup
		for range 100 {
			crowd.Go(func() {
				for range 100 { // over one second
					if err := probe.Ask(); err != nil {
						t.Error(err)
					}
					virtual.Sleep(10 * time.Millisecond)
				}
			})
		}
		crowd.Wait()
		if asked := part.asked.Load(); asked < 4 || asked > 7 {
			t.Errorf("asked %d times in a second and a bit", asked)
		}
	})
}

// A part's end, and its return, show as soon as the last answer is old.
func TestProbe_FailureShowsAtOnce(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		part := &patient{}
		probe := newProbe(part.ping)
		if err := probe.Ask(); err != nil {
			t.Fatal(err)
		}
		for _, fate := range []error{errors.New("away"), nil} {
			part.fate = fate
			virtual.Sleep(pingGoodFor + time.Millisecond)
			if err := probe.Ask(); err != fate {
				t.Errorf("answered %v, the part is %v", err, fate)
			}
		}
	})
}

// Whoever asks a part that hangs is told its own error.
func TestProbe_HangingPartTimesOut(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		part := &patient{takes: time.Hour}
		probe := newProbe(part.ping)
		began := time.Now()
		if err := probe.Ask(); err == nil || err.Error() != "the part did not answer" || time.Since(began) != pingTimeout {
			t.Errorf("answered %v after %s", err, time.Since(began))
		}
	})
}

func TestProbe_ReturnsInTimeThoughThePartIgnoresItsDeadline(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		written := make(chan struct{})
		probe := newProbe(func(context.Context) error { <-written; return nil })
		for range 3 {
			began := time.Now()
			if err := probe.Ask(); !errors.Is(err, errHangs) || time.Since(began) != askTimeout {
				t.Errorf("answered %v after %s", err, time.Since(began))
			}
		}
		close(written)
		virtual.Sleep(pingGoodFor)
		if err := probe.Ask(); err != nil {
			t.Error(err)
		}
	})
}

// A shop on shared parts is ready as soon as the ledger answers. The question
// to the store is not given up then: the driver would drop its connection, and
// whoever asks for /readyz often would have new ones opened as often.
func TestWhoIsToldReadyDoesNotGiveUpTheQuestionToTheStore(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		slow, quick := &patient{takes: 100 * time.Millisecond}, &patient{}
		r := &Readiness{sharedStore: true, sharedLedger: true, store: newProbe(slow.ping), ledger: newProbe(quick.ping)}
		for range 50 {
			began := time.Now()
			if err := r.Check(t.Context()); err != nil || time.Since(began) > 0 {
				t.Fatalf("answered %v after %s", err, time.Since(began))
			}
			virtual.Sleep(time.Millisecond)
		}
		virtual.Sleep(time.Second)
		if slow.asked.Load() != 1 || slow.givenUp.Load() != 0 {
			t.Errorf("the store was asked %d times, %d were given up", slow.asked.Load(), slow.givenUp.Load())
		}
	})
}
