package sink_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/payment"
	"seckill/internal/sink"
	"seckill/internal/store"
	"seckill/internal/store/storesql"
	"seckill/test/virtual"
)

const patience = 30 * time.Second

var operator = store.Actor{Name: "operator", Reason: "test"}

// shop is a store with one product that is sold directly.
type shop struct {
	*storesql.Store
	t       testing.TB
	product seckill.Product
	sold    int
}

func newShop(t testing.TB) *shop {
	t.Helper()
	return openShop(t, filepath.Join(t.TempDir(), "store.db"))
}

func openShop(t testing.TB, path string) *shop { return openShopAt(t, path, time.Now) }

func openShopAt(t testing.TB, path string, now func() time.Time) *shop {
	t.Helper()
	s, err := storesql.Open(t.Context(), "sqlite:"+path, storesql.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	sh := &shop{Store: s, t: t}
	if sh.product, err = s.Product(t.Context(), 7); err == nil {
		return sh
	}
	at := now()
	p, err := s.CreateProduct(t.Context(), seckill.Product{
		ID: 7, Group: 7, Name: "Kettle", PriceCents: 999, Currency: "CNY", Stock: 100_000, PerUserLimit: 1, Shards: 1,
		Strategy: seckill.StrategyDirect, Fallback: seckill.FallbackWait, StartsAt: at.Add(-time.Hour), EndsAt: at.Add(time.Hour),
	}, operator)
	if err != nil {
		t.Fatal(err)
	}
	if sh.product, err = s.OpenEpoch(t.Context(), p.ID, p.Epoch, 0, operator, func(seckill.Order) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.EndRebuild(t.Context(), p.ID, sh.product.Epoch); err != nil {
		t.Fatal(err)
	}
	return sh
}

// sell sells n orders. Each has an event order.confirmed.
func (s *shop) sell(n int) []seckill.OrderNo {
	s.t.Helper()
	var nos []seckill.OrderNo
	var claims []seckill.Claim
	for range n {
		s.sold++
		no := seckill.NewOrderNo(time.Now(), s.product.ID, uint64(s.sold))
		nos = append(nos, no)
		claims = append(claims, seckill.Claim{OrderNo: no, Buyer: fmt.Sprint("buyer", no), Quantity: 1})
	}
	for len(claims) > 0 {
		some := claims[:min(200, len(claims))]
		claims = claims[len(some):]
		got, err := s.Sell(s.t.Context(), store.SellRequest{ProductID: s.product.ID, Epoch: s.product.Epoch, Claims: some, ExpireAfter: time.Hour})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, verdict := range got.Verdicts {
			if verdict.Status != seckill.OrderPending {
				s.t.Fatalf("verdict is %+v", verdict)
			}
		}
	}
	return nos
}

func (s *shop) pay(nos ...seckill.OrderNo) {
	s.t.Helper()
	for _, no := range nos {
		notice := payment.Notice{Provider: "sandbox", TradeNo: "T" + no.String(), OrderNo: no.String(), AmountCents: 999, Currency: "CNY", PaidAt: time.Now()}
		if _, err := s.RecordPayment(s.t.Context(), notice); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *shop) refund(nos ...seckill.OrderNo) {
	s.t.Helper()
	for _, no := range nos {
		if _, err := s.Refund(s.t.Context(), no, operator); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *shop) states(name string) map[store.DeliveryState]int64 {
	s.t.Helper()
	states, err := s.SinkStates(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, state := range states {
		if state.Name == name {
			return state.Count
		}
	}
	return nil
}

func (s *shop) end() int64 {
	s.t.Helper()
	end, err := s.FeedEnd(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return end
}

// receiver is a target that remembers its messages and can fail.
type receiver struct {
	mu     sync.Mutex
	got    []sink.Message
	refuse func(m *sink.Message) error // nil accepts all
	busy   map[string]int              // running tries by key
	now    int                         // running tries
	most   int                         // the highest number of running tries
	tries  int
	both   error // set if two tries of one key ran at once
	slow   time.Duration
}

func (r *receiver) Deliver(ctx context.Context, m *sink.Message) (string, error) {
	r.mu.Lock()
	r.tries++
	if r.busy == nil {
		r.busy = map[string]int{}
	}
	r.busy[m.Key]++
	if r.busy[m.Key] > 1 {
		r.both = fmt.Errorf("two tries of %s at once", m.Key)
	}
	r.now++
	r.most = max(r.most, r.now)
	refuse, slow := r.refuse, r.slow
	r.mu.Unlock()
	if slow > 0 {
		timer := time.NewTimer(slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy[m.Key]--
	r.now--
	if refuse != nil {
		if err := refuse(m); err != nil {
			return "500", err
		}
	}
	r.got = append(r.got, *m)
	return "204", nil
}

func (r *receiver) Close(context.Context) error { return nil }

func (r *receiver) setRefuse(refuse func(m *sink.Message) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

func (r *receiver) tried() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tries
}

// types returns the event types of each key, in the order of arrival.
func (r *receiver) types() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	types := map[string][]string{}
	for _, m := range r.got {
		types[m.Key] = append(types[m.Key], m.Type)
	}
	return types
}

// ids counts the messages by id.
func (r *receiver) ids() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := map[string]int{}
	for _, m := range r.got {
		ids[m.ID]++
	}
	return ids
}

// watcher is an observer that counts.
type watcher struct {
	mu      sync.Mutex
	tried   map[store.DeliveryState]int
	failed  []store.Delivery
	lagging int
	crowded string
}

func (w *watcher) Tried(_ string, state store.DeliveryState, _ time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tried == nil {
		w.tried = map[store.DeliveryState]int{}
	}
	w.tried[state]++
}

func (w *watcher) Failed(_ string, d store.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, d)
}

func (w *watcher) Crowded(_ string, _ int64, cause string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crowded = cause
}

func (w *watcher) Lagging(string, time.Duration, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lagging++
}

func (s *shop) options(target sink.Target) sink.Options {
	return sink.Options{
		Name: "shop", Source: "/seckill/test", Target: target, Store: s.Store, Data: api.EventData, Concurrency: 8,
		Logger: slog.New(slog.DiscardHandler), Observer: &watcher{},
		Delays: []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond},
	}
}

// inVirtualTime runs a test with virtual time, which passes only while all
// goroutines wait. It first lets a day pass, for sales that started before.
func inVirtualTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	virtual.Test(t, func(t *testing.T) {
		<-time.After(24 * time.Hour)
		test(t)
	})
}

// roundEvery is how often the engine starts a round.
const roundEvery = 500 * time.Millisecond

// work runs rounds for a time, like the engine. Use it in virtual time.
func work(t *testing.T, sender *sink.Sender, long time.Duration) {
	t.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); <-time.After(roundEvery) {
		if err := sender.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// drive runs rounds until a condition is true.
func drive(t testing.TB, sender *sink.Sender, what string, until func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !until(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("timeout, waited for %s", what)
		}
		if err := sender.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// body is a decoded message.
type body struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            struct {
		OrderNo     string `json:"order_no"`
		Buyer       string `json:"buyer"`
		Status      string `json:"status"`
		AmountCents int64  `json:"amount_cents"`
		ProductID   uint32 `json:"product_id"`
	} `json:"data"`
}

func decode(t *testing.T, m *sink.Message) (b body) {
	t.Helper()
	if err := json.Unmarshal(m.Body, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

var errDown = errors.New("receiver is down")

func refuseAll(*sink.Message) error { return errDown }
