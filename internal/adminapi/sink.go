package adminapi

import (
	"context"
	"fmt"
	"math"

	"seckill/internal/sink"
	"seckill/internal/store"
	"seckill/internal/wire"
)

const maxSinkBytes = 64

// The states of a sink.
const (
	sinkIdle          = "idle"           // it has everything
	sinkSending       = "sending"        // events wait in the feed
	sinkRetrying      = "retrying"       // some deliveries are repeated
	sinkFailed        = "failed"         // some have no tries left
	sinkDown          = "down"           // the receiver does not answer
	sinkNotConfigured = "not_configured" // it was
)

func (in *input) sinkName() string {
	name := in.request.PathValue("name")
	in.checkText("name", name, 1, maxSinkBytes)
	return name
}

func sinkOf(r *sink.Report) wire.Sink {
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
	return wire.Sink{
		Name: r.Name, Kind: r.Kind, Target: r.Target, Configured: r.Configured, State: state, Cursor: r.State.Cursor,
		LagEvents: r.Lag, LagSeconds: r.Oldest.Seconds(), Deliveries: counts,
		LastError: r.State.LastError, LastErrorAt: wire.Time(r.State.LastErrorAt), DownSince: wire.Time(r.State.DownAt),
	}
}

func (a *api) listSinks(*input) action {
	return func(ctx context.Context) (answer, error) {
		reports, err := a.Sinks.List(ctx)
		if err != nil {
			return answer{}, fmt.Errorf("list sinks: %w", err)
		}
		return answer{body: struct {
			Sinks []wire.Sink `json:"sinks"`
		}{wire.List(reports, sinkOf)}}, nil
	}
}

func (a *api) listDeliveries(in *input) action {
	filter := store.DeliveryFilter{Sink: in.sinkName(), After: in.paramInt("after", 0, math.MaxInt64, 0), Limit: in.limit()}
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
			Deliveries []wire.Delivery `json:"deliveries"`
			Next       int64           `json:"next"` // what to ask for as after
		}{wire.List(deliveries, wire.DeliveryOf), filter.After}
		if len(deliveries) > 0 {
			page.Next = deliveries[len(deliveries)-1].EventID
		}
		return answer{body: page}, nil
	}
}

func (a *api) onDelivery(verb string, do func(ctx context.Context, sink string, event int64, actor store.Actor) (store.Delivery, error)) operation {
	return func(in *input) action {
		name, event, actor := in.sinkName(), in.pathNumber("id", math.MaxInt64), in.actor()
		return func(ctx context.Context) (answer, error) {
			d, err := do(ctx, name, event, actor)
			if err != nil {
				return answer{}, fmt.Errorf("%s delivery %d of %s: %w", verb, event, name, err)
			}
			return answer{body: wire.DeliveryOf(&d)}, nil
		}
	}
}

func (a *api) retryDeliveries(in *input) action {
	name, actor := in.sinkName(), in.actor()
	return func(ctx context.Context) (answer, error) {
		n, err := a.Sinks.RetryAll(ctx, name, actor)
		if err != nil {
			return answer{}, fmt.Errorf("retry deliveries of %s: %w", name, err)
		}
		return answer{body: struct {
			Retried int `json:"retried"`
		}{n}}, nil
	}
}

func (a *api) skipDeliveries(in *input) action {
	name, actor := in.sinkName(), in.actor()
	return func(ctx context.Context) (answer, error) {
		n, err := a.Sinks.SkipAll(ctx, name, actor)
		if err != nil {
			return answer{}, fmt.Errorf("skip deliveries of %s: %w", name, err)
		}
		return answer{body: struct {
			Skipped int `json:"skipped"`
		}{n}}, nil
	}
}

func (a *api) replaySink(in *input) action {
	name, actor := in.sinkName(), in.actor()
	from := required(in, "from", in.time("from"))
	return func(ctx context.Context) (answer, error) {
		events, err := a.Sinks.Replay(ctx, name, from, actor)
		if err != nil {
			return answer{}, fmt.Errorf("replay %s: %w", name, err)
		}
		return answer{body: struct {
			Events int64 `json:"events"`
		}{events}}, nil
	}
}

func (a *api) testSink(in *input) action {
	name, actor := in.sinkName(), in.actor()
	return func(ctx context.Context) (answer, error) {
		echo, err := a.Sinks.Test(ctx, name, actor)
		if err != nil {
			return answer{}, fmt.Errorf("test %s: %w", name, err)
		}
		result := wire.SinkTest{OK: echo.Err == nil, Answer: echo.Status, LatencyMS: echo.Latency.Milliseconds()}
		if echo.Err != nil {
			result.Error = echo.Err.Error()
		}
		return answer{body: result}, nil
	}
}
