package storetest

import (
	"context"
	"time"

	"seckill/internal/store"
)

// The methods of store.Deliveries, as in faulty_methods.go.

func (f *Faulty) OpenSink(ctx context.Context, name string, atEnd bool) (store.SinkState, error) {
	return ask(f, ctx, "OpenSink", func() (store.SinkState, error) { return f.inner.OpenSink(ctx, name, atEnd) })
}

func (f *Faulty) SinkState(ctx context.Context, name string) (store.SinkState, error) {
	return ask(f, ctx, "SinkState", func() (store.SinkState, error) { return f.inner.SinkState(ctx, name) })
}

func (f *Faulty) SinkCursor(ctx context.Context, name string) (store.SinkState, error) {
	return ask(f, ctx, "SinkCursor", func() (store.SinkState, error) { return f.inner.SinkCursor(ctx, name) })
}

func (f *Faulty) SinkStates(ctx context.Context) ([]store.SinkState, error) {
	return ask(f, ctx, "SinkStates", func() ([]store.SinkState, error) { return f.inner.SinkStates(ctx) })
}

func (f *Faulty) TakeSink(ctx context.Context, name string) (store.SinkState, error) {
	return ask(f, ctx, "TakeSink", func() (store.SinkState, error) { return f.inner.TakeSink(ctx, name) })
}

func (f *Faulty) SetSinkDown(ctx context.Context, name string, term int64, down bool) error {
	return tell(f, ctx, "SetSinkDown", func() error { return f.inner.SetSinkDown(ctx, name, term, down) })
}

func (f *Faulty) FeedEnd(ctx context.Context) (int64, error) {
	return ask(f, ctx, "FeedEnd", func() (int64, error) { return f.inner.FeedEnd(ctx) })
}

func (f *Faulty) SettleDeliveries(ctx context.Context, sink string, term, cursor int64, done []store.Delivery) error {
	return tell(f, ctx, "SettleDeliveries", func() error { return f.inner.SettleDeliveries(ctx, sink, term, cursor, done) })
}

func (f *Faulty) DeliveredAfter(ctx context.Context, sink string, after int64, limit int) ([]int64, error) {
	return ask(f, ctx, "DeliveredAfter", func() ([]int64, error) { return f.inner.DeliveredAfter(ctx, sink, after, limit) })
}

func (f *Faulty) OpenKeys(ctx context.Context, sink string, keys []string) ([]string, error) {
	return ask(f, ctx, "OpenKeys", func() ([]string, error) { return f.inner.OpenKeys(ctx, sink, keys) })
}

func (f *Faulty) DeliveriesDue(ctx context.Context, sink string, by time.Time, limit int) ([]store.Delivery, error) {
	return ask(f, ctx, "DeliveriesDue", func() ([]store.Delivery, error) { return f.inner.DeliveriesDue(ctx, sink, by, limit) })
}

func (f *Faulty) HastenDeliveries(ctx context.Context, sink string, since time.Time) error {
	return tell(f, ctx, "HastenDeliveries", func() error { return f.inner.HastenDeliveries(ctx, sink, since) })
}

func (f *Faulty) SweepDeliveries(ctx context.Context, sink string, below int64, limit int) (int, error) {
	return ask(f, ctx, "SweepDeliveries", func() (int, error) { return f.inner.SweepDeliveries(ctx, sink, below, limit) })
}

func (f *Faulty) Deliveries(ctx context.Context, filter store.DeliveryFilter) ([]store.Delivery, error) {
	return ask(f, ctx, "Deliveries", func() ([]store.Delivery, error) { return f.inner.Deliveries(ctx, filter) })
}

func (f *Faulty) RetryDelivery(ctx context.Context, sink string, event int64, actor store.Actor) (store.Delivery, error) {
	return ask(f, ctx, "RetryDelivery", func() (store.Delivery, error) { return f.inner.RetryDelivery(ctx, sink, event, actor) })
}

func (f *Faulty) RetryDeliveries(ctx context.Context, sink string, actor store.Actor) (int, error) {
	return ask(f, ctx, "RetryDeliveries", func() (int, error) { return f.inner.RetryDeliveries(ctx, sink, actor) })
}

func (f *Faulty) SkipDelivery(ctx context.Context, sink string, event int64, actor store.Actor) (store.Delivery, error) {
	return ask(f, ctx, "SkipDelivery", func() (store.Delivery, error) { return f.inner.SkipDelivery(ctx, sink, event, actor) })
}

func (f *Faulty) SkipDeliveries(ctx context.Context, sink string, actor store.Actor) (int, error) {
	return ask(f, ctx, "SkipDeliveries", func() (int, error) { return f.inner.SkipDeliveries(ctx, sink, actor) })
}

func (f *Faulty) ReplaySink(ctx context.Context, sink string, after int64, actor store.Actor) (store.SinkState, error) {
	return ask(f, ctx, "ReplaySink", func() (store.SinkState, error) { return f.inner.ReplaySink(ctx, sink, after, actor) })
}

func (f *Faulty) ForgetSink(ctx context.Context, sink string, actor store.Actor) (int, error) {
	return ask(f, ctx, "ForgetSink", func() (int, error) { return f.inner.ForgetSink(ctx, sink, actor) })
}
