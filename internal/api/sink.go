package api

import (
	"encoding/json"

	"seckill"
	"seckill/internal/store"
)

// EventData returns the data member of an event for a sink: the order at the time of
// the event, the figures of a sale, or the refund. o is nil if there is no order.
func EventData(e *seckill.Event, o *seckill.Order) any {
	if len(e.Data) > 0 && string(e.Data) != "null" {
		return withProduct{e.ProductID, e.Data}
	}
	if o != nil {
		then := o.AsOf(e.Kind)
		return AdminOrderOf(&then, e.Test)
	}
	return struct {
		ProductID uint32 `json:"product_id"`
		OrderNo   string `json:"order_no,omitempty"`
		Reason    string `json:"reason,omitempty"`
	}{e.ProductID, e.OrderNo.String(), e.Reason}
}

// withProduct adds the product's id to an object.
type withProduct struct {
	product uint32
	object  json.RawMessage
}

func (w withProduct) MarshalJSON() ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(w.object, &members); err != nil {
		return nil, err
	}
	if members == nil { // of null
		members = make(map[string]json.RawMessage)
	}
	if _, named := members["product_id"]; !named {
		product, err := json.Marshal(w.product)
		if err != nil {
			return nil, err
		}
		members["product_id"] = product
	}
	return json.Marshal(members)
}

// Sink is the JSON of a sink. Sinks that are not configured any more have no kind
// and no target.
type Sink struct {
	Name       string           `json:"name"`
	Kind       string           `json:"kind"`
	Target     string           `json:"target"` // without secrets
	Configured bool             `json:"configured"`
	State      string           `json:"state"`  // idle, sending, retrying, failed, down or not_configured
	Cursor     int64            `json:"cursor"` // the last event read from the feed
	LagEvents  int64            `json:"lag_events"`
	LagSeconds float64          `json:"lag_seconds"` // age of the oldest undelivered event
	Deliveries map[string]int64 `json:"deliveries"`  // by status
	LastError  string           `json:"last_error"`
	// LastErrorAt is null if there was no error.
	LastErrorAt Time `json:"last_error_at"`
	DownSince   Time `json:"down_since"` // null if it is not down
}

// Delivery is one event at one sink.
type Delivery struct {
	EventID   int64             `json:"event_id"`
	MessageID string            `json:"message_id"` // the header webhook-id
	Event     seckill.EventKind `json:"event"`
	EventAt   Time              `json:"event_at"`
	Key       string            `json:"key"` // deliveries with the same key are in order
	Status    string            `json:"status"`
	Attempts  int               `json:"attempts"`
	Answer    string            `json:"answer"` // of the last attempt, such as 204
	LatencyMS int64             `json:"latency_ms"`
	Error     string            `json:"error"`
	FirstAt   Time              `json:"first_at"` // null before the first attempt
	LastAt    Time              `json:"last_at"`
	NextAt    Time              `json:"next_at"` // null unless it is retried
}

// DeliveryOf converts a delivery.
func DeliveryOf(d *store.Delivery) Delivery {
	return Delivery{
		EventID: d.EventID, MessageID: d.MessageID, Event: d.Kind, EventAt: Time(d.EventAt), Key: d.Key,
		Status: d.State.String(), Attempts: d.Attempts, Answer: d.Status, LatencyMS: d.Latency.Milliseconds(), Error: d.Error,
		FirstAt: Time(d.FirstAt), LastAt: Time(d.LastAt), NextAt: Time(d.NextAt),
	}
}

// SinkTest is the answer of a sink to an echo event.
type SinkTest struct {
	OK        bool   `json:"ok"`
	Answer    string `json:"answer"`
	LatencyMS int64  `json:"latency_ms"`
	Error     string `json:"error"`
}
