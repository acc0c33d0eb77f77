package rocketmq_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierrocket"
	"seckill/internal/client/rocketclient"
	"seckill/internal/queue"
	"seckill/internal/sink"
	"seckill/internal/sink/sinkrocket"
	"seckill/test/server"
)

// message makes a message with a body of its own.
func message(body string) carrier.Message {
	return carrier.Message{Key: "7-0", Body: fmt.Appendf(nil, `{"n":%q}`, body), Signature: "v1,c2ln"}
}

// collect receives and settles until all messages came.
func collect(ctx context.Context, t testing.TB, c carrier.Carrier, want ...carrier.Message) {
	t.Helper()
	missing := make(map[string]bool)
	for _, m := range want {
		missing[string(m.Body)] = true
	}
	for len(missing) > 0 {
		got, err := c.Receive(ctx, 32)
		if err != nil {
			t.Fatalf("receive: %v; %d of %d messages are missing", err, len(missing), len(want))
		}
		for _, d := range got {
			delete(missing, string(d.Body))
		}
		if err := c.Done(ctx, got); err != nil {
			t.Fatalf("done: %v", err)
		}
	}
}

func publish(t testing.TB, c carrier.Carrier, messages ...carrier.Message) {
	t.Helper()
	if err := c.Publish(within(t, openWithin), messages); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

// roundTrip publishes and receives a message.
func roundTrip(t testing.TB, c carrier.Carrier, body string) {
	t.Helper()
	publish(t, c, message(body))
	collect(within(t, openWithin), t, c, message(body))
}

// shut closes a carrier at the test's end.
func shut(t testing.TB, c interface {
	Close(ctx context.Context) error
}) {
	t.Cleanup(func() {
		if err := c.Close(within(t, openWithin)); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// Stories that need a broker which is well. They run side by side.
func TestStory(t *testing.T) {
	r := server.SharedRocketMQ(t)
	for name, story := range map[string]func(t *testing.T, r *server.RocketMQ){
		"Open_ReportsWhatAnOperatorHasToChange":  refusesSetup,
		"Open_ReportsMissingGroup":               missingGroup,
		"Open_TakesNoMessage":                    checkTakesNothing,
		"Receive_KeepsWhatCameAfterTheDeadline":  lateBatch,
		"Close_OfAPollingReceiverDelaysNothing":  closeWhilePolling,
		"Close_LeavesNoGoroutines":               leavesNothing,
		"Kill_MessagesComeToAnotherReceiver":     killedReceiver,
		"Console_PrintsMessageOfCodec":           console,
		"Sink_StoresEventWithProperties":         sinkStores,
		"Sink_FIFOTopicKeepsTheOrderOfAKey":      sinkOrder,
		"Delayer_RefusesWhatTheProxyWouldRefuse": delayLimit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, r)
		})
	}
}

func refusesSetup(t *testing.T, r *server.RocketMQ) {
	normal, delay := create(t, r, server.RocketMQNormal), create(t, r, server.RocketMQDelay)
	missing := normal
	missing.Topic = "no-such-topic"
	for what, c := range map[string]struct {
		opt  carrierrocket.Options
		text string
	}{
		"a missing topic":   {missing, "the topic does not exist: create it"},
		"a topic of delays": {delay, "is of type [DELAY], and [NORMAL] is needed"},
	} {
		_, err := carrierrocket.Open(within(t, openWithin), c.opt)
		if !errors.Is(err, carrier.ErrSetup) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	delayed := normal
	delayed.Delayed = true
	_, err := carrierrocket.Open(within(t, openWithin), delayed)
	if !errors.Is(err, carrier.ErrSetup) {
		t.Errorf("a delayer on a normal topic: %v", err)
	}
	// Nobody listens on port 1: that is an outage, not a wrong setup.
	away := normal
	away.Link.Endpoint = "127.0.0.1:1"
	brief := within(t, 700*time.Millisecond)
	began := time.Now()
	_, err = carrierrocket.Open(brief, away)
	if errors.Is(err, carrier.ErrSetup) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no proxy is reachable") {
		t.Errorf("nobody listens: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a deadline of 700ms took %s", took)
	}
}

func missingGroup(t *testing.T, r *server.RocketMQ) {
	opt, late := create(t, r, server.RocketMQNormal), create(t, r, server.RocketMQDelay)
	opt.Group, late.Group = "no-such-group", "no-such-group"
	_, err := carrierrocket.Open(within(t, openWithin), opt)
	if !errors.Is(err, carrier.ErrSetup) || !strings.Contains(err.Error(), "the group does not exist: create it") || !strings.Contains(err.Error(), "no-such-group") {
		t.Errorf("open: %v", err)
	}
	late.Delayed = true
	if _, err := carrierrocket.Open(within(t, openWithin), late); !errors.Is(err, carrier.ErrSetup) {
		t.Errorf("open a delayer: %v", err)
	}
	r.CreateGroup(opt.Group)
	c := open(t, opt)
	shut(t, c)
	roundTrip(t, c, "late-group")
}

// The check of the group takes no message away from receivers.
func checkTakesNothing(t *testing.T, r *server.RocketMQ) {
	opt := create(t, r, server.RocketMQNormal)
	receiver := open(t, opt)
	shut(t, receiver)
	for i := range 5 {
		publish(t, receiver, message(fmt.Sprint(i)))
		other := open(t, opt)
		ctx, cancel := context.WithTimeout(t.Context(), carrierrocket.DefaultInvisible/2)
		collect(ctx, t, receiver, message(fmt.Sprint(i)))
		cancel()
		if err := other.Close(within(t, openWithin)); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// A poll goes on after its caller has given up. What it brings is not lost until
// it comes again.
func lateBatch(t *testing.T, r *server.RocketMQ) {
	c := open(t, create(t, r, server.RocketMQNormal))
	shut(t, c)
	for range 3 {
		if _, err := c.Receive(within(t, 200*time.Millisecond), 8); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("received with %v", err)
		}
	}
	publish(t, c, message("late"))
	began := time.Now()
	collect(within(t, openWithin), t, c, message("late"))
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}

// A carrier that closes while it polls must not take a message with it.
func closeWhilePolling(t *testing.T, r *server.RocketMQ) {
	opt := create(t, r, server.RocketMQNormal)
	first, second := open(t, opt), open(t, opt)
	shut(t, second)
	if _, err := first.Receive(within(t, 500*time.Millisecond), 8); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("received with %v", err)
	}
	if err := first.Close(within(t, openWithin)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Receive(within(t, openWithin), 1); err == nil {
		t.Error("a closed carrier received")
	}
	began := time.Now()
	publish(t, second, message("after-close"))
	collect(within(t, openWithin), t, second, message("after-close"))
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %s: the closed carrier had it", took)
	}
}

func leavesNothing(t *testing.T, r *server.RocketMQ) {
	opt := create(t, r, server.RocketMQNormal)
	const carriers = 20
	var all []*carrierrocket.Carrier
	for range carriers {
		c := open(t, opt)
		_, _ = c.Receive(within(t, time.Millisecond), 1) // begins to poll
		all = append(all, c)
	}
	running := runtime.NumGoroutine()
	for _, c := range all {
		if err := c.Close(within(t, openWithin)); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	// Other stories begin and end goroutines meanwhile; a carrier has more than
	// ten.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > running-8*carriers; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before and %d after %d carriers closed", running, runtime.NumGoroutine(), carriers)
		}
	}
}

