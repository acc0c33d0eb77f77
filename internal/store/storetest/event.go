package storetest

import (
	"encoding/json"
	"testing"

	"seckill"
	"seckill/internal/payment"
	"seckill/internal/store"
)

var eventTests = []test{
	{"a created product writes sale.created with its figures", func(t *testing.T, s *suite) {
		p := s.create(t, stock(7))
		s.wantEvent(t, p.ID, seckill.EventSaleCreated, `{"offered":7,"stock":7,"pending":0,"paid":0,"cancelled":0,"failed":0,"refunded":0}`)
	}},
	{"events of a test product say so", func(t *testing.T, s *suite) {
		for _, p := range []seckill.Product{s.preheated(t), s.preheated(t, isTest)} {
			s.owedRefund(t, p, "buyer")
			for _, e := range s.events(t, p.ID) {
				equal(t, string(e.Kind)+" is of a test", e.Test, p.Test)
			}
		}
	}},
	{"sale.started and sale.ended count orders, and sale.ended has the returned units", countedEvents},
	{"the events of pause and resume have offered and stock", func(t *testing.T, s *suite) {
		p := s.preheated(t, stock(5))
		s.buy(t, p, "buyer")
		for _, state := range []seckill.SaleState{seckill.SalePaused, seckill.SalePaused, seckill.SaleOpen} {
			s.setState(t, p.ID, state)
		}
		s.wantEvent(t, p.ID, seckill.EventSalePaused, `{"offered":5,"stock":4}`)
		s.wantEvent(t, p.ID, seckill.EventSaleResumed, `{"offered":5,"stock":4}`)
	}},
	{"units that return after sale.sold_out write one sale.back_in_stock", backInStock},
	{"several orders that expire at once write one sale.back_in_stock", func(t *testing.T, s *suite) {
		p := s.preheated(t, stock(3))
		for i := range 3 {
			s.buyFor(t, p, numbered("buyer", i), tick)
		}
		s.advance(t, 2*tick)
		equal(t, "expired", len(s.expireAll(t, p.ID)), 3)
		s.wantAlternating(t, s.events(t, p.ID), 3)
		equal(t, "sale.back_in_stock", s.count(t, p.ID, seckill.EventSaleBackInStock), 1)
	}},
	{"without sale.sold_out there is no sale.back_in_stock", func(t *testing.T, s *suite) {
		empty := s.create(t, stock(0))
		s.change(t, empty, 3)
		emptied := s.preheated(t, stock(2))
		order := s.buy(t, emptied, "buyer")
		change := s.change(t, emptied, -1)
		_, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, false)
		must(t, err)
		s.stockIs(t, emptied.ID, 0, 1)
		s.cancel(t, order)
		for _, p := range []seckill.Product{empty, emptied} {
			equal(t, "sale.back_in_stock", s.count(t, p.ID, seckill.EventSaleBackInStock), 0)
		}
	}},
	{"no sale.back_in_stock is written after the end", func(t *testing.T, s *suite) {
		byOperator, byClock := s.preheated(t, stock(1)), s.preheated(t, stock(1))
		orders := []seckill.Order{s.buy(t, byOperator, "a"), s.buy(t, byClock, "b")}
		s.setState(t, byOperator.ID, seckill.SaleEnded)
		_, err := s.Store.Announce(t.Context(), byClock.ID, seckill.EventSaleEnded)
		must(t, err)
		for _, order := range orders {
			s.cancel(t, order)
			equal(t, "sale.back_in_stock", s.count(t, order.ProductID, seckill.EventSaleBackInStock), 0)
		}
	}},
	{"a refund that is owed writes refund.required, and when it is done refund.settled", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		refund := s.owedRefund(t, p, "buyer")
		order := s.order(t, s.event(t, p.ID, seckill.EventRefundRequired).OrderNo)
		equal(t, "refund.required", s.refundEvent(t, p.ID, seckill.EventRefundRequired, &order), dataOf(refund))
		equal(t, "refund.settled before it is done", s.count(t, p.ID, seckill.EventRefundSettled), 0)
		for range 2 {
			must(t, s.Store.RefundDone(t.Context(), refund.ID))
		}
		equal(t, "refund.settled", s.refundEvent(t, p.ID, seckill.EventRefundSettled, &order), dataOf(refund))
	}},
	{"the refund of an order follows its order.refunded", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.pay(t, s.buy(t, p, "buyer"))
		_, err := s.Store.Refund(t.Context(), order.OrderNo, operator)
		must(t, err)
		refund := s.payments(t, order.OrderNo.String(), "refund")[0]
		equal(t, "refund.required", s.refundEvent(t, p.ID, seckill.EventRefundRequired, &order), dataOf(refund))
		if s.event(t, p.ID, seckill.EventRefundRequired).ID <= s.event(t, p.ID, seckill.EventOrderRefunded).ID {
			t.Error("refund.required comes before order.refunded")
		}
	}},
	{"a failed or repeated attempt makes no new refund event", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		refund := s.owedRefund(t, p, "buyer")
		s.wantUnchanged(t, p.ID, func() {
			must(t, s.Store.RefundFailed(t.Context(), refund.ID, "refused", -1))
			_, err := s.Store.RetryRefund(t.Context(), refund.ID, operator)
			must(t, err)
		})
	}},
	{"the event of a refund for an unknown order has no order", unknownRefund},
	{"an event with invalid JSON is listed without data", func(t *testing.T, s *suite) {
		if s.Exec == nil {
			t.Skip("rows cannot be altered")
		}
		p := s.create(t)
		s.Exec(t, `UPDATE tb_event SET data = '{"offered":' WHERE product_id = ?`, p.ID)
		equal(t, "data", s.event(t, p.ID, seckill.EventSaleCreated).Data, nil)
	}},
}

