package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
)

var deliveryTests = []test{
	{"a new sink begins before the first event or behind the last", newSinks},
	{"a sink keeps its cursor, and is listed by name", listedSinks},
	{"settled deliveries move the cursor and are listed", settledDeliveries},
	{"a repeated settlement changes nothing", repeatedSettlement},
	{"a sender of an earlier term changes nothing", earlierTerm},
	{"a sink is down until it is set up again", downSink},
	{"deliveries are due at their time, earliest first", dueDeliveries},
	{"hastened deliveries are due now", hastenedDeliveries},
	{"the next delivery of a key is due when the one before is settled", linesOfKeys},
	{"a delivery behind no open one is due at once", nothingBefore},
	{"a failed delivery is retried with fresh attempts", retriedDelivery},
	{"all failed and retrying deliveries of a sink are made due", retriedDeliveries},
	{"after a skipped delivery the next one is due", skippedDelivery},
	{"after all failed deliveries are skipped, those behind them are due", skippedDeliveries},
	{"many deliveries are retried, skipped and forgotten in parts", manyDeliveries},
	{"a replay sets the cursor back and forgets later deliveries", replayedSink},
	{"old settled deliveries are swept, open ones stay", sweptDeliveries},
	{"a forgotten sink and its deliveries are gone", forgottenSink},
	{"operator changes of sinks are audited", auditedSinks},
}

func newSink() string { return numbered("sink", int(newProductID())) }

func (s *suite) sink(t *testing.T) string {
	t.Helper()
	name := newSink()
	_, err := s.Store.OpenSink(t.Context(), name, false)
	must(t, err)
	return name
}

func (s *suite) sinkState(t *testing.T, name string) store.SinkState {
	t.Helper()
	state, err := s.Store.SinkState(t.Context(), name)
	must(t, err)
	return state
}

// delivery returns a delivery of event id after its first try.
func (s *suite) delivery(t *testing.T, id int64, key string, state store.DeliveryState) store.Delivery {
	t.Helper()
	now := s.now(t)
	d := store.Delivery{
		EventID: id, Key: key, Kind: seckill.EventOrderPaid, MessageID: numbered("evt_", int(id)), EventAt: now.Add(-time.Minute),
		State: state, Attempts: 1, Status: "500", Latency: 12 * time.Millisecond, Error: "出错", FirstAt: now, LastAt: now,
	}
	switch state {
	case store.DeliveryRetrying:
		d.NextAt = now.Add(far)
	case store.DeliveryWaiting:
		d.Attempts, d.Status, d.Error, d.FirstAt = 0, "", "", time.Time{}
	case store.DeliveryDelivered:
		d.Status, d.Error = "204", ""
	}
	if state.Open() {
		d.Body = []byte(`{"id":"水壶"}`)
	}
	return d
}

func (s *suite) settle(t *testing.T, sink string, cursor int64, done ...store.Delivery) {
	t.Helper()
	must(t, s.Store.SettleDeliveries(t.Context(), sink, s.sinkState(t, sink).Term, cursor, done))
}

func (s *suite) deliveries(t *testing.T, filter store.DeliveryFilter) []store.Delivery {
	t.Helper()
	if filter.Limit == 0 {
		filter.Limit = all
	}
	list, err := s.Store.Deliveries(t.Context(), filter)
	must(t, err)
	return list
}

// states returns the states of a sink's deliveries, by event.
func (s *suite) states(t *testing.T, sink string) map[int64]store.DeliveryState {
	t.Helper()
	states := map[int64]store.DeliveryState{}
	for _, d := range s.deliveries(t, store.DeliveryFilter{Sink: sink}) {
		states[d.EventID] = d.State
	}
	return states
}

func (s *suite) dueAt(t *testing.T, sink string) (ids []int64) {
	t.Helper()
	list, err := s.Store.DeliveriesDue(t.Context(), sink, s.now(t), all)
	must(t, err)
	for _, d := range list {
		ids = append(ids, d.EventID)
	}
	return ids
}

