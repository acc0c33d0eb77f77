package sink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/sink"
	"seckill/internal/store"
)

var errFault = &sink.Answered{Err: errors.New("receiver answered 500")}

// refusingReceiver refuses some orders.
type refusingReceiver struct {
	mu    sync.Mutex
	err   error
	bad   map[string]bool
	tries map[string]int
}

func newRefusingReceiver(err error) *refusingReceiver {
	return &refusingReceiver{err: err, bad: map[string]bool{}, tries: map[string]int{}}
}

func (g *refusingReceiver) hold(nos ...seckill.OrderNo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, no := range nos {
		g.bad[no.String()] = true
	}
}

func (g *refusingReceiver) refuse(m *sink.Message) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.bad[m.Key] {
		return nil
	}
	g.tries[m.Key]++
	return g.err
}

// A receiver that fails for some orders gets all others within seconds, also
// while the bad ones are retried.
func TestSender_FailingOrdersDoNotDelayOthers(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s, g := newShop(t), newRefusingReceiver(errFault)
		r := &receiver{refuse: g.refuse}
		opt := s.options(r)
		opt.Delays = sink.DefaultDelays
		sender := sink.NewSender(opt)
		g.hold(s.sell(14)...)
		for minute := range 10 {
			work(t, sender, time.Minute)
			good := s.sell(1)[0].String()
			work(t, sender, 2*time.Second)
			if len(r.types()[good]) == 0 {
				t.Fatalf("minute %d: a good order was not delivered within 2 s", minute)
			}
			if sender.Status().Down {
				t.Fatalf("minute %d: the sink counts as down", minute)
			}
		}
		// At 0 s, 5 s, 65 s and 365 s, and once with the first success.
		for key, n := range g.tries {
			if n > 5 {
				t.Errorf("order %s was tried %d times in 10 minutes", key, n)
			}
		}
	})
}

// Retries that the receiver refuses slowly leave a place for new orders.
func TestSender_SlowRetriesDoNotDelayOthers(t *testing.T) {
	for name, concurrency := range map[string]int{"many at once": 8, "one at a time": 1} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T) {
				s, g := newShop(t), newRefusingReceiver(errFault)
				r := &receiver{refuse: g.refuse}
				opt := s.options(r)
				opt.Concurrency = concurrency
				opt.Delays = []time.Duration{time.Minute, time.Minute, time.Minute}
				sender := sink.NewSender(opt)
				g.hold(s.sell(200)...)
				work(t, sender, 55*time.Second)
				r.slow = 2 * time.Second
				work(t, sender, 10*time.Second) // the retries begin
				good := s.sell(1)[0].String()
				work(t, sender, 10*time.Second)
				if len(r.types()[good]) == 0 {
					t.Error("a good order was not delivered within 10 s")
				}
			})
		})
	}
}

// A receiver that is away is tried rarely, its deliveries keep their tries, and
// it gets everything soon after its return.
func TestSender_TriesAReceiverThatIsAwayRarely(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s, r := newShop(t), &receiver{refuse: refuseAll}
		s.sell(500)
		opt := s.options(r)
		opt.Delays = sink.DefaultDelays
		sender := sink.NewSender(opt)
		work(t, sender, 10*time.Minute)
		if n := r.tried(); n > 90 {
			t.Errorf("the receiver was tried %d times in 10 minutes", n)
		}
		r.setRefuse(nil)
		work(t, sender, 15*time.Second)
		equal(t, "delivered", int64(r.count()), s.end())
	})
}

// All orders of a hot product fail. Those of other products are rare among
// them.
func TestSender_FailingHotProductDoesNotDelayOthers(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s, g := newShop(t), newRefusingReceiver(errFault)
		r := &receiver{refuse: g.refuse}
		opt := s.options(r)
		opt.Delays = sink.DefaultDelays
		sender := sink.NewSender(opt)
		for second := range 25 {
			var good string
			if second%10 == 9 {
				good = s.sell(1)[0].String()
			}
			g.hold(s.sell(50)...)
			work(t, sender, time.Second)
			if good != "" && len(r.types()[good]) == 0 {
				t.Fatalf("second %d: a good order was not delivered within 1 s", second)
			}
		}
	})
}

