package sink

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"seckill"
	"seckill/internal/store"
)

// replayMargin is how much earlier a replay begins than requested. Events get
// their numbers at their commit, a little after their time.
const replayMargin = time.Minute

// Info is a configured sink, without its secrets.
type Info struct {
	Name   string
	Kind   string
	Target string
}

// Admin serves the requests of operators about sinks.
type Admin struct {
	Store  AdminStore
	Source string
	// Sinks lists the configured sinks. Targets has the target of each, by
	// name.
	Sinks   []Info
	Targets map[string]Target
	Now     func() time.Time
}

// AdminStore is the part of the store that Admin uses.
type AdminStore interface {
	SenderStore
	AppendAudit(ctx context.Context, line store.AuditLine) error
}

// Report is the state of a sink. If the sink is not configured any more, Info
// has only its name.
type Report struct {
	Info
	Configured bool
	State      store.SinkState
	// Lag is the number of events that were not read from the feed yet. Oldest
	// is the age of the oldest undelivered event.
	Lag    int64
	Oldest time.Duration
}

// List reports on all sinks by name: configured ones and former ones.
func (a *Admin) List(ctx context.Context) ([]Report, error) {
	states, err := a.Store.SinkStates(ctx)
	if err != nil {
		return nil, err
	}
	reports := make([]Report, 0, len(states)+len(a.Sinks))
	for _, state := range states {
		report := Report{Info: Info{Name: state.Name}, State: state}
		var behind time.Duration
		if report.Lag, behind, err = lag(ctx, a.Store, &state); err != nil {
			return nil, err
		}
		if !state.OldestAt.IsZero() {
			report.Oldest = max(state.At.Sub(state.OldestAt), 0)
		}
		report.Oldest = max(report.Oldest, behind)
		reports = append(reports, report)
	}
	for _, info := range a.Sinks {
		at := slices.IndexFunc(reports, func(r Report) bool { return r.Name == info.Name })
		if at < 0 { // its sender has not started
			end, err := a.Store.FeedEnd(ctx)
			if err != nil {
				return nil, err
			}
			reports = append(reports, Report{State: store.SinkState{Name: info.Name}, Lag: end})
			at = len(reports) - 1
		}
		reports[at].Info, reports[at].Configured = info, true
	}
	slices.SortFunc(reports, func(a, b Report) int { return cmp.Compare(a.Name, b.Name) })
	return reports, nil
}

// Deliveries returns the delivery log of a sink.
func (a *Admin) Deliveries(ctx context.Context, filter store.DeliveryFilter) ([]store.Delivery, error) {
	if err := a.known(ctx, filter.Sink); err != nil {
		return nil, err
	}
	return a.Store.Deliveries(ctx, filter)
}

// known returns not_found for a sink that was never configured.
func (a *Admin) known(ctx context.Context, name string) error {
	if a.configured(name) {
		return nil
	}
	_, err := a.Store.SinkState(ctx, name)
	return err
}

// Event returns the event number of a message id, as the receiver sees it.
func (a *Admin) Event(ctx context.Context, sink, messageID string) (int64, error) {
	found, err := a.Deliveries(ctx, store.DeliveryFilter{Sink: sink, MessageID: messageID, Limit: 1})
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, seckill.Errorf(seckill.CodeNotFound, "sink %q has no delivery %s", sink, messageID)
	}
	return found[0].EventID, nil
}

// Retry makes one failed or retrying delivery due now.
func (a *Admin) Retry(ctx context.Context, sink string, event int64, actor store.Actor) (store.Delivery, error) {
	return a.Store.RetryDelivery(ctx, sink, event, actor)
}

// RetryAll makes all failed and retrying deliveries due now.
func (a *Admin) RetryAll(ctx context.Context, sink string, actor store.Actor) (int, error) {
	return a.Store.RetryDeliveries(ctx, sink, actor)
}

// Skip gives up one failed or retrying delivery.
func (a *Admin) Skip(ctx context.Context, sink string, event int64, actor store.Actor) (store.Delivery, error) {
	return a.Store.SkipDelivery(ctx, sink, event, actor)
}

// SkipAll gives up all failed deliveries.
func (a *Admin) SkipAll(ctx context.Context, sink string, actor store.Actor) (int, error) {
	return a.Store.SkipDeliveries(ctx, sink, actor)
}

// Replay delivers all events since a time again, and returns how many events
// the sink now has to send.
func (a *Admin) Replay(ctx context.Context, sink string, from time.Time, actor store.Actor) (int64, error) {
	state, err := a.Store.SinkState(ctx, sink)
	if err != nil {
		return 0, err
	}
	if from.After(state.At) {
		return 0, seckill.Errorf(seckill.CodeBadRequest, "from must not be in the future")
	}
	after, err := a.idBefore(ctx, from.Add(-replayMargin), state.Cursor)
	if err != nil {
		return 0, err
	}
	if state, err = a.Store.ReplaySink(ctx, sink, after, actor); err != nil {
		return 0, err
	}
	end, err := a.Store.FeedEnd(ctx)
	return max(end-state.Cursor, 0), err
}

// Forget deletes a sink that is no longer configured, and its delivery log. It
// returns how many deliveries it had.
func (a *Admin) Forget(ctx context.Context, sink string, actor store.Actor) (int, error) {
	if a.configured(sink) {
		return 0, seckill.Errorf(seckill.CodeWrongState, "sink %q is configured: remove it from the configuration of all instances first", sink)
	}
	return a.Store.ForgetSink(ctx, sink, actor)
}

func (a *Admin) configured(name string) bool {
	return slices.ContainsFunc(a.Sinks, func(i Info) bool { return i.Name == name })
}

// readPast is how many events a search reads at one position, because lists
// leave out rows that cannot be read.
const readPast = 20

// idBefore returns an id so that all events above it, up to the cursor, happened
// at or after a time. Ids grow with time, so it is a binary search.
func (a *Admin) idBefore(ctx context.Context, at time.Time, cursor int64) (int64, error) {
	low, high := int64(0), cursor
	for low < high {
		middle := low + (high-low)/2
		next, err := a.Store.Events(ctx, middle, readPast)
		if err != nil {
			return 0, err
		}
		if len(next) > 0 && next[0].ID <= cursor && next[0].At.Before(at) {
			low = next[0].ID
		} else {
			high = middle
		}
	}
	return low, nil
}

// Echo is the result of a test event.
type Echo struct {
	Status  string
	Latency time.Duration
	Err     error
}

// Test sends a test event to a sink.
func (a *Admin) Test(ctx context.Context, sink string, actor store.Actor) (Echo, error) {
	target := a.Targets[sink]
	if target == nil {
		return Echo{}, seckill.Errorf(seckill.CodeNotFound, "no sink %q is configured", sink)
	}
	line := store.AuditLine{Actor: actor.Name, Action: "sink.test", Reason: actor.Reason, Detail: "sink " + sink}
	if err := a.Store.AppendAudit(ctx, line); err != nil {
		return Echo{}, fmt.Errorf("audit: %w", err)
	}
	now := a.Now()
	data := struct {
		Sink string `json:"sink"`
		By   string `json:"by"`
	}{sink, actor.Name}
	m, err := newMessage(a.Source, idPrefix+"echo_"+strings.ToLower(rand.Text()), "echo", TypeEcho, now, data)
	if err != nil {
		return Echo{}, err
	}
	status, took, err := deliver(ctx, target, m, deliverTimeout)
	return Echo{Status: status, Latency: took, Err: err}, nil
}