func newSinks(t *testing.T, s *suite) {
	p := s.preheated(t)
	s.buy(t, p, "buyer")
	end, err := s.Store.FeedEnd(t.Context())
	must(t, err)
	equal(t, "end of the feed", end, s.lastEvent(t))

	first, err := s.Store.OpenSink(t.Context(), newSink(), false)
	must(t, err)
	equal(t, "cursor at the start", first.Cursor, 0)
	last, err := s.Store.OpenSink(t.Context(), newSink(), true)
	must(t, err)
	equal(t, "cursor at the end", last.Cursor, end)
	again, err := s.Store.OpenSink(t.Context(), first.Name, true)
	must(t, err)
	equal(t, "cursor of a sink that has one", again.Cursor, 0)
	if again.CreatedAt.IsZero() || !again.CreatedAt.Equal(first.CreatedAt) || again.At.IsZero() {
		t.Errorf("times are %v and %v, at %v", first.CreatedAt, again.CreatedAt, again.At)
	}
	_, err = s.Store.SinkState(t.Context(), newSink())
	equal(t, "state of an unknown sink", seckill.CodeNotFound.In(err), true)
	_, err = s.Store.SinkCursor(t.Context(), newSink())
	equal(t, "cursor of an unknown sink", seckill.CodeNotFound.In(err), true)
}

func listedSinks(t *testing.T, s *suite) {
	a, b := s.sink(t), s.sink(t)
	s.settle(t, a, 12, s.delivery(t, 12, "k", store.DeliveryDelivered), s.delivery(t, 11, "x", store.DeliveryFailed))
	states, err := s.Store.SinkStates(t.Context())
	must(t, err)
	found := map[string]store.SinkState{}
	for i, state := range states {
		if i > 0 && state.Name <= states[i-1].Name {
			t.Errorf("%q is listed after %q", state.Name, states[i-1].Name)
		}
		found[state.Name] = state
	}
	equal(t, "cursor", found[a].Cursor, 12)
	equal(t, "cursor of another", found[b].Cursor, 0)
	equal(t, "delivered", found[a].Count[store.DeliveryDelivered], 1)
	equal(t, "failed", found[a].Count[store.DeliveryFailed], 1)
	equal(t, "last error", found[a].LastError, "出错")
	equal(t, "time of the last error", found[a].LastErrorAt.IsZero(), false)
}

func settledDeliveries(t *testing.T, s *suite) {
	sink := s.sink(t)
	delivered, retrying := s.delivery(t, 5, "a", store.DeliveryDelivered), s.delivery(t, 7, "b", store.DeliveryRetrying)
	waiting, failed := s.delivery(t, 8, "b", store.DeliveryWaiting), s.delivery(t, 9, "c", store.DeliveryFailed)
	s.settle(t, sink, 9, delivered, retrying, waiting, failed)

	list := s.deliveries(t, store.DeliveryFilter{Sink: sink})
	equal(t, "deliveries", len(list), 4)
	for i, want := range []store.Delivery{delivered, retrying, waiting, failed} {
		want.Sink, want.Kept, want.Body = sink, true, nil
		equal(t, "delivery", list[i], want)
	}
	equal(t, "retrying ones", s.deliveries(t, store.DeliveryFilter{Sink: sink, State: store.DeliveryRetrying}), list[1:2])
	equal(t, "a page", s.deliveries(t, store.DeliveryFilter{Sink: sink, After: 5, Limit: 2}), list[1:3])
	equal(t, "of another sink", len(s.deliveries(t, store.DeliveryFilter{Sink: s.sink(t)})), 0)
	equal(t, "of a key", s.deliveries(t, store.DeliveryFilter{Sink: sink, Key: "b"}), list[1:3])
	equal(t, "of a message", s.deliveries(t, store.DeliveryFilter{Sink: sink, MessageID: failed.MessageID}), list[3:])
	equal(t, "newest first", s.deliveries(t, store.DeliveryFilter{Sink: sink, Newest: true, Limit: 2}), []store.Delivery{list[3], list[2]})
	equal(t, "the page before", s.deliveries(t, store.DeliveryFilter{Sink: sink, Newest: true, Before: 8, Limit: 2}), []store.Delivery{list[1], list[0]})

	state := s.sinkState(t, sink)
	equal(t, "cursor", state.Cursor, 9)
	equal(t, "open", state.Open(), 3)
	equal(t, "next try", state.NextAt.Equal(retrying.NextAt), true)
	equal(t, "oldest", state.OldestAt.Equal(retrying.EventAt), true)
	cursor, err := s.Store.SinkCursor(t.Context(), sink)
	must(t, err)
	if cursor.Cursor != 9 || cursor.Term != state.Term || cursor.At.IsZero() || len(cursor.Count) != 0 {
		t.Errorf("cursor is %+v", cursor)
	}

	open, err := s.Store.OpenKeys(t.Context(), sink, []string{"a", "b", "c", "d", "b"})
	must(t, err)
	equal(t, "open keys", len(open), 2)
	none, err := s.Store.OpenKeys(t.Context(), sink, nil)
	must(t, err)
	equal(t, "open keys of none", len(none), 0)
	after, err := s.Store.DeliveredAfter(t.Context(), sink, 5, 2)
	must(t, err)
	equal(t, "events with a delivery", after, []int64{7, 8})
}

