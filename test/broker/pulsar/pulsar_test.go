// Package pulsar_test holds the Pulsar adapters to a real broker. Tests that stop
// the broker run first, one after the other. All others share it in parallel.
package pulsar_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierpulsar"
	"seckill/internal/client/pulsarclient"
	"seckill/test/server"
)

// noLog logs nothing.
var noLog = slog.New(slog.DiscardHandler)

const (
	// patience bounds what a test waits for. A loaded machine is no failure.
	patience = carrier.RedeliverWithin + 30*time.Second
	// grace is what a call may take beyond its deadline on a loaded machine.
	grace = 2 * time.Second
	// pollEvery is how often a test looks again.
	pollEvery = 50 * time.Millisecond
	// quiet is how long a test waits for a message that must not come.
	quiet = 1500 * time.Millisecond
)

// within is a context of a test's own.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

var names atomic.Int64

// newName is a topic that no other test has.
func newName(t testing.TB) string {
	return fmt.Sprintf("%s.%d", strings.ReplaceAll(t.Name(), "/", "."), names.Add(1))
}

// options are those of a carrier on a broker.
func options(p *server.Pulsar, topic string) carrierpulsar.Options {
	return carrierpulsar.Options{Link: pulsarclient.Options{Addresses: []string{p.Addr()}}, Topic: topic, Group: topic + ".group", Logger: noLog}
}

// onTopic are options for a topic of the test's own. Without partitions, the
// broker creates it at its first use.
func onTopic(t testing.TB, p *server.Pulsar, partitions int) carrierpulsar.Options {
	t.Helper()
	opt := options(p, newName(t))
	if partitions > 0 {
		p.CreateTopic(opt.Topic, partitions)
	}
	return opt
}

// open opens a carrier that the test's end closes.
func open(t testing.TB, opt carrierpulsar.Options) *carrierpulsar.Carrier {
	t.Helper()
	c, err := carrierpulsar.Open(within(t, patience), opt)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(within(t, 10*time.Second)) })
	return c
}

// numbered makes n messages over some keys.
func numbered(prefix string, n int) []carrier.Message {
	messages := make([]carrier.Message, n)
	for i := range messages {
		messages[i] = carrier.Message{Key: fmt.Sprintf("%d-0", i%7), Body: fmt.Appendf(nil, `{"n":"%s-%d"}`, prefix, i), Signature: "v1,s"}
	}
	return messages
}

func publish(t testing.TB, c carrier.Carrier, messages []carrier.Message) {
	t.Helper()
	if err := c.Publish(within(t, patience), messages); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

// republish publishes until it succeeds, as the relay does.
func republish(t testing.TB, c carrier.Carrier, messages []carrier.Message) {
	t.Helper()
	eventually(t, "publish", func() error { return c.Publish(within(t, 5*time.Second), messages) })
}

// eventually tries until there is no error.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	late := time.After(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
	}
}

// receiver is what carriers and delayers share.
type receiver interface {
	Receive(ctx context.Context, most int) ([]carrier.Delivery, error)
	Done(ctx context.Context, deliveries []carrier.Delivery) error
}

// collect receives until every message of want came, and returns the first
// delivery of each. It settles nothing.
func collect(t testing.TB, c receiver, want []carrier.Message) []carrier.Delivery {
	t.Helper()
	missing := make(map[string]bool, len(want))
	for _, m := range want {
		missing[string(m.Body)] = true
	}
	ctx := within(t, patience)
	var got []carrier.Delivery
	for len(missing) > 0 {
		some, err := c.Receive(ctx, 100)
		if err != nil {
			t.Fatalf("receive: %v; %d of %d messages are missing", err, len(missing), len(want))
		}
		for _, d := range some {
			if missing[string(d.Body)] {
				delete(missing, string(d.Body))
				got = append(got, d)
			}
		}
	}
	return got
}

func settle(t testing.TB, c receiver, deliveries []carrier.Delivery) {
	t.Helper()
	if err := c.Done(within(t, patience), deliveries); err != nil {
		t.Fatalf("done: %v", err)
	}
}

// consume receives until every message of want came, and settles all that comes,
// repeated ones too. What cannot be settled comes again.
func consume(t testing.TB, c receiver, want []carrier.Message) {
	t.Helper()
	missing := make(map[string]bool, len(want))
	for _, m := range want {
		missing[string(m.Body)] = true
	}
	for ctx := within(t, patience); len(missing) > 0; {
		some, err := c.Receive(ctx, 100)
		if err != nil {
			t.Fatalf("receive: %v; %d of %d messages are missing", err, len(missing), len(want))
		}
		if err := c.Done(within(t, 5*time.Second), some); err != nil {
			t.Logf("done: %v", err)
			continue
		}
		for _, d := range some {
			delete(missing, string(d.Body))
		}
	}
}

// nothing fails if a message comes while it waits.
func nothing(t testing.TB, c receiver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), quiet)
	defer cancel()
	if some, err := c.Receive(ctx, 100); err == nil {
		t.Errorf("%d messages came, such as %s", len(some), some[0].Body)
	}
}

// fails makes all calls that need the broker. Each must return an error within
// its deadline.
func fails(t testing.TB, c carrier.Carrier, inHand []carrier.Delivery) {
	t.Helper()
	const deadline = 700 * time.Millisecond
	calls := map[string]func(context.Context) error{
		"publish": func(ctx context.Context) error { return c.Publish(ctx, numbered("lost", 3)) },
		"ping":    c.Ping,
		"receive": func(ctx context.Context) error { _, err := c.Receive(ctx, 10); return err },
		"done":    func(ctx context.Context) error { return c.Done(ctx, inHand) },
	}
	type result struct {
		name string
		took time.Duration
		err  error
	}
	results := make(chan result, len(calls))
	for name, call := range calls {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			defer cancel()
			began := time.Now()
			err := call(ctx)
			results <- result{name, time.Since(began), err}
		}()
	}
	late := time.After(patience)
	for range calls {
		select {
		case r := <-results:
			if r.err == nil {
				t.Errorf("%s: succeeded without a broker", r.name)
			}
			if r.took > deadline+grace {
				t.Errorf("%s: took %s with a deadline of %s", r.name, r.took, deadline)
			}
		case <-late:
			t.Fatal("a call hangs without a broker")
		}
	}
}

// mustFail opens a carrier that cannot be opened, and wants a text in its error.
func mustFail(t testing.TB, opt carrierpulsar.Options, deadline time.Duration, text string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	began := time.Now()
	c, err := carrierpulsar.Open(ctx, opt)
	if err == nil {
		t.Errorf("open succeeded, want %q", text)
		_ = c.Close(within(t, 10*time.Second))
		return errors.New("opened")
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("open: %v; want %q", err, text)
	}
	if took := time.Since(began); took > deadline+grace {
		t.Errorf("open took %s with a deadline of %s", took, deadline)
	}
	return err
}