const (
	childTopic    = "SECKILL_TEST_TOPIC"
	childGroup    = "SECKILL_TEST_GROUP"
	childEndpoint = "SECKILL_TEST_ENDPOINT"
	childGot      = "child received "
)

// TestChild is a receiver in a process of its own, which is killed.
func TestChild(t *testing.T) {
	if os.Getenv(childTopic) == "" {
		t.Skip("runs within Kill_MessagesComeToAnotherReceiver")
	}
	c := open(t, killedOptions(os.Getenv(childEndpoint), os.Getenv(childTopic), os.Getenv(childGroup)))
	got, err := c.Receive(within(t, openWithin), 1)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(childGot + string(got[0].Body))
	select {} // until it is killed
}

// killedOptions have the shortest time that proxies allow.
func killedOptions(endpoint, topic, group string) carrierrocket.Options {
	return carrierrocket.Options{Link: rocketclient.Options{Endpoint: endpoint}, Topic: topic, Group: group, Invisible: 10 * time.Second, Logger: noLog}
}

func killedReceiver(t *testing.T, r *server.RocketMQ) {
	opt := create(t, r, server.RocketMQNormal)
	c := open(t, killedOptions(r.Addr(), opt.Topic, opt.Group))
	shut(t, c)
	want := message("orphan")
	publish(t, c, want)

	child := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
	child.Env = append(os.Environ(), childTopic+"="+opt.Topic, childGroup+"="+opt.Group, childEndpoint+"="+r.Addr())
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // Pdeathsig is about the thread
	defer runtime.UnlockOSThread()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	received := false
	for !received && lines.Scan() {
		received = strings.Contains(lines.Text(), childGot+string(want.Body))
	}
	if !received {
		t.Errorf("the child did not receive the message")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed

	began := time.Now()
	collect(within(t, carrier.RedeliverWithin), t, c, want)
	t.Logf("came again after %s", time.Since(began).Round(100*time.Millisecond))
}

// RocketMQ's own admin tool reads what the engine's codec wrote.
func console(t *testing.T, r *server.RocketMQ) {
	opt := create(t, r, server.RocketMQNormal)
	c := open(t, opt)
	shut(t, c)
	ring, err := auth.NewRing([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 16, 2, 0, 0, 0, time.UTC)
	codec := &carrier.Codec{Store: "store-1", Ring: ring}
	m, err := codec.Encode([]queue.Delivery{{ID: queue.ID{Stream: "b1", Seq: 7, Tag: 9}, Entry: seckill.Entry{
		ProductID: 42, Shard: 3, Epoch: 1, At: at, PriceCents: 100, Currency: "CNY", Name: "手机 Pro", Limit: 1,
		Claims: []seckill.Claim{{OrderNo: seckill.NewOrderNo(at, 42, 1), Buyer: "alice", Quantity: 1}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, c, m)
	printed := r.ConsolePrint(opt.Topic)
	for _, part := range []string{"KEYS=42-3", carrier.SignatureHeader + "=" + m.Signature, string(m.Body)} {
		if !strings.Contains(printed, part) {
			t.Errorf("%q is not in\n%s", part, printed)
		}
	}
	got, err := c.Receive(within(t, openWithin), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := codec.Decode(&got[0].Message); err != nil {
		t.Errorf("decode what came: %v", err)
	}
}

// event makes an event of an order.
func event(id, key string) *sink.Message {
	return &sink.Message{ID: id, Key: key, Type: "seckill.order.paid", Time: time.Now(), Body: fmt.Appendf(nil, `{"specversion":"1.0","id":%q}`, id)}
}

func openSink(t *testing.T, opt carrierrocket.Options) *sinkrocket.Target {
	t.Helper()
	s, err := sinkrocket.Open(within(t, openWithin), sinkrocket.Options{Link: opt.Link, Topic: opt.Topic, Logger: noLog})
	if err != nil {
		t.Fatalf("open a sink: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(within(t, openWithin)); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func sinkStores(t *testing.T, r *server.RocketMQ) {
	opt := create(t, r, server.RocketMQNormal)
	s := openSink(t, opt)
	e := event("evt-1", "SK01")
	if status, err := s.Deliver(within(t, openWithin), e); err != nil || status != "stored" {
		t.Fatalf("deliver: %q, %v", status, err)
	}
	printed := r.ConsolePrint(opt.Topic)
	for _, part := range []string{"KEYS=SK01", "webhook-id=evt-1", "content-type=application/cloudevents+json; charset=UTF-8", string(e.Body)} {
		if !strings.Contains(printed, part) {
			t.Errorf("%q is not in\n%s", part, printed)
		}
	}
	missing := opt
	missing.Topic = "no-such-topic"
	if _, err := sinkrocket.Open(within(t, openWithin), sinkrocket.Options{Link: missing.Link, Topic: missing.Topic, Logger: noLog}); !errors.Is(err, rocketclient.ErrSetup) {
		t.Errorf("a missing topic: %v", err)
	}
}

// Events of one order are in one queue of a FIFO topic, in their order.
func sinkOrder(t *testing.T, r *server.RocketMQ) {
	opt := create(t, r, "FIFO")
	s := openSink(t, opt)
	const events = 8
	for i := range events {
		if _, err := s.Deliver(within(t, openWithin), event(fmt.Sprintf("evt-%d", i), "SK01")); err != nil {
			t.Fatal(err)
		}
	}
	// The tool prints one queue after the other, each in its order.
	printed, from := r.ConsolePrint(opt.Topic), 0
	for i := range events {
		at := strings.Index(printed[from:], fmt.Sprintf("webhook-id=evt-%d", i))
		if at < 0 {
			t.Fatalf("event %d is not behind the one before in\n%s", i, printed)
		}
		from += at
	}
}

func delayLimit(t *testing.T, r *server.RocketMQ) {
	opt := create(t, r, server.RocketMQDelay)
	d := openDelayer(t, opt)
	shut(t, d)
	if err := d.PublishAt(within(t, openWithin), message("far"), time.Now().Add(carrier.MaxDelay+time.Hour)); err == nil {
		t.Error("a delay that is too long was taken")
	}
	if err := d.PublishAt(within(t, openWithin), message("near"), time.Now().Add(carrier.MaxDelay-time.Minute)); err != nil {
		t.Errorf("the longest delay: %v", err)
	}
	if err := d.PublishAt(within(t, openWithin), carrier.Message{Key: "k", Body: make([]byte, d.MaxBytes()+1)}, time.Now()); !errors.Is(err, carrier.ErrTooLarge) {
		t.Errorf("a body that is too large: %v", err)
	}
}