// event returns the product's only event of a kind.
func (s *suite) event(t TB, product uint32, kind seckill.EventKind) seckill.Event {
	t.Helper()
	var found []seckill.Event
	for _, event := range s.events(t, product) {
		if event.Kind == kind {
			found = append(found, event)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d events %s, want one", len(found), kind)
	}
	return found[0]
}

// wantEvent expects one event of the sale with this data.
func (s *suite) wantEvent(t TB, product uint32, kind seckill.EventKind, data string) {
	t.Helper()
	event := s.event(t, product, kind)
	equal(t, "data of "+string(kind), string(event.Data), data)
	event.Data = nil
	equal(t, string(kind), event, seckill.Event{ID: event.ID, At: event.At, Kind: kind, ProductID: product})
}

// refundEvent returns the data of the product's only event of a kind, which must name the
// order.
func (s *suite) refundEvent(t TB, product uint32, kind seckill.EventKind, order *seckill.Order) (data seckill.RefundData) {
	t.Helper()
	event := s.event(t, product, kind)
	must(t, json.Unmarshal(event.Data, &data))
	event.Data = nil
	equal(t, string(kind), event, seckill.Event{
		ID: event.ID, At: event.At, Kind: kind, ProductID: product, OrderNo: order.OrderNo, Buyer: order.Buyer,
		Quantity: order.Quantity, AmountCents: order.AmountCents(), Currency: order.Currency, Ref: order.Ref, Reason: data.Reason,
	})
	return data
}

func dataOf(refund store.Payment) seckill.RefundData {
	return seckill.RefundData{
		ID: refund.ID, AmountCents: refund.AmountCents, Currency: refund.Currency, Provider: refund.Provider,
		TradeNo: refund.TradeNo, OrderNo: refund.OrderNo, Reason: refund.Reason,
	}
}

func countedEvents(t *testing.T, s *suite) {
	p := s.preheated(t, stock(20), perUser(10))
	announce := func(kind seckill.EventKind) {
		_, err := s.Store.Announce(t.Context(), p.ID, kind)
		must(t, err)
	}
	s.buy(t, p, "early", quantity(2))
	announce(seckill.EventSaleStarted)
	s.wantEvent(t, p.ID, seckill.EventSaleStarted, `{"offered":20,"stock":18,"pending":2,"paid":0,"cancelled":0,"failed":0,"refunded":0}`)
	s.pay(t, s.buy(t, p, "payer", quantity(3)))
	s.cancel(t, s.buy(t, p, "canceller"))
	s.inState(t, p, seckill.OrderFailed)
	s.inState(t, p, seckill.OrderRefunded)
	f := s.figures(t, p.ID)
	announce(seckill.EventSaleEnded)
	var data seckill.SaleData
	must(t, json.Unmarshal(s.event(t, p.ID, seckill.EventSaleEnded).Data, &data))
	equal(t, "sale.ended", data, seckill.SaleData{
		Offered: 20, Stock: f.Product.Stock, ReturnedUnits: &f.Product.Stock,
		Counted: &seckill.Counted{Pending: f.Pending, Paid: f.Paid, Cancelled: f.Cancelled, Failed: f.Failed, Refunded: f.Refunded},
	})
	if f.Failed == 0 || f.Refunded == 0 || f.Pending < 2 || f.Paid < 3 || f.Cancelled == 0 {
		t.Errorf("a state has no orders: %+v", f)
	}
}

func backInStock(t *testing.T, s *suite) {
	p := s.preheated(t, stock(3))
	var orders []seckill.Order
	sellOut := func(want int) {
		t.Helper()
		for i := 0; s.product(t, p.ID).Stock > 0; i++ {
			orders = append(orders, s.pay(t, s.buy(t, p, numbered(numbered("buyer", want), i))))
		}
		equal(t, "sale.sold_out", s.count(t, p.ID, seckill.EventSaleSoldOut), want)
	}
	refund := func() {
		t.Helper()
		_, err := s.Store.Refund(t.Context(), orders[0].OrderNo, operator)
		must(t, err)
		orders = orders[1:]
	}
	back := func(want int) {
		t.Helper()
		equal(t, "sale.back_in_stock", s.count(t, p.ID, seckill.EventSaleBackInStock), want)
	}
	sellOut(1)
	back(0)
	refund()
	back(1)
	refund() // there is stock already
	back(1)
	sellOut(2)
	s.change(t, p, 2)
	back(2)
	s.change(t, p, 1)
	back(2)
	sellOut(3)
	s.wantAlternating(t, s.events(t, p.ID), s.product(t, p.ID).Stock)
}

// wantAlternating expects sale.sold_out and sale.back_in_stock in turns, each with the stock at its
// time. The last one must fit the present stock.
func (s *suite) wantAlternating(t TB, events []seckill.Event, stock int64) {
	t.Helper()
	soldOut := false
	for _, event := range events {
		if event.Kind != seckill.EventSaleSoldOut && event.Kind != seckill.EventSaleBackInStock {
			continue
		}
		var data seckill.SaleData
		must(t, json.Unmarshal(event.Data, &data))
		if now := event.Kind == seckill.EventSaleSoldOut; now == soldOut || now != (data.Stock == 0) {
			t.Errorf("%s with a stock of %d, sold out before: %v", event.Kind, data.Stock, soldOut)
		}
		soldOut = !soldOut
	}
	if soldOut && stock > 0 {
		t.Errorf("the last event says sold out, the stock is %d", stock)
	}
}

func unknownRefund(t *testing.T, s *suite) {
	p := s.create(t)
	record := func(no, trade string) store.Payment {
		n := payment.Notice{
			Provider: "sandbox", TradeNo: numbered(trade, int(p.ID)), OrderNo: no, AmountCents: 5, Currency: "CNY", PaidAt: s.now(t),
		}
		s.record(t, n, store.PaymentExcess)
		return s.refundOf(t, n)
	}
	never := s.item(t, p, "nobody").Claim.OrderNo
	refund := record(never.String(), "never made")
	equal(t, "refund.required", s.refundEvent(t, p.ID, seckill.EventRefundRequired, &seckill.Order{OrderNo: never}), dataOf(refund))

	start := s.lastEvent(t)
	refund = record("shop's 订单", "not ours")
	must(t, s.Store.RefundDone(t.Context(), refund.ID))
	events := s.eventsAfter(t, start)
	equal(t, "events", len(events), 2)
	for i, kind := range []seckill.EventKind{seckill.EventRefundRequired, seckill.EventRefundSettled} {
		var data seckill.RefundData
		must(t, json.Unmarshal(events[i].Data, &data))
		equal(t, "data", data, dataOf(refund))
		events[i].Data = nil
		equal(t, string(kind), events[i], seckill.Event{ID: events[i].ID, At: events[i].At, Kind: kind, Reason: "unknown_order"})
	}
}