// A receiver that answers 500 to everything counts as down in the end, so the
// cursor does not move past its events. When it is back it gets everything.
func TestSender_ReceiverThatFailsForAllIsDown(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s, r := newShop(t), &receiver{refuse: func(*sink.Message) error { return errFault }}
		s.sell(600)
		opt := s.options(r)
		opt.Delays = sink.DefaultDelays
		sender := sink.NewSender(opt)
		sender.AssumeFailures(4800) // 200 below the bound
		work(t, sender, 10*time.Second)
		equal(t, "down", sender.Status().Down, true)
		if n := r.tried(); n < 200 || n > 250 {
			t.Errorf("the receiver was tried %d times", n)
		}
		r.setRefuse(nil)
		work(t, sender, 5*time.Second)
		equal(t, "delivered", int64(r.count()), s.end())
		equal(t, "down", sender.Status().Down, false)
	})
}

// Above a bound of retries, deliveries fail early if the receiver accepts
// others. The feed goes on, and the failed ones can be retried.
func TestSender_TooManyRetriesFailEarly(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s, g, watch := newShop(t), newRefusingReceiver(errFault), &watcher{}
		r := &receiver{refuse: g.refuse}
		opt := s.options(r)
		opt.Delays, opt.Observer = sink.DefaultDelays, watch
		sender := sink.NewSender(opt)
		bad := s.sell(1300)
		g.hold(bad...)
		good := s.sell(1)[0].String()
		work(t, sender, 2*time.Second)
		if len(r.types()[good]) == 0 {
			t.Error("a good order behind 1,300 bad ones was not delivered within 2 s")
		}
		work(t, sender, 10*time.Second)
		s.sell(1)                      // accepted after the others failed
		work(t, sender, 2*time.Minute) // the third try is after 65 s
		states := s.states("shop")
		equal(t, "retrying", states[store.DeliveryRetrying], 1000)
		equal(t, "failed", states[store.DeliveryFailed], 300)
		equal(t, "alert", watch.crowded, "receiver answered 500")
		if d := watch.failed[0]; d.Attempts != 3 {
			t.Errorf("a delivery failed after %d tries", d.Attempts)
		}
		r.setRefuse(nil)
		admin := &sink.Admin{Store: s.Store}
		if n, err := admin.RetryAll(t.Context(), "shop", operator); err != nil || n != 1300 {
			t.Fatal(n, err)
		}
		work(t, sender, 5*time.Second)
		equal(t, "delivered", int64(r.count()), s.end())
	})
}

// A receiver that is away for more than a day has refused nothing, so no
// delivery fails.
func TestSender_NothingFailsWhileTheSinkIsDown(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s, r := newShop(t), &receiver{refuse: refuseAll}
		s.sell(20)
		opt := s.options(r)
		opt.Delays = []time.Duration{time.Second, 10 * time.Second, 20 * time.Second}
		sender := sink.NewSender(opt)
		for began := time.Now(); time.Since(began) < 25*time.Hour; <-time.After(5 * time.Minute) {
			work(t, sender, roundEvery)
		}
		equal(t, "failed", s.states("shop")[store.DeliveryFailed], 0)
		r.setRefuse(nil)
		work(t, sender, 15*time.Second)
		equal(t, "delivered", int64(r.count()), s.end())
	})
}

// slowTarget answers after the timeout, possibly with a reason.
type slowTarget struct{ reason error }

func (s slowTarget) Deliver(ctx context.Context, _ *sink.Message) (string, error) {
	<-ctx.Done()
	if s.reason != nil {
		return "", fmt.Errorf("open sink: %w", fmt.Errorf("%w; gave up: %w", s.reason, ctx.Err()))
	}
	return "", fmt.Errorf("post: %w", ctx.Err())
}
func (slowTarget) Close(context.Context) error { return nil }

func TestSender_ReportsATimeoutInPlainWords(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newShop(t)
		s.sell(1)
		work(t, sink.NewSender(s.options(slowTarget{})), time.Second)
		log, err := s.Deliveries(t.Context(), store.DeliveryFilter{Sink: "shop", Limit: 1})
		if err != nil || len(log) != 1 {
			t.Fatal(log, err)
		}
		equal(t, "error", log[0].Error, "no answer in 10 s")
		admin := &sink.Admin{Store: s.Store, Targets: map[string]sink.Target{"shop": slowTarget{}}, Now: time.Now}
		echo, err := admin.Test(t.Context(), "shop", operator)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "error of a test", echo.Err.Error(), "no answer in 10 s")
		admin.Targets["shop"] = slowTarget{errors.New("no broker is reachable")}
		if echo, err = admin.Test(t.Context(), "shop", operator); err != nil {
			t.Fatal(err)
		}
		equal(t, "error with a reason", echo.Err.Error(), "no answer in 10 s: no broker is reachable")
	})
}

