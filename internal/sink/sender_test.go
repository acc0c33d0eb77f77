package sink_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill"
	"seckill/internal/sink"
	"seckill/internal/sink/sinkwebhook"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
)

func TestSender_DeliversTheOrderAsAtItsEvent(t *testing.T) {
	s, r := newShop(t), &receiver{}
	no := s.sell(1)[0]
	s.pay(no)
	s.refund(no)
	sender := sink.NewSender(s.options(r))
	drive(t, sender, "the events", func() bool { return int64(r.count()) >= s.end() })

	var statuses []string
	for i := range r.got {
		m := &r.got[i]
		if m.Key != no.String() {
			continue
		}
		b := decode(t, m)
		equal(t, "specversion", b.SpecVersion, "1.0")
		equal(t, "id", b.ID, m.ID)
		equal(t, "source", b.Source, "/seckill/test")
		equal(t, "type", b.Type, m.Type)
		equal(t, "subject", b.Subject, no.String())
		equal(t, "datacontenttype", b.DataContentType, "application/json")
		equal(t, "time", b.Time.IsZero(), false)
		equal(t, "order", b.Data.OrderNo, no.String())
		equal(t, "product", b.Data.ProductID, 7)
		if !strings.HasPrefix(m.Type, "seckill.order.") {
			continue // a refund
		}
		equal(t, "buyer", b.Data.Buyer, "buyer"+no.String())
		equal(t, "amount", b.Data.AmountCents, 999)
		if slices.Contains([]string{"seckill.order.confirmed", "seckill.order.paid", "seckill.order.refunded"}, m.Type) {
			statuses = append(statuses, b.Data.Status)
		}
	}
	if !slices.Equal(statuses, []string{"pending", "paid", "refunded"}) {
		t.Errorf("statuses are %v", statuses)
	}
}

func TestSender_OrderPerKeyHoldsUnderRetries(t *testing.T) {
	s, r := newShop(t), &receiver{slow: time.Millisecond}
	nos := s.sell(300)
	s.pay(nos...)
	s.refund(nos[:100]...)
	var mu sync.Mutex
	tries := map[string]int{}
	r.setRefuse(func(m *sink.Message) error { // each third message fails twice
		mu.Lock()
		defer mu.Unlock()
		tries[m.ID]++
		if m.ID[4]%3 == 0 && tries[m.ID] <= 2 {
			return &sink.Rejected{Err: errors.New("not yet")}
		}
		return nil
	})
	sender := sink.NewSender(s.options(r))
	drive(t, sender, "all events", func() bool { return int64(r.count()) >= s.end() })
	for i, no := range nos {
		want := []string{"seckill.order.confirmed", "seckill.order.paid"}
		if i < 100 {
			want = append(want, "seckill.order.refunded")
		}
		got := slices.DeleteFunc(r.types()[no.String()], func(kind string) bool { return !slices.Contains(want, kind) })
		if !slices.Equal(got, want) {
			t.Fatalf("order %s received %v", no, got)
		}
	}
	for id, n := range r.ids() {
		if n != 1 {
			t.Errorf("%s was delivered %d times", id, n)
		}
	}
	if r.both != nil {
		t.Error(r.both)
	}
	if r.most < 2 || r.most > 8 {
		t.Errorf("%d deliveries at once, want 2 to 8", r.most)
	}
	drive(t, sender, "the last record", func() bool { return s.states("shop")[store.DeliveryDelivered] == s.end() })
}