func repeatedSettlement(t *testing.T, s *suite) {
	sink := s.sink(t)
	d := []store.Delivery{s.delivery(t, 1, "a", store.DeliveryRetrying), s.delivery(t, 2, "a", store.DeliveryWaiting)}
	s.settle(t, sink, 2, d...)
	before := s.deliveries(t, store.DeliveryFilter{Sink: sink})
	s.settle(t, sink, 2, d...)
	equal(t, "deliveries", s.deliveries(t, store.DeliveryFilter{Sink: sink}), before)
	s.settle(t, sink, 2)
	equal(t, "cursor", s.sinkState(t, sink).Cursor, 2)
}

func earlierTerm(t *testing.T, s *suite) {
	sink := s.sink(t)
	first, err := s.Store.TakeSink(t.Context(), sink)
	must(t, err)
	second, err := s.Store.TakeSink(t.Context(), sink)
	must(t, err)
	equal(t, "terms differ", first.Term < second.Term, true)
	err = s.Store.SettleDeliveries(t.Context(), sink, first.Term, 3, []store.Delivery{s.delivery(t, 3, "a", store.DeliveryDelivered)})
	equal(t, "settled by the earlier one", errors.Is(err, store.ErrTerm), true)
	equal(t, "cursor", s.sinkState(t, sink).Cursor, 0)
	equal(t, "deliveries", len(s.states(t, sink)), 0)
	must(t, s.Store.SettleDeliveries(t.Context(), sink, second.Term, 3, nil))
	equal(t, "cursor of the later one", s.sinkState(t, sink).Cursor, 3)
	_, err = s.Store.TakeSink(t.Context(), newSink())
	equal(t, "an unknown sink", seckill.CodeNotFound.In(err), true)
	err = s.Store.SettleDeliveries(t.Context(), newSink(), 1, 1, nil)
	equal(t, "settled at an unknown sink", seckill.CodeNotFound.In(err), true)
}

