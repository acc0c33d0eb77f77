package sink_test

import (
	"testing"
	"time"

	"seckill"
	"seckill/internal/sink"
	"seckill/internal/store"
)

// A thousand events of a test product are before one event of a real product,
// and more are behind it.
func TestSender_SkipsEventsOfTestProducts(t *testing.T) {
	s := newShop(t)
	now := time.Now()
	rehearsal, err := s.CreateProduct(t.Context(), seckill.Product{
		ID: 8, Group: 8, Name: "Load test", PriceCents: 1, Currency: "CNY", Stock: 5000, PerUserLimit: 1, Shards: 1, Test: true,
		Strategy: seckill.StrategyDirect, Fallback: seckill.FallbackWait, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
	}, operator)
	if err != nil {
		t.Fatal(err)
	}
	if rehearsal, err = s.OpenEpoch(t.Context(), rehearsal.ID, 0, 0, operator, func(seckill.Order) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.EndRebuild(t.Context(), rehearsal.ID, rehearsal.Epoch); err != nil {
		t.Fatal(err)
	}
	shown := s.product
	sell := func(p seckill.Product, n int) []seckill.OrderNo {
		s.product = p
		return s.sell(n)
	}
	sell(rehearsal, 1000)
	want := sell(shown, 1)[0].String()
	sell(rehearsal, 1000)

	r := &receiver{}
	sender := sink.NewSender(s.options(r))
	drive(t, sender, "the cursor at the end", func() bool {
		state, err := s.SinkState(t.Context(), "shop")
		return err == nil && state.Cursor == s.end()
	})
	got := r.types()
	if len(got[want]) != 1 {
		t.Errorf("the events of the real order are %v", got[want])
	}
	for _, m := range r.got {
		if b := decode(t, &m); b.Data.ProductID != shown.ID {
			t.Errorf("%s of product %d was sent", b.Type, b.Data.ProductID)
		}
	}
	equal(t, "lag", sender.Status().Lag, 0)
	equal(t, "deliveries", s.states("shop")[store.DeliveryDelivered], int64(len(r.got)))
}
