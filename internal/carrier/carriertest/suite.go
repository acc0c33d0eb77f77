// Package carriertest is the conformance suite of carriers. An adapter passes
// all of it with a real broker.
package carriertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/internal/carrier"
)

// Fixture gives each test its own topic and group.
type Fixture struct {
	// Open opens another carrier on the same topic and group, like another
	// process. The suite closes it.
	Open func(t *testing.T) carrier.Carrier
	// OpenDelayer opens a delayer on its own topic and group. It is nil for a
	// broker without delayed messages.
	OpenDelayer func(t *testing.T) carrier.Delayer
}

// patience bounds every wait of the suite, long enough for a busy machine.
const patience = carrier.RedeliverWithin + 30*time.Second

// quiet is how long the suite waits for a message that must not come.
const quiet = 1500 * time.Millisecond

// Run runs the suite. It calls fresh once per test.
func Run(t *testing.T, fresh func(t *testing.T) Fixture) {
	stories := []struct {
		name string
		run  func(t *testing.T, f Fixture)
	}{
		{"Publish_DeliversKeyBodyAndSignature", deliversAll},
		{"Receive_NewGroupGetsTheBacklog", backlog},
		{"Receive_SharesMessagesAmongReceivers", shares},
		{"Receive_ReturnsWithItsDeadline", deadline},
		{"Done_MessageDoesNotComeAgain", doneStays},
		{"Done_OutOfOrderKeepsTheUnsettled", outOfOrder},
		{"Again_MessageComesAgainAndBlocksNoOther", again},
		{"Close_GivesBackWhatIsNotSettled", closeGivesBack},
		{"Publish_TakesMaxBytesAndRefusesMore", sizes},
		{"Ping_AnswersWhileTheBrokerDoes", ping},
	}
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) { s.run(t, fresh(t)) })
	}
	t.Run("Delayer_DeliversWhenDue", func(t *testing.T) {
		f := fresh(t)
		if f.OpenDelayer == nil {
			t.Skip("the broker has no delayed messages")
		}
		delayed(t, f)
	})
}

// open opens a carrier and closes it at the end of the test.
func open(t *testing.T, f Fixture) carrier.Carrier {
	t.Helper()
	c := f.Open(t)
	t.Cleanup(func() { shut(t, c) })
	return c
}

// closer is the common part of carriers and delayers.
type closer interface {
	Close(ctx context.Context) error
}