func downSink(t *testing.T, s *suite) {
	sink := s.sink(t)
	equal(t, "a new sink is down", !s.sinkState(t, sink).DownAt.IsZero(), false)
	before := s.now(t)
	must(t, s.Store.SetSinkDown(t.Context(), sink, s.sinkState(t, sink).Term, true))
	taken, err := s.Store.TakeSink(t.Context(), sink)
	must(t, err)
	if taken.DownAt.Before(before) || taken.DownAt.After(s.now(t)) {
		t.Errorf("the sink is down since %v, want about %v", taken.DownAt, before)
	}
	err = s.Store.SetSinkDown(t.Context(), sink, taken.Term-1, false)
	equal(t, "set by an earlier term", errors.Is(err, store.ErrTerm), true)
	equal(t, "down since", s.sinkState(t, sink).DownAt.Equal(taken.DownAt), true)
	must(t, s.Store.SetSinkDown(t.Context(), sink, taken.Term, false))
	equal(t, "down", !s.sinkState(t, sink).DownAt.IsZero(), false)
}

func dueDeliveries(t *testing.T, s *suite) {
	sink := s.sink(t)
	now := s.now(t)
	late, soon, later := s.delivery(t, 1, "a", store.DeliveryRetrying), s.delivery(t, 2, "b", store.DeliveryRetrying), s.delivery(t, 3, "c", store.DeliveryRetrying)
	late.NextAt, soon.NextAt, later.NextAt = now.Add(-time.Minute), now.Add(-time.Hour), now.Add(far)
	s.settle(t, sink, 4, late, soon, later, s.delivery(t, 4, "d", store.DeliveryFailed))
	equal(t, "due", s.dueAt(t, sink), []int64{2, 1})
	list, err := s.Store.DeliveriesDue(t.Context(), sink, now.Add(2*far), 1)
	must(t, err)
	equal(t, "within a limit", len(list), 1)
	equal(t, "body", string(list[0].Body), string(soon.Body))
	list, err = s.Store.DeliveriesDue(t.Context(), sink, now.Add(2*far), all)
	must(t, err)
	equal(t, "by a later time", len(list), 3)
}

func hastenedDeliveries(t *testing.T, s *suite) {
	sink := s.sink(t)
	now := s.now(t)
	early, late := s.delivery(t, 4, "c", store.DeliveryRetrying), s.delivery(t, 5, "d", store.DeliveryRetrying)
	early.FirstAt, late.FirstAt = now.Add(-2*time.Hour), now.Add(-time.Hour)
	s.settle(t, sink, 5, s.delivery(t, 1, "a", store.DeliveryRetrying), s.delivery(t, 2, "a", store.DeliveryWaiting), s.delivery(t, 3, "b", store.DeliveryFailed), early, late)
	equal(t, "due before", len(s.dueAt(t, sink)), 0)
	must(t, s.Store.HastenDeliveries(t.Context(), sink, now.Add(-time.Hour)))
	equal(t, "due of those that were first tried since", s.dueAt(t, sink), []int64{1, 5})
	must(t, s.Store.HastenDeliveries(t.Context(), sink, time.Time{}))
	equal(t, "due", slices.Sorted(slices.Values(s.dueAt(t, sink))), []int64{1, 4, 5})
}

func linesOfKeys(t *testing.T, s *suite) {
	sink := s.sink(t)
	s.settle(t, sink, 4,
		s.delivery(t, 1, "a", store.DeliveryRetrying), s.delivery(t, 2, "a", store.DeliveryWaiting),
		s.delivery(t, 3, "b", store.DeliveryRetrying), s.delivery(t, 4, "a", store.DeliveryWaiting))
	for _, next := range []int64{1, 2, 4} {
		must(t, s.Store.HastenDeliveries(t.Context(), sink, time.Time{}))
		list, err := s.Store.DeliveriesDue(t.Context(), sink, s.now(t), all)
		must(t, err)
		equal(t, "due", len(list), 2)
		for _, d := range list {
			if d.Key != "a" {
				continue
			}
			equal(t, "first of its line", d.EventID, next)
			d.State, d.Attempts = store.DeliveryDelivered, d.Attempts+1
			s.settle(t, sink, 4, d)
		}
	}
	equal(t, "states", s.states(t, sink), map[int64]store.DeliveryState{
		1: store.DeliveryDelivered, 2: store.DeliveryDelivered, 3: store.DeliveryRetrying, 4: store.DeliveryDelivered,
	})
}

