package rocketmq_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierrocket"
	"seckill/test/server"
)

// callFor is the deadline of calls to a broker that does not answer. A call may
// take callSlack longer on a loaded machine.
const (
	callFor   = time.Second
	callSlack = 3 * time.Second
)

// insist calls until there is no error.
func insist(t testing.TB, what string, call func(ctx context.Context) error) {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := call(ctx)
		cancel()
		if err == nil {
			t.Logf("%s after %s", what, time.Since(began).Round(100*time.Millisecond))
			return
		}
		if time.Since(began) > openWithin {
			t.Fatalf("%s: %v", what, err)
		}
		<-tick.C
	}
}

// fails has each call return an error within its deadline.
func fails(t *testing.T, c, d *carrierrocket.Carrier, held []carrier.Delivery) {
	t.Helper()
	var calls sync.WaitGroup
	for what, call := range map[string]func(ctx context.Context) error{
		"publish": func(ctx context.Context) error { return c.Publish(ctx, []carrier.Message{message("lost")}) },
		"receive": func(ctx context.Context) error { _, err := c.Receive(ctx, 1); return err },
		"done":    func(ctx context.Context) error { return c.Done(ctx, held) },
		"again":   func(ctx context.Context) error { return c.Again(ctx, held) },
		"ping":    c.Ping,
		"delay":   func(ctx context.Context) error { return d.PublishAt(ctx, message("lost"), time.Now()) },
	} {
		calls.Go(func() {
			began := time.Now()
			if err := call(within(t, callFor)); err == nil {
				t.Errorf("%s succeeded without a broker", what)
			}
			if took := time.Since(began); took > callFor+callSlack {
				t.Errorf("%s with a deadline of %s took %s", what, callFor, took)
			}
		})
	}
	calls.Wait()
}

// published sends messages that must come, whatever the broker did before.
func published(t *testing.T, c carrier.Carrier, prefix string) []carrier.Message {
	t.Helper()
	all := make([]carrier.Message, 20)
	for i := range all {
		all[i] = message(fmt.Sprintf("%s-%d", prefix, i))
	}
	insist(t, "published "+prefix, func(ctx context.Context) error { return c.Publish(ctx, all) })
	return all
}

func TestFault_CarrierOutlivesTheBroker(t *testing.T) {
	r := server.SharedRocketMQ(t)
	opt, late := create(t, r, server.RocketMQNormal), create(t, r, server.RocketMQDelay)
	c, d := open(t, opt), openDelayer(t, late)
	shut(t, c)
	shut(t, d)

	kept := published(t, c, "before-kill")
	first := published(t, c, "held")
	held := receive(t, c, 1)
	if err := d.PublishAt(within(t, openWithin), message("delayed"), time.Now().Add(2*time.Second)); err != nil {
		t.Fatal(err)
	}
	r.Kill()
	fails(t, c, d, held)
	r.Start()
	all := append(append(kept, first...), published(t, c, "after-kill")...)
	missing := bodies(all)
	delete(missing, string(held[0].Body)) // it is with this receiver until its time is over
	drain(t, c, missing)
	insist(t, "delayed message came", func(ctx context.Context) error {
		got, err := d.Receive(ctx, 1)
		if err == nil {
			err = d.Done(ctx, got)
		}
		return err
	})

	r.Pause()
	fails(t, c, d, held) // while sessions seem to be well
	fails(t, c, d, held)
	r.Resume()
	drain(t, c, bodies(published(t, c, "after-pause")))

	r.Kill()
	r.Wipe()
	r.Start()
	// The topics are gone until an operator creates them.
	if err := c.Publish(within(t, 5*time.Second), []carrier.Message{message("lost")}); err == nil {
		t.Error("published to a topic that is gone")
	}
	if _, err := c.Receive(within(t, 5*time.Second), 1); err == nil {
		t.Error("received from a topic that is gone")
	}
	r.CreateTopic(opt.Topic, server.RocketMQNormal)
	r.CreateGroup(opt.Group)
	r.CreateTopic(late.Topic, server.RocketMQDelay)
	r.CreateGroup(late.Group)
	drain(t, c, bodies(published(t, c, "after-wipe")))
	insist(t, "delayed after the wipe", func(ctx context.Context) error { return d.PublishAt(ctx, message("due"), time.Now()) })
	insist(t, "delayed message came after the wipe", func(ctx context.Context) error { _, err := d.Receive(ctx, 1); return err })
	if err := c.Done(within(t, openWithin), held); err != nil && errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("settle what the lost broker had given: %v", err)
	}
}

// receive takes some messages and settles none.
func receive(t *testing.T, c carrier.Carrier, most int) []carrier.Delivery {
	t.Helper()
	got, err := c.Receive(within(t, openWithin), most)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return got
}

func bodies(messages []carrier.Message) map[string]bool {
	all := make(map[string]bool)
	for _, m := range messages {
		all[string(m.Body)] = true
	}
	return all
}

// drain receives and settles until nothing is missing. Errors are tried again.
func drain(t *testing.T, c carrier.Carrier, missing map[string]bool) {
	t.Helper()
	insist(t, fmt.Sprintf("received %d messages", len(missing)), func(context.Context) error {
		for len(missing) > 0 {
			got, err := c.Receive(within(t, openWithin), 32)
			if err != nil {
				return fmt.Errorf("%w; %d are missing", err, len(missing))
			}
			for _, d := range got {
				delete(missing, string(d.Body))
			}
			if err := c.Done(within(t, openWithin), got); err != nil {
				return err
			}
		}
		return nil
	})
}