func TestSender_FailedDeliveryBlocksOnlyItsOrder(t *testing.T) {
	s, r := newShop(t), &receiver{}
	nos := s.sell(20)
	bad := nos[3].String()
	r.setRefuse(func(m *sink.Message) error {
		if m.Key == bad {
			return &sink.Rejected{Err: errors.New("unknown article")}
		}
		return nil
	})
	opt := s.options(r)
	watch := &watcher{}
	opt.Observer = watch
	sender := sink.NewSender(opt)
	drive(t, sender, "a failed delivery", func() bool { return s.states("shop")[store.DeliveryFailed] == 1 })
	s.pay(nos...)
	drive(t, sender, "the other orders", func() bool { return int64(r.count()) >= s.end()-2 })
	states := s.states("shop")
	equal(t, "failed", states[store.DeliveryFailed], 1)
	equal(t, "waiting", states[store.DeliveryWaiting], 1)
	equal(t, "alerts", len(watch.failed), 1)
	equal(t, "error", watch.failed[0].Error, "unknown article")
	equal(t, "attempts", watch.failed[0].Attempts, 4)

	t.Run("retry", func(t *testing.T) {
		r.setRefuse(nil)
		admin := &sink.Admin{Store: s.Store}
		if n, err := admin.RetryAll(t.Context(), "shop", operator); err != nil || n != 1 {
			t.Fatalf("retried %d, %v", n, err)
		}
		drive(t, sender, "the order", func() bool { return int64(r.count()) == s.end() })
		if got := r.types()[bad]; !slices.Equal(got, []string{"seckill.order.confirmed", "seckill.order.paid"}) {
			t.Errorf("received %v", got)
		}
	})
}

func TestSender_SkippedDeliveryLetsLaterEventsGo(t *testing.T) {
	s, r := newShop(t), &receiver{}
	no := s.sell(1)[0]
	r.setRefuse(func(m *sink.Message) error {
		if m.Type == "seckill.order.confirmed" {
			return &sink.Rejected{Err: errors.New("no")}
		}
		return nil
	})
	sender := sink.NewSender(s.options(r))
	drive(t, sender, "a failed delivery", func() bool { return s.states("shop")[store.DeliveryFailed] == 1 })
	s.pay(no)
	drive(t, sender, "a waiting one", func() bool { return s.states("shop")[store.DeliveryWaiting] == 1 })
	failed, err := s.Deliveries(t.Context(), store.DeliveryFilter{Sink: "shop", State: store.DeliveryFailed, Limit: 10})
	if err != nil || len(failed) != 1 {
		t.Fatal(failed, err)
	}
	admin := &sink.Admin{Store: s.Store}
	event, err := admin.Event(t.Context(), "shop", failed[0].MessageID)
	if err != nil || event != failed[0].EventID || !sink.IsMessageID(failed[0].MessageID) {
		t.Fatal(event, err)
	}
	if _, err := admin.Event(t.Context(), "shop", "evt_0"); !seckill.CodeNotFound.In(err) {
		t.Errorf("an unknown message is %v", err)
	}
	if _, err := admin.Skip(t.Context(), "shop", event, operator); err != nil {
		t.Fatal(err)
	}
	drive(t, sender, "order.paid", func() bool { return slices.Equal(r.types()[no.String()], []string{"seckill.order.paid"}) })
}

// A sink that is down for long loses nothing, does not move its cursor, and
// catches up when it is back, without waiting for its retry delays.
func TestSender_SinkThatIsDownCatchesUp(t *testing.T) {
	s, r := newShop(t), &receiver{refuse: refuseAll}
	nos := s.sell(1500)
	s.pay(nos[:100]...)
	opt := s.options(r)
	opt.Delays = []time.Duration{time.Hour, 10 * time.Hour}
	sender := sink.NewSender(opt)
	drive(t, sender, "the sink to be down", func() bool { return sender.Status().Down })
	tried := r.tried()
	drive(t, sender, "two probes", func() bool { return r.tried() >= tried+2 })
	if n := r.tried(); n > 40 {
		t.Errorf("a sink that is down was tried %d times", n)
	}
	state, err := s.SinkState(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	if state.Cursor > 40 {
		t.Errorf("the cursor moved to %d while the sink was down", state.Cursor)
	}
	r.setRefuse(nil)
	began := time.Now()
	drive(t, sender, "all events", func() bool { return int64(len(r.ids())) == s.end() })
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("catching up took %s", took)
	}
	drive(t, sender, "the last record", func() bool { return s.states("shop")[store.DeliveryDelivered] == s.end() })
	status := sender.Status()
	equal(t, "lag", status.Lag, 0)
	equal(t, "down", status.Down, false)
}

// The same holds for a short outage of few deliveries whose waits would be
// hours.
func TestSender_RetriesAreHastenedAfterAnOutage(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s, r := newShop(t), &receiver{refuse: refuseAll}
		s.sell(4)
		opt := s.options(r)
		opt.Delays = []time.Duration{time.Hour}
		sender := sink.NewSender(opt)
		work(t, sender, 10*time.Second)
		equal(t, "retries", s.states("shop")[store.DeliveryRetrying], s.end())
		r.setRefuse(nil)
		s.sell(1)
		work(t, sender, 2*time.Second)
		equal(t, "delivered", int64(r.count()), s.end())
	})
}

