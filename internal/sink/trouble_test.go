package sink_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/sink"
)

var errFault = &sink.Answered{Err: errors.New("receiver answered 500")}

// grudge refuses some orders.
type grudge struct {
	mu    sync.Mutex
	err   error
	bad   map[string]bool
	tries map[string]int
}

func newGrudge(err error) *grudge {
	return &grudge{err: err, bad: map[string]bool{}, tries: map[string]int{}}
}

func (g *grudge) hold(nos ...seckill.OrderNo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, no := range nos {
		g.bad[no.String()] = true
	}
}

func (g *grudge) refuse(m *sink.Message) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.bad[m.Key] {
		return nil
	}
	g.tries[m.Key]++
	return g.err
}

// A receiver that fails for some orders gets all others within seconds, in quiet
// times and while the bad ones are retried.
func TestSender_OrdersThatFailDoNotHoldUpOthers(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s, g := newShop(t), newGrudge(errFault)
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

// Retries that the receiver is slow to refuse leave a place for new orders.
func TestSender_SlowRetriesDoNotHoldUpOthers(t *testing.T) {
	for name, concurrency := range map[string]int{"many at once": 8, "one at a time": 1} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T) {
				s, g := newShop(t), newGrudge(errFault)
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

// A receiver that is away is tried rarely, uses up no deliveries, and gets
// everything soon after its return.
func TestSender_ReceiverThatIsAwayIsTriedRarely(t *testing.T) {
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