// nothingBefore settles a delivery whose predecessor another transaction settled, after the
// sender had read its state.
func nothingBefore(t *testing.T, s *suite) {
	sink := s.sink(t)
	s.settle(t, sink, 2, s.delivery(t, 2, "a", store.DeliveryWaiting))
	equal(t, "due", s.dueAt(t, sink), []int64{2})
}

func retriedDelivery(t *testing.T, s *suite) {
	sink := s.sink(t)
	s.settle(t, sink, 4, s.delivery(t, 1, "a", store.DeliveryFailed), s.delivery(t, 2, "a", store.DeliveryWaiting),
		s.delivery(t, 3, "b", store.DeliveryDelivered), s.delivery(t, 4, "c", store.DeliveryRetrying))
	d, err := s.Store.RetryDelivery(t.Context(), sink, 1, operator)
	must(t, err)
	equal(t, "state", d.State, store.DeliveryRetrying)
	equal(t, "attempts", d.Attempts, 0)
	equal(t, "time of the retry", s.sinkState(t, sink).RetriedAt.Equal(d.NextAt), true)
	_, err = s.Store.RetryDelivery(t.Context(), sink, 4, operator)
	must(t, err)
	equal(t, "due", s.dueAt(t, sink), []int64{1, 4})
	for _, event := range []int64{2, 3} {
		_, err = s.Store.RetryDelivery(t.Context(), sink, event, operator)
		equal(t, "retried in another state", seckill.CodeWrongState.In(err), true)
	}
	_, err = s.Store.RetryDelivery(t.Context(), sink, 9, operator)
	equal(t, "unknown", seckill.CodeNotFound.In(err), true)
}

func retriedDeliveries(t *testing.T, s *suite) {
	sink, other := s.sink(t), s.sink(t)
	later := s.delivery(t, 4, "c", store.DeliveryRetrying)
	later.NextAt = later.NextAt.Add(24 * time.Hour)
	s.settle(t, sink, 4, s.delivery(t, 1, "a", store.DeliveryFailed), s.delivery(t, 2, "a", store.DeliveryWaiting), s.delivery(t, 3, "b", store.DeliveryFailed), later)
	s.settle(t, other, 4, s.delivery(t, 1, "a", store.DeliveryFailed))
	n, err := s.Store.RetryDeliveries(t.Context(), sink, operator)
	must(t, err)
	equal(t, "retried", n, 3)
	equal(t, "time of the retry", s.sinkState(t, sink).RetriedAt.IsZero(), false)
	equal(t, "time at another sink", s.sinkState(t, other).RetriedAt.IsZero(), true)
	equal(t, "due", s.dueAt(t, sink), []int64{1, 3, 4})
	equal(t, "due at another sink", len(s.dueAt(t, other)), 0)
	_, err = s.Store.RetryDeliveries(t.Context(), newSink(), operator)
	equal(t, "unknown sink", seckill.CodeNotFound.In(err), true)
}

func skippedDelivery(t *testing.T, s *suite) {
	sink := s.sink(t)
	failed := s.delivery(t, 1, "a", store.DeliveryFailed)
	failed.LastAt = failed.LastAt.Add(-time.Hour)
	s.settle(t, sink, 4, failed, s.delivery(t, 2, "a", store.DeliveryWaiting), s.delivery(t, 3, "b", store.DeliveryRetrying))
	term := s.sinkState(t, sink).Term
	d, err := s.Store.SkipDelivery(t.Context(), sink, 1, operator)
	must(t, err)
	equal(t, "state", d.State, store.DeliverySkipped)
	equal(t, "last try", d.LastAt, failed.LastAt)
	equal(t, "last try in the log", s.deliveries(t, store.DeliveryFilter{Sink: sink})[0].LastAt, failed.LastAt)
	equal(t, "due", s.dueAt(t, sink), []int64{2})
	equal(t, "term", s.sinkState(t, sink).Term, term)
	_, err = s.Store.SkipDelivery(t.Context(), sink, 3, operator)
	must(t, err)
	equal(t, "term after one that may be under way", s.sinkState(t, sink).Term > term, true)
	_, err = s.Store.SkipDelivery(t.Context(), sink, 1, operator)
	equal(t, "skipped again", seckill.CodeWrongState.In(err), true)
	_, err = s.Store.SkipDelivery(t.Context(), sink, 9, operator)
	equal(t, "unknown", seckill.CodeNotFound.In(err), true)
	equal(t, "states", s.states(t, sink), map[int64]store.DeliveryState{
		1: store.DeliverySkipped, 2: store.DeliveryRetrying, 3: store.DeliverySkipped,
	})
}