// The same after a restart of the engine.
func TestSender_RetriesAreHastenedAfterARestart(t *testing.T) {
	s, r := newShop(t), &receiver{refuse: refuseAll}
	s.sell(2)
	opt := s.options(r)
	opt.Delays = []time.Duration{time.Hour}
	drive(t, sink.NewSender(opt), "retries", func() bool { return s.states("shop")[store.DeliveryRetrying] == s.end() })
	r.setRefuse(nil)
	s.sell(1)
	drive(t, sink.NewSender(opt), "all events", func() bool { return int64(r.count()) == s.end() })
}

func TestSender_KeepsTheRate(t *testing.T) {
	s, r := newShop(t), &receiver{}
	s.sell(60)
	opt := s.options(r)
	opt.RatePerSecond = 50
	began := time.Now()
	drive(t, sink.NewSender(opt), "all events", func() bool { return int64(r.count()) == s.end() })
	if took := time.Since(began); took < 900*time.Millisecond {
		t.Errorf("60 events at 50 a second took %s", took)
	}
}

func TestSender_PausesWhenTheReceiverAsks(t *testing.T) {
	s, r := newShop(t), &receiver{}
	s.sell(20)
	r.setRefuse(func(*sink.Message) error { return &sink.Later{After: 500 * time.Millisecond, Err: errors.New("429")} })
	opt := s.options(r)
	opt.Concurrency = 1
	sender := sink.NewSender(opt)
	if err := sender.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "tries before the pause", r.tried(), 1)
	if err := sender.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "tries in the pause", r.tried(), 1)
	r.setRefuse(nil)
	drive(t, sender, "all events", func() bool { return int64(r.count()) == s.end() })
}

// A sender that is killed at any moment repeats at most the deliveries in hand.
func TestSender_KilledRoundLosesNothingAndRepeatsLittle(t *testing.T) {
	s, r := newShop(t), &receiver{}
	nos := s.sell(400)
	s.pay(nos...)
	repeats, lives := 0, 0
	for ; int64(len(r.ids())) < s.end(); lives++ {
		if lives > 200 {
			t.Fatalf("%d of %d events after %d rounds", len(r.ids()), s.end(), lives)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := 20 + 7*(lives%9) // deliveries until the kill
		r.setRefuse(func(*sink.Message) error {
			if left--; left == 0 {
				cancel()
			}
			return nil
		})
		_ = sink.NewSender(s.options(r)).Round(ctx) // each starts again, like after a kill
		cancel()
	}
	r.setRefuse(nil)
	for _, n := range r.ids() {
		repeats += n - 1
	}
	if most := lives * 16; repeats > most {
		t.Errorf("%d of %d events were repeated in %d lives, want at most %d", repeats, s.end(), lives, most)
	}
	for _, no := range nos {
		first := slices.Compact(r.types()[no.String()])
		if first[0] != "seckill.order.confirmed" || first[len(first)-1] != "seckill.order.paid" {
			t.Fatalf("order %s got %v", no, first)
		}
	}
}

// A delivery that a stop of the engine interrupts is no failure of the
// receiver.
func TestSender_StopIsNoFailure(t *testing.T) {
	s, r, watch := newShop(t), &receiver{slow: time.Hour}, &watcher{}
	r.setRefuse(refuseAll)
	s.sell(5)
	opt := s.options(r)
	opt.Observer = watch
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sink.NewSender(opt).Round(ctx) }()
	deadline := time.Now().Add(patience)
	for ticker := time.NewTicker(time.Millisecond); r.tried() < 5; <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatal("deliveries do not begin")
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the round does not end")
	}
	if len(watch.tried) > 0 || s.states("shop")[store.DeliveryRetrying] > 0 {
		t.Errorf("tries were counted: %v", watch.tried)
	}
}