// shut closes c. A second call is harmless.
func shut(t *testing.T, c closer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// numbered makes n messages with several keys.
func numbered(prefix string, n int) []carrier.Message {
	messages := make([]carrier.Message, n)
	for i := range messages {
		body := fmt.Sprintf(`{"n":"%s-%d"}`, prefix, i)
		messages[i] = carrier.Message{Key: fmt.Sprintf("%d-0", i%7), Body: []byte(body), Signature: "v1,sig-" + prefix + fmt.Sprint(i)}
	}
	return messages
}

func publish(t *testing.T, c carrier.Carrier, messages []carrier.Message) {
	t.Helper()
	if err := c.Publish(within(t), messages); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

// receiver is the common part of carriers and delayers.
type receiver interface {
	Receive(ctx context.Context, max int) ([]carrier.Delivery, error)
}

// collect receives until every wanted body has come, and returns the first
// delivery of each.
func collect(t *testing.T, c receiver, want []carrier.Message) []carrier.Delivery {
	t.Helper()
	missing := make(map[string]bool, len(want))
	for _, m := range want {
		missing[string(m.Body)] = true
	}
	ctx := within(t)
	var got []carrier.Delivery
	for len(missing) > 0 {
		some, err := c.Receive(ctx, 100)
		if err != nil {
			t.Fatalf("receive: %v; %d of %d messages are missing", err, len(missing), len(want))
		}
		if len(some) > 100 {
			t.Fatalf("receive returned %d messages, more than asked for", len(some))
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

// nothing fails the test if a message comes.
func nothing(t *testing.T, c receiver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), quiet)
	defer cancel()
	if some, err := c.Receive(ctx, 100); err == nil && len(some) > 0 {
		t.Errorf("%d settled messages came again, such as %s", len(some), some[0].Body)
	}
}

func settle(t *testing.T, c interface {
	Done(ctx context.Context, deliveries []carrier.Delivery) error
}, deliveries []carrier.Delivery) {
	t.Helper()
	if err := c.Done(within(t), deliveries); err != nil {
		t.Fatalf("done: %v", err)
	}
}

func deliversAll(t *testing.T, f Fixture) {
	c := open(t, f)
	want := numbered("all", 500)
	publish(t, c, want)
	got := collect(t, c, want)
	byBody := make(map[string]carrier.Message)
	for _, m := range want {
		byBody[string(m.Body)] = m
	}
	for _, d := range got {
		m := byBody[string(d.Body)]
		if d.Key != m.Key || d.Signature != m.Signature {
			t.Fatalf("received key %q, signature %q; sent %q, %q", d.Key, d.Signature, m.Key, m.Signature)
		}
	}
	settle(t, c, got)
}

func backlog(t *testing.T, f Fixture) {
	sender := f.Open(t)
	want := numbered("old", 50)
	publish(t, sender, want)
	shut(t, sender)
	c := open(t, f)
	settle(t, c, collect(t, c, want))
}

func shares(t *testing.T, f Fixture) {
	one, two := open(t, f), open(t, f)
	want := numbered("shared", 200)
	publish(t, one, want)
	type result struct {
		bodies []string
		err    error
	}
	results, stop := make(chan result, 1000), make(chan struct{})
	done := make(chan struct{}, 2)
	for _, c := range []carrier.Carrier{one, two} {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				some, err := c.Receive(ctx, 10)
				cancel()
				if err == nil {
					err = c.Done(context.WithoutCancel(t.Context()), some)
				} else if errors.Is(err, context.DeadlineExceeded) {
					err = nil
				}
				r := result{err: err}
				for _, d := range some {
					r.bodies = append(r.bodies, string(d.Body))
				}
				if len(some) > 0 || err != nil {
					results <- r
				}
			}
		}()
	}
	missing := make(map[string]bool)
	for _, m := range want {
		missing[string(m.Body)] = true
	}
	late := time.After(patience)
	for len(missing) > 0 {
		select {
		case r := <-results:
			if r.err != nil {
				t.Errorf("receive or settle: %v", r.err)
			}
			for _, body := range r.bodies {
				delete(missing, body)
			}
		case <-late:
			t.Fatalf("%d messages came to neither receiver", len(missing))
		}
	}
	close(stop)
	<-done
	<-done
}

func deadline(t *testing.T, f Fixture) {
	c := open(t, f)
	for range 2 { // the first call may have to join
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		began := time.Now()
		some, err := c.Receive(ctx, 10)
		cancel()
		if len(some) > 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an empty topic gave %d messages and %v", len(some), err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a deadline of 300ms took %s", took)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Publish(ended, numbered("late", 1)); err == nil {
		t.Error("publish with an ended context succeeded")
	}
}

func doneStays(t *testing.T, f Fixture) {
	first := f.Open(t)
	want := numbered("done", 60)
	publish(t, first, want)
	settle(t, first, collect(t, first, want))
	shut(t, first)
	second := open(t, f)
	nothing(t, second)
}

func outOfOrder(t *testing.T, f Fixture) {
	first := f.Open(t)
	want := numbered("order", 40)
	publish(t, first, want)
	got := collect(t, first, want)
	kept := got[:5]
	settle(t, first, got[5:])
	shut(t, first)
	second := open(t, f)
	messages := make([]carrier.Message, len(kept))
	for i := range kept {
		messages[i] = kept[i].Message
	}
	settle(t, second, collect(t, second, messages))
}

func again(t *testing.T, f Fixture) {
	c := open(t, f)
	want := numbered("again", 8)
	publish(t, c, want)
	got := collect(t, c, want)
	if err := c.Again(within(t), got[:3]); err != nil {
		t.Fatalf("again: %v", err)
	}
	// Messages behind those that were given back must not wait for them.
	more := numbered("behind", 8)
	publish(t, c, more)
	settle(t, c, collect(t, c, more))
	settle(t, c, got[3:])
	back := []carrier.Message{got[0].Message, got[1].Message, got[2].Message}
	settle(t, c, collect(t, c, back))
	nothing(t, c)
}

func closeGivesBack(t *testing.T, f Fixture) {
	first := f.Open(t)
	want := numbered("close", 30)
	publish(t, first, want)
	collect(t, first, want)
	shut(t, first)
	second := open(t, f)
	settle(t, second, collect(t, second, want))
}

func sizes(t *testing.T, f Fixture) {
	c := open(t, f)
	most := c.MaxBytes()
	if most < 64<<10 {
		t.Fatalf("the largest body is %d bytes: too few for the largest entry of a ledger", most)
	}
	frame := `{"n":""}`
	largest := carrier.Message{Key: "1-0", Body: []byte(strings.Replace(frame, `""`, `"`+strings.Repeat("x", most-len(frame))+`"`, 1)), Signature: "v1,s"}
	publish(t, c, []carrier.Message{largest})
	settle(t, c, collect(t, c, []carrier.Message{largest}))

	larger := carrier.Message{Key: "1-0", Body: append(slices.Clone(largest.Body), ' '), Signature: "v1,s"}
	small := numbered("small", 1)[0]
	if err := c.Publish(within(t), []carrier.Message{small, larger}); !errors.Is(err, carrier.ErrTooLarge) {
		t.Errorf("a body of %d bytes: %v", most+1, err)
	}
	nothing(t, c)
}

func ping(t *testing.T, f Fixture) {
	c := open(t, f)
	if err := c.Ping(within(t)); err != nil {
		t.Errorf("ping: %v", err)
	}
}

func delayed(t *testing.T, f Fixture) {
	d := f.OpenDelayer(t)
	t.Cleanup(func() { shut(t, d) })
	due := time.Now().Add(3 * time.Second)
	m := numbered("due", 1)[0]
	if err := d.PublishAt(within(t), m, due); err != nil {
		t.Fatalf("publish: %v", err)
	}
	got := collect(t, d, []carrier.Message{m})
	if now := time.Now(); now.Before(due.Add(-1500*time.Millisecond)) || now.After(due.Add(10*time.Second)) {
		t.Errorf("the message came %s after it was due", now.Sub(due))
	}
	if got[0].Signature != m.Signature {
		t.Errorf("the message has signature %q", got[0].Signature)
	}
	settle(t, d, got)
	past := numbered("past", 1)[0]
	if err := d.PublishAt(within(t), past, time.Now().Add(-time.Minute)); err != nil {
		t.Fatalf("publish a message that is already due: %v", err)
	}
	settle(t, d, collect(t, d, []carrier.Message{past}))
}