func skippedDeliveries(t *testing.T, s *suite) {
	sink, other := s.sink(t), s.sink(t)
	failed := s.delivery(t, 4, "c", store.DeliveryFailed)
	failed.LastAt = failed.LastAt.Add(-time.Hour)
	s.settle(t, sink, 4, s.delivery(t, 1, "a", store.DeliveryFailed), s.delivery(t, 2, "a", store.DeliveryWaiting),
		s.delivery(t, 3, "b", store.DeliveryRetrying), failed)
	s.settle(t, other, 4, s.delivery(t, 1, "a", store.DeliveryFailed))
	n, err := s.Store.SkipDeliveries(t.Context(), sink, operator)
	must(t, err)
	equal(t, "skipped", n, 2)
	equal(t, "states", s.states(t, sink), map[int64]store.DeliveryState{
		1: store.DeliverySkipped, 2: store.DeliveryRetrying, 3: store.DeliveryRetrying, 4: store.DeliverySkipped,
	})
	equal(t, "last try", s.deliveries(t, store.DeliveryFilter{Sink: sink})[3].LastAt, failed.LastAt)
	equal(t, "due", s.dueAt(t, sink), []int64{2})
	equal(t, "of another sink", s.states(t, other), map[int64]store.DeliveryState{1: store.DeliveryFailed})
	n, err = s.Store.SkipDeliveries(t.Context(), sink, operator)
	must(t, err)
	equal(t, "skipped again", n, 0)
	_, err = s.Store.SkipDeliveries(t.Context(), newSink(), operator)
	equal(t, "unknown sink", seckill.CodeNotFound.In(err), true)
}

func manyDeliveries(t *testing.T, s *suite) {
	const many = 4500 // more than two parts
	sink := s.sink(t)
	var failed []store.Delivery
	for id := range int64(many) {
		failed = append(failed, s.delivery(t, id+1, numbered("key", int(id)), store.DeliveryFailed))
	}
	for some := range slices.Chunk(failed, 500) {
		s.settle(t, sink, many, some...)
	}
	n, err := s.Store.SkipDeliveries(t.Context(), sink, operator)
	must(t, err)
	equal(t, "skipped", n, many)
	equal(t, "failed", s.sinkState(t, sink).Count[store.DeliveryFailed], 0)
	for some := range slices.Chunk(failed, 500) {
		s.settle(t, sink, many, some...)
	}
	n, err = s.Store.RetryDeliveries(t.Context(), sink, operator)
	must(t, err)
	equal(t, "retried", n, many)
	equal(t, "retrying", s.sinkState(t, sink).Count[store.DeliveryRetrying], many)
	n, err = s.Store.ForgetSink(t.Context(), sink, operator)
	must(t, err)
	equal(t, "forgotten", n, many)
}

