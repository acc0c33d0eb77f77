package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
)

var noon = time.Date(2026, 11, 11, 20, 0, 0, 5_400_000, time.FixedZone("CST", 8*3600))

func marshal(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTime_IsUTCMillisecondsOrNull(t *testing.T) {
	if got := marshal(t, []Time{Time(noon), {}}); got != `["2026-11-11T12:00:00.005Z",null]` {
		t.Errorf("got %s", got)
	}
	var back []Time
	if err := json.Unmarshal([]byte(`["2026-11-11T20:00:00.005+08:00",null]`), &back); err != nil {
		t.Fatal(err)
	}
	if !back[0].Time().Equal(noon.Truncate(time.Millisecond)) || !back[1].Time().IsZero() {
		t.Errorf("got %v", back)
	}
	if err := json.Unmarshal([]byte(`"noon"`), &back[0]); err == nil {
		t.Error("a word was read as a time")
	}
}

func TestOrder_QueuedHasNoPayBefore(t *testing.T) {
	order := seckill.Order{
		OrderNo: seckill.NewOrderNo(noon, 7, 9), Buyer: "bob", Quantity: 2, Ref: "cart-1", Status: seckill.OrderQueued, Reason: seckill.ReasonRetrying,
		ProductID: 7, Group: 7, CreatedAt: noon, PriceCents: 150, Currency: "CNY", ProductName: "Shoe",
	}
	want := `{"order_no":"` + order.OrderNo.String() + `","product_id":7,"product_name":"Shoe","quantity":2,` +
		`"amount_cents":300,"currency":"CNY","ref":"cart-1","status":"queued","reason":"retrying",` +
		`"created_at":"2026-11-11T12:00:00.005Z","pay_before":null}`
	if got := marshal(t, OrderOf(&order)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestProduct_ShowsStatusAndTerms(t *testing.T) {
	p := seckill.Product{ID: 1, Name: "Shoe", StartsAt: noon, EndsAt: noon.Add(time.Hour)}
	got := ProductOf(&p, noon, true, ShopTerms{TokenRequired: true})
	if got.Status != seckill.StatusSoldOut || got.NowMS != noon.UnixMilli() || !got.TokenRequired {
		t.Errorf("got %+v", got)
	}
	if text := marshal(t, got); !strings.Contains(text, `"payment_providers":[]`) {
		t.Errorf("no providers must be an empty list: %s", text)
	}
}

func TestEvent_OfSaleHasNoOrderFields(t *testing.T) {
	event := seckill.Event{ID: 3, At: noon, Kind: seckill.EventSaleSoldOut, ProductID: 1}
	want := `{"v":1,"id":3,"at":"2026-11-11T12:00:00.005Z","event":"sale.sold_out","product_id":1}`
	if got := marshal(t, EventOf(&event)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestEventOf_RefundOfUnknownOrderHasDataAndNoAmount(t *testing.T) {
	no := seckill.NewOrderNo(noon, 7, 9)
	event := seckill.Event{
		ID: 4, At: noon, Kind: seckill.EventRefundRequired, ProductID: 7, OrderNo: no, Reason: "unknown_order",
		Data: json.RawMessage(`{"id":"RF1","amount_cents":5}`),
	}
	want := `{"v":1,"id":4,"at":"2026-11-11T12:00:00.005Z","event":"refund.required","product_id":7,"order_no":"` + no.String() +
		`","reason":"unknown_order","data":{"id":"RF1","amount_cents":5}}`
	if got := marshal(t, EventOf(&event)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestLetter_DeadHasNoNextRetry(t *testing.T) {
	letter := store.Letter{Dead: true, NextAt: noon, DeadAt: noon}
	got := LetterOf(&letter)
	if got.State != "dead" || !got.NextAt.Time().IsZero() || got.DeadAt.Time().IsZero() {
		t.Errorf("got %+v", got)
	}
}

func TestList_EmptyIsNotNull(t *testing.T) {
	if got := marshal(t, List(nil, OrderOf)); got != "[]" {
		t.Errorf("got %s", got)
	}
}