// A stop starts no more deliveries. Running ones have one second: an answer
// within it is recorded, and a silent receiver delays nothing.
func TestSender_StopWaitsASecondForDeliveriesInHand(t *testing.T) {
	for name, c := range map[string]struct {
		answer    time.Duration
		took      time.Duration
		delivered int
	}{
		"answered": {400 * time.Millisecond, 400 * time.Millisecond, 8},
		"frozen":   {time.Hour, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T) {
				s, r := newShop(t), &receiver{slow: c.answer}
				r.setRefuse(func(*sink.Message) error {
					if c.delivered == 0 {
						return errDown
					}
					return nil
				})
				s.sell(50)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- sink.NewSender(s.options(r)).Round(ctx) }()
				synctest.Wait()
				stopped := time.Now()
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				equal(t, "the time of the stop", time.Since(stopped), c.took)
				equal(t, "tries", r.tried(), 8) // Options.Concurrency
				state, err := s.Store.SinkCursor(t.Context(), "shop")
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "recorded", int(state.Cursor), c.delivered)
			})
		})
	}
}

// If two senders send to one sink, the first one stops at its next record, and
// everything is delivered.
func TestSender_SecondSenderTakesOver(t *testing.T) {
	s := newShop(t)
	first, second := &receiver{slow: 300 * time.Millisecond}, &receiver{}
	s.sell(50)
	paused := make(chan error, 1)
	go func() { paused <- sink.NewSender(s.options(first)).Round(t.Context()) }()
	deadline := time.Now().Add(patience)
	for ticker := time.NewTicker(time.Millisecond); first.tried() == 0; <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatal("the first sender does not begin")
		}
	}
	drive(t, sink.NewSender(s.options(second)), "all events", func() bool { return int64(second.count()) == s.end() })
	if err := <-paused; err != nil {
		t.Fatal(err)
	}
	if n := first.tried(); n > 16 {
		t.Errorf("the first sender went on for %d tries", n)
	}
}

func TestSender_StoreOutageEndsTheRound(t *testing.T) {
	s, r := newShop(t), &receiver{}
	s.sell(30)
	faulty := storetest.NewFaulty(s.Store)
	opt := s.options(r)
	opt.Store = faulty
	sender := sink.NewSender(opt)
	for _, method := range []string{"SinkCursor", "Events", "OrdersByNo", "OpenKeys", "SettleDeliveries"} {
		faulty.FailBefore(method, 1)
		if err := sender.Round(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: error is %v", method, err)
		}
	}
	faulty.FailAfter("SettleDeliveries", 1) // recorded, and the reply is lost
	_ = sender.Round(t.Context())
	drive(t, sender, "all events", func() bool { return s.states("shop")[store.DeliveryDelivered] == s.end() })
}

func TestReplay_DeliversEverythingSinceATimeAgain(t *testing.T) {
	s, r := newShop(t), &receiver{}
	nos := s.sell(300)
	opt := s.options(r)
	sender := sink.NewSender(opt)
	drive(t, sender, "all events", func() bool { return s.states("shop")[store.DeliveryDelivered] == s.end() })
	admin := &sink.Admin{Store: s.Store}
	again, err := admin.Replay(t.Context(), "shop", time.Now().Add(-time.Second), operator)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "events to deliver again", again, s.end())
	s.pay(nos[0])
	drive(t, sender, "all events twice", func() bool {
		return int64(r.count()) == 2*s.end()-1
	})
	if _, err := admin.Replay(t.Context(), "shop", time.Now().Add(time.Hour), operator); !seckill.CodeBadRequest.In(err) {
		t.Errorf("a replay from the future is %v", err)
	}
	if _, err := admin.Replay(t.Context(), "other", time.Now(), operator); !seckill.CodeNotFound.In(err) {
		t.Errorf("a replay of an unknown sink is %v", err)
	}
}

func TestForget_RefusesASinkThatIsConfigured(t *testing.T) {
	s, r := newShop(t), &receiver{}
	s.sell(3)
	sender := sink.NewSender(s.options(r))
	drive(t, sender, "all events", func() bool { return s.states("shop")[store.DeliveryDelivered] == s.end() })
	admin := &sink.Admin{Store: s.Store, Sinks: []sink.Info{{Name: "shop"}}}
	if _, err := admin.Forget(t.Context(), "shop", operator); !seckill.CodeWrongState.In(err) {
		t.Errorf("error is %v", err)
	}
	admin.Sinks = nil
	n, err := admin.Forget(t.Context(), "shop", operator)
	if err != nil || int64(n) != s.end() {
		t.Errorf("forgotten %d, %v", n, err)
	}
	if list, err := admin.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("sinks are %v, %v", list, err)
	}
}

