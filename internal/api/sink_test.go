package api

import (
	"encoding/json"
	"strings"
	"testing"

	"seckill"
)

func TestEventData_HasOrderAtTimeOfEvent(t *testing.T) {
	no := seckill.NewOrderNo(noon, 7, 9)
	order := seckill.Order{OrderNo: no, Buyer: "ann", ProductID: 7, Quantity: 1, PriceCents: 5, Status: seckill.OrderRefunded, Reason: "broken", CreatedAt: noon, PaidAt: noon, ClosedAt: noon}
	for kind, want := range map[seckill.EventKind]string{
		seckill.EventOrderConfirmed: "pending", seckill.EventOrderExpiring: "pending", seckill.EventOrderPaid: "paid", seckill.EventOrderRefunded: "refunded",
	} {
		data, ok := EventData(&seckill.Event{Kind: kind, OrderNo: no, ProductID: 7}, &order).(AdminOrder)
		if !ok || data.Status != want || data.OrderNo != no.String() || data.Buyer != "ann" {
			t.Errorf("%s: %+v", kind, data)
		}
	}
	if order.Status != seckill.OrderRefunded {
		t.Error("the order was changed")
	}
}

func TestEventData_OfSaleHasProduct(t *testing.T) {
	text, err := json.Marshal(EventData(&seckill.Event{Kind: seckill.EventSaleEnded, ProductID: 7}, nil))
	if err != nil || !strings.Contains(string(text), `"product_id":7`) {
		t.Errorf("got %s, %v", text, err)
	}
	text, err = json.Marshal(withProduct{7, json.RawMessage(`{"stock":3}`)})
	if err != nil || string(text) != `{"product_id":7,"stock":3}` {
		t.Errorf("got %s, %v", text, err)
	}
	text, err = json.Marshal(withProduct{7, json.RawMessage(`{"product_id":8}`)})
	if err != nil || string(text) != `{"product_id":8}` {
		t.Errorf("got %s, %v", text, err)
	}
}

// Data that is null, as JSON or as a column, is no data.
func TestEventData_NullIsNoData(t *testing.T) {
	for _, data := range []json.RawMessage{nil, {}, json.RawMessage("null")} {
		text, err := json.Marshal(EventData(&seckill.Event{Kind: seckill.EventSaleEnded, ProductID: 7, Data: data}, nil))
		if err != nil || string(text) != `{"product_id":7}` {
			t.Errorf("%q: got %s, %v", data, text, err)
		}
	}
	text, err := json.Marshal(withProduct{7, json.RawMessage(" null ")})
	if err != nil || string(text) != `{"product_id":7}` {
		t.Errorf("got %s, %v", text, err)
	}
}