// An operator who has repaired the receiver need not wait for the end of a
// pause.
func TestSender_RetryEndsAPause(t *testing.T) {
	for name, refuse := range map[string]func(*sink.Message) error{
		"asked for by the receiver": func(*sink.Message) error { return &sink.Later{After: 10 * time.Minute, Err: errors.New("429")} },
		"of a sink that is down":    refuseAll,
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T) {
				s, r := newShop(t), &receiver{refuse: refuse}
				s.sell(20)
				opt := s.options(r)
				opt.Delays = sink.DefaultDelays
				sender := sink.NewSender(opt)
				work(t, sender, 4*time.Minute)
				r.setRefuse(nil)
				admin := &sink.Admin{Store: s.Store}
				if _, err := admin.RetryAll(t.Context(), "shop", operator); err != nil {
					t.Fatal(err)
				}
				work(t, sender, 2*time.Second)
				equal(t, "delivered", int64(r.count()), s.end())
			})
		})
	}
}

// The store records that a sink is down, for all instances and for the next
// sender. The log has one line for each change.
func TestSender_DownSinkIsRecordedAndLogged(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s, r := newShop(t), &receiver{refuse: refuseAll}
		s.sell(20)
		opt := s.options(r)
		var log bytes.Buffer
		opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
		isDown := func() bool {
			state, err := s.SinkState(t.Context(), "shop")
			if err != nil {
				t.Fatal(err)
			}
			return !state.DownAt.IsZero()
		}
		work(t, sink.NewSender(opt), time.Minute)
		equal(t, "down", isDown(), true)

		sender := sink.NewSender(opt) // the engine was restarted
		tried := r.tried()
		work(t, sender, 2*time.Second)
		if n := r.tried() - tried; n > 3 {
			t.Errorf("a sink that is down was tried %d times within 2 s of a restart", n)
		}
		r.setRefuse(nil)
		work(t, sender, 15*time.Second)
		equal(t, "down", isDown(), false)
		equal(t, "delivered", int64(r.count()), s.end())
		equal(t, "lines about the outage", strings.Count(log.String(), `level=WARN msg="sink: down, its events wait in the store" sink=shop error="receiver is down"`), 1)
		equal(t, "lines about its end", strings.Count(log.String(), `level=INFO msg="sink: back" sink=shop down_for=1m`), 1)
	})
}

// A retry finds a receiver that refuses each event at the first try.
func TestSender_ProbesAreRetriesToo(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s, r := newShop(t), &receiver{}
		tries := map[string]int{}
		r.setRefuse(func(m *sink.Message) error {
			if tries[m.ID]++; tries[m.ID] == 1 {
				return errDown
			}
			return nil
		})
		nos := s.sell(60)
		s.pay(nos...)
		opt := s.options(r)
		opt.Delays = sink.DefaultDelays
		sender := sink.NewSender(opt)
		work(t, sender, time.Minute)
		equal(t, "delivered", int64(r.count()), s.end())
	})
}

// A delivery that waited for another one to open the target reports the error
// of the opening, not its own timeout.
func TestLazy_ReportsTheErrorOfTheOpening(t *testing.T) {
	why, calls, results := errors.New("no broker is reachable"), 0, make(chan error, 1)
	lazy := &sink.Lazy{}
	lazy.Open = func(context.Context) (sink.Target, error) {
		if calls++; calls > 1 {
			return nil, context.DeadlineExceeded
		}
		go func() {
			_, err := lazy.Deliver(t.Context(), nil)
			results <- err
		}()
		time.Sleep(100 * time.Millisecond) // a waiting delivery gives no signal
		return nil, why
	}
	if _, err := lazy.Deliver(t.Context(), nil); !errors.Is(err, why) {
		t.Errorf("error: %v", err)
	}
	if err := <-results; !errors.Is(err, why) {
		t.Errorf("error of the waiting delivery: %v", err)
	}
	if _, err := lazy.Deliver(t.Context(), nil); errors.Is(err, why) {
		t.Errorf("a later delivery has an old error: %v", err)
	}
}