func TestSender_NewSinkMayBeginAtTheEnd(t *testing.T) {
	s, r := newShop(t), &receiver{}
	s.sell(10)
	opt := s.options(r)
	opt.AtEnd = true
	sender := sink.NewSender(opt)
	if err := sender.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	no := s.sell(1)[0]
	drive(t, sender, "the new event", func() bool { return r.count() == 1 })
	equal(t, "key", r.got[0].Key, no.String())
}

// After an older copy of the store was restored, numbers are used again for
// other events.
func TestMessageID_IsNewAfterAnOlderStoreWasRestored(t *testing.T) {
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "store.db"), filepath.Join(dir, "copy.db")
	s, r := openShop(t, path), &receiver{}
	s.sell(3)
	sender := sink.NewSender(s.options(r))
	drive(t, sender, "the events", func() bool { return s.states("shop")[store.DeliveryDelivered] == s.end() })
	before := s.end()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, at := range []string{path, copied} {
		s := openShop(t, at)
		s.sold = len(seen) + 100
		s.sell(5)
		r := &receiver{}
		sender := sink.NewSender(s.options(r))
		drive(t, sender, "the events", func() bool { return int64(r.count()) == s.end()-before })
		for id := range r.ids() {
			if seen[id] {
				t.Errorf("%s was given twice", id)
			}
			seen[id] = true
		}
	}
	equal(t, "ids", len(seen), 10)
}

func TestSender_LogIsBounded(t *testing.T) {
	s, r := newShop(t), &receiver{}
	s.sell(3000)
	opt := s.options(r)
	opt.KeepEvents = 200
	sender := sink.NewSender(opt)
	drive(t, sender, "all events", func() bool { return int64(r.count()) == s.end() })
	if n := s.states("shop")[store.DeliveryDelivered]; n > 200+1000+512 {
		t.Errorf("the log has %d rows", n)
	}
}

func TestSender_ReportsALaggingSink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	past := openShopAt(t, path, func() time.Time { return time.Now().Add(-20 * time.Minute) })
	past.sell(30)
	if err := past.Close(); err != nil {
		t.Fatal(err)
	}
	s, r, watch := openShop(t, path), &receiver{refuse: refuseAll}, &watcher{}
	opt := s.options(r)
	opt.Observer = watch
	sender := sink.NewSender(opt)
	drive(t, sender, "the alert", func() bool { return watch.lagging == 1 })
	if oldest := sender.Status().Oldest; oldest < 20*time.Minute || oldest > 25*time.Minute {
		t.Errorf("the oldest event is %s old", oldest)
	}
}

// If a receiver is back and refuses the first message, the sink is still back.
func TestSender_RejectedMessageShowsThatTheSinkIsBack(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s, r := newShop(t), &receiver{refuse: refuseAll}
		s.sell(4)
		opt := s.options(r)
		opt.Delays = []time.Duration{time.Hour}
		sender := sink.NewSender(opt)
		work(t, sender, 10*time.Second)
		others := int(s.end())
		bad := s.sell(1)[0].String()
		r.setRefuse(func(m *sink.Message) error {
			if m.Key == bad {
				return &sink.Rejected{Err: errors.New("no")}
			}
			return nil
		})
		work(t, sender, 2*time.Second)
		equal(t, "delivered", r.count(), others)
	})
}

// BenchmarkSender sends events from SQLite to a webhook on loopback.
func BenchmarkSender(b *testing.B) {
	s, r := newShop(b), &receiver{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = r.Deliver(req.Context(), &sink.Message{ID: req.Header.Get("webhook-id")})
		w.WriteHeader(http.StatusNoContent)
	}))
	b.Cleanup(server.Close)
	target, err := sinkwebhook.New(sinkwebhook.Options{URL: server.URL, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", AllowPrivate: true})
	if err != nil {
		b.Fatal(err)
	}
	s.sell(b.N)
	sender := sink.NewSender(s.options(target))
	b.ResetTimer()
	drive(b, sender, "all events", func() bool { return r.count() >= b.N })
}
