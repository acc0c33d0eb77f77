package rocketmq_test

import (
	"context"
	"fmt"
	"testing"

	"seckill/internal/carrier"
)

// message makes a message with a body of its own.
func message(body string) carrier.Message {
	return carrier.Message{Key: "7-0", Body: []byte(fmt.Sprintf(`{"n":%q}`, body)), Signature: "v1,c2ln"}
}

// collect receives and settles until all bodies came.
func collect(t testing.TB, ctx context.Context, c carrier.Carrier, want ...carrier.Message) {
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

// roundTrip publishes and receives a message.
func roundTrip(t testing.TB, c carrier.Carrier, body string) {
	t.Helper()
	ctx := within(t, openWithin)
	if err := c.Publish(ctx, []carrier.Message{message(body)}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	collect(t, ctx, c, message(body))
}
