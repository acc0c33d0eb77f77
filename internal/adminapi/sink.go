package adminapi

import (
	"context"
	"fmt"
	"math"

	"seckill/internal/api"
	"seckill/internal/sink"
	"seckill/internal/store"
)

const maxSinkBytes = 64

// The states of a sink.
const (
	sinkIdle          = "idle"           // all events are delivered
	sinkSending       = "sending"        // events wait in the feed
	sinkRetrying      = "retrying"       // some deliveries are repeated
	sinkFailed        = "failed"         // some have no retries left
	sinkDown          = "down"           // the receiver does not answer
	sinkNotConfigured = "not_configured" // it was configured before
)

func (in *input) sinkName() string {
	name := in.request.PathValue("name")
	in.checkText("name", name, 1, maxSinkBytes)
	return name
}

func sinkOf(r *sink.Report) api.Sink {
	counts := make(map[string]int64, len(store.DeliveryStates))
	for _, state := range store.DeliveryStates {
		counts[state.String()] = r.State.Count[state]
	}
	state := sinkIdle
	switch {
	case !r.Configured:
		state = sinkNotConfigured
	case !r.State.DownAt.IsZero():
		state = sinkDown
	case r.State.Count[store.DeliveryFailed] > 0:
		state = sinkFailed
	case r.State.Count[store.DeliveryRetrying] > 0:
		state = sinkRetrying
	case r.Lag > 0:
		state = sinkSending
	}
	return api.Sink{
		Name: r.Name, Kind: r.Kind, Target: r.Target, Configured: r.Configured, State: state, Cursor: r.State.Cursor,
		LagEvents: r.Lag, LagSeconds: r.Oldest.Seconds(), Deliveries: counts,
		LastError: r.State.LastError, LastErrorAt: api.Time(r.State.LastErrorAt), DownSince: api.Time(r.State.DownAt),
	}
}

func (a *handler) listSinks(*input) action {
	return func(ctx context.Context) (answer, error) {
		reports, err := a.Sinks.List(ctx)
		return list("sinks", reports, err, sinkOf)
	}
}

func (a *handler) listDeliveries(in *input) action {
	filter := store.DeliveryFilter{
		Sink: in.sinkName(), After: in.paramInt("after", 0, math.MaxInt64, 0), Before: in.paramInt("before", 0, math.MaxInt64, 0),
		Newest: in.paramOneOf("order", "asc", "desc") == "desc", Limit: in.limit(),
	}
	if no := in.paramOrderNo("order_no"); !no.IsZero() {
		filter.Key = no.String()
	}
	if id := in.param("message_id"); id != nil {
		if filter.MessageID = *id; !sink.IsMessageID(*id) {
			in.fail("message_id must be evt_ and 32 hexadecimal digits")
		}
	}
	names := make([]string, len(store.DeliveryStates))
	for i, state := range store.DeliveryStates {
		names[i] = state.String()
	}
	if status := in.paramOneOf("status", names...); status != "" {
		state, err := store.ParseDeliveryState(status)
		in.failWith(err)
		filter.State = state
	}
	return func(ctx context.Context) (answer, error) {
		deliveries, err := a.Sinks.Deliveries(ctx, filter)
		if err != nil {
			return answer{}, fmt.Errorf("list deliveries of %s: %w", filter.Sink, err)
		}
		page := struct {
			Deliveries []api.Delivery `json:"deliveries"`
			Next       int64          `json:"next"` // after of the next page, or before with newest=true
		}{api.List(deliveries, api.DeliveryOf), filter.After}
		if filter.Newest {
			page.Next = filter.Before
		}
		if len(deliveries) > 0 {
			page.Next = deliveries[len(deliveries)-1].EventID
		}
		return answer{body: page}, nil
	}
}

// onDelivery is an operation on one delivery, named by the number of its event or by
// its message id.
func (a *handler) onDelivery(verb string, do func(ctx context.Context, sink string, event int64, actor store.Actor) (store.Delivery, error)) operation {
	return func(in *input) action {
		name, id, actor := in.sinkName(), in.request.PathValue("id"), in.actor()
		var event int64
		if !sink.IsMessageID(id) {
			event = in.pathNumber("id", math.MaxInt64)
		}
		return func(ctx context.Context) (answer, error) {
			var d store.Delivery
			var err error
			if event == 0 {
				event, err = a.Sinks.Event(ctx, name, id)
			}
			if err == nil {
				d, err = do(ctx, name, event, actor)
			}
			return record(fmt.Sprintf("%s delivery %s of %s", verb, id, name), d, err, api.DeliveryOf)
		}
	}
}

// onSink is an operation on all deliveries of a sink. It answers with their number as
// the member counted.
func (a *handler) onSink(verb, counted string, do func(ctx context.Context, sink string, actor store.Actor) (int, error)) operation {
	return func(in *input) action {
		name, actor := in.sinkName(), in.actor()
		return func(ctx context.Context) (answer, error) {
			n, err := do(ctx, name, actor)
			if err != nil {
				return answer{}, fmt.Errorf("%s %s: %w", verb, name, err)
			}
			return answer{body: map[string]int{counted: n}}, nil
		}
	}
}

func (a *handler) replaySink(in *input) action {
	name, actor := in.sinkName(), in.actor()
	from := required(in, "from", in.time("from"))
	return func(ctx context.Context) (answer, error) {
		events, err := a.Sinks.Replay(ctx, name, from, actor)
		if err != nil {
			return answer{}, fmt.Errorf("replay %s: %w", name, err)
		}
		return answer{body: map[string]int64{"events": events}}, nil
	}
}

func (a *handler) testSink(in *input) action {
	name, actor := in.sinkName(), in.actor()
	return func(ctx context.Context) (answer, error) {
		echo, err := a.Sinks.Test(ctx, name, actor)
		if err != nil {
			return answer{}, fmt.Errorf("test %s: %w", name, err)
		}
		result := api.SinkTest{OK: echo.Err == nil, Answer: echo.Status, LatencyMS: echo.Latency.Milliseconds()}
		if echo.Err != nil {
			result.Error = echo.Err.Error()
		}
		return answer{body: result}, nil
	}
}