func replayedSink(t *testing.T, s *suite) {
	sink := s.sink(t)
	s.settle(t, sink, 4, s.delivery(t, 1, "a", store.DeliveryFailed), s.delivery(t, 2, "a", store.DeliveryWaiting), s.delivery(t, 3, "b", store.DeliveryDelivered))
	term := s.sinkState(t, sink).Term
	state, err := s.Store.ReplaySink(t.Context(), sink, 1, operator)
	must(t, err)
	equal(t, "cursor", state.Cursor, 1)
	equal(t, "term", state.Term > term, true)
	equal(t, "states", s.states(t, sink), map[int64]store.DeliveryState{1: store.DeliveryFailed})
	state, err = s.Store.ReplaySink(t.Context(), sink, 100, operator)
	must(t, err)
	equal(t, "cursor is never set forward", state.Cursor, 1)
	_, err = s.Store.ReplaySink(t.Context(), newSink(), 0, operator)
	equal(t, "unknown sink", seckill.CodeNotFound.In(err), true)
}

func sweptDeliveries(t *testing.T, s *suite) {
	sink := s.sink(t)
	for id := int64(1); id <= 5; id++ {
		s.settle(t, sink, id, s.delivery(t, id, numbered("key", int(id)), store.DeliveryDelivered))
	}
	s.settle(t, sink, 6, s.delivery(t, 2, "f", store.DeliveryFailed))
	n, err := s.Store.SweepDeliveries(t.Context(), sink, 5, 2)
	must(t, err)
	equal(t, "swept within a limit", n, 2)
	n, err = s.Store.SweepDeliveries(t.Context(), sink, 5, all)
	must(t, err)
	equal(t, "swept", n, 1)
	equal(t, "states", s.states(t, sink), map[int64]store.DeliveryState{2: store.DeliveryFailed, 5: store.DeliveryDelivered})
}

func forgottenSink(t *testing.T, s *suite) {
	sink, other := s.sink(t), s.sink(t)
	for _, name := range []string{sink, other} {
		s.settle(t, name, 4, s.delivery(t, 1, "a", store.DeliveryFailed), s.delivery(t, 2, "b", store.DeliveryDelivered))
	}
	n, err := s.Store.ForgetSink(t.Context(), sink, operator)
	must(t, err)
	equal(t, "forgotten", n, 2)
	_, err = s.Store.SinkState(t.Context(), sink)
	equal(t, "state", seckill.CodeNotFound.In(err), true)
	equal(t, "deliveries", len(s.states(t, sink)), 0)
	equal(t, "of another sink", len(s.states(t, other)), 2)
	_, err = s.Store.ForgetSink(t.Context(), sink, operator)
	equal(t, "forgotten again", seckill.CodeNotFound.In(err), true)
	lines, err := s.Store.Audit(t.Context(), store.AuditFilter{Limit: 1})
	must(t, err)
	equal(t, "audit", lines[0].Action+": "+lines[0].Detail, "sink.forget: sink "+sink)
	again, err := s.Store.OpenSink(t.Context(), sink, false)
	must(t, err)
	equal(t, "cursor of a new one", again.Cursor, 0)
}

func auditedSinks(t *testing.T, s *suite) {
	sink := s.sink(t)
	s.settle(t, sink, 2, s.delivery(t, 1, "a", store.DeliveryFailed), s.delivery(t, 2, "b", store.DeliveryFailed))
	_, err := s.Store.RetryDelivery(t.Context(), sink, 1, operator)
	must(t, err)
	_, err = s.Store.RetryDeliveries(t.Context(), sink, operator)
	must(t, err)
	_, err = s.Store.SkipDelivery(t.Context(), sink, 2, operator)
	must(t, err)
	_, err = s.Store.ReplaySink(t.Context(), sink, 0, operator)
	must(t, err)
	lines, err := s.Store.Audit(t.Context(), store.AuditFilter{Limit: 4})
	must(t, err)
	var actions, details []string
	for _, line := range lines {
		actions, details = append(actions, line.Action), append(details, line.Detail)
	}
	equal(t, "actions", actions, []string{"sink.replay", "sink.skip", "sink.retry", "sink.retry"})
	equal(t, "details", details, []string{
		"sink " + sink + ", event 0", "sink " + sink + ", event 2", "sink " + sink + ", 2 deliveries", "sink " + sink + ", event 1",
	})
}
