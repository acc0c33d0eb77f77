//go:build !race

// The client v5.1.4 has data races of its own: it writes settings that another of
// its goroutines encodes, and replaces its meter while requests use it.

package server

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

func TestRocketMQ_KeepsMessagesUntilWiped(t *testing.T) {
	hushRocketMQ(t)
	r := NewRocketMQ(t)
	create := func() {
		r.CreateTopic("kept", RocketMQNormal)
		r.CreateTopic("later", RocketMQDelay)
		r.CreateGroup("readers")
		r.CreateGroup("others")
	}
	create()
	sendToRocketMQ(t, r, "kept", time.Time{})
	due := time.Now().Add(2 * time.Second)
	sendToRocketMQ(t, r, "later", due)
	if got := receiveFromRocketMQ(t, r, "kept", "readers"); got != "value" {
		t.Errorf("read %q", got)
	}
	if got := r.ConsolePrint("kept"); !strings.Contains(got, "value") || !strings.Contains(got, "a=1") {
		t.Errorf("the admin tool printed %q", got)
	}
	if got := receiveFromRocketMQ(t, r, "later", "readers"); got != "value" || time.Now().Before(due) {
		t.Errorf("read %q %s before its time", got, time.Until(due))
	}

	r.Kill()
	if err := dialOnce(r.Addr()); err == nil {
		t.Error("a killed broker answered")
	}
	r.Start()
	if got := receiveFromRocketMQ(t, r, "kept", "others"); got != "value" {
		t.Errorf("after a kill: read %q", got)
	}

	r.Stop()
	r.Wipe()
	r.Start()
	create()
	if got := receiveFromRocketMQ(t, r, "kept", "others"); got != "" {
		t.Errorf("after a wipe: read %q", got)
	}
	sendToRocketMQ(t, r, "kept", time.Time{})
	r.Pause()
	r.Resume()
	if got := receiveFromRocketMQ(t, r, "kept", "others"); got != "value" {
		t.Errorf("after a wipe and a pause: read %q", got)
	}
}

// hushRocketMQ has the client log nothing, and speak without TLS. By default it
// logs into the user's home folder. Its only other place is the standard output,
// which it remembers when its logger is made.
func hushRocketMQ(t *testing.T) {
	t.Helper()
	rocketHush.Do(func() {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{rocketmq.ENABLE_CONSOLE_APPENDER: "true", rocketmq.CLIENT_LOG_LEVEL: "error"} {
			if err := os.Setenv(name, value); err != nil {
				t.Fatal(err)
			}
		}
		stdout := os.Stdout
		os.Stdout = null
		rocketmq.ResetLogger()
		os.Stdout = stdout
		rocketmq.EnableSsl = false
	})
}

var rocketHush sync.Once

func rocketConfig(r *RocketMQ, group string) *rocketmq.Config {
	return &rocketmq.Config{Endpoint: r.Addr(), ConsumerGroup: group, Credentials: &credentials.SessionCredentials{}}
}

func sendToRocketMQ(t *testing.T, r *RocketMQ, topic string, due time.Time) {
	t.Helper()
	producer, err := rocketmq.NewProducer(rocketConfig(r, ""), rocketmq.WithTopics(topic))
	if err != nil {
		t.Fatal(err)
	}
	if err := producer.Start(); err != nil {
		t.Fatalf("start a producer of %s: %v", topic, err)
	}
	defer producer.GracefulStop()
	ctx, cancel := context.WithTimeout(t.Context(), brokerTestWithin)
	defer cancel()
	message := &rocketmq.Message{Topic: topic, Body: []byte("value")}
	message.AddProperty("a", "1")
	if !due.IsZero() {
		message.SetDelayTimestamp(due)
	}
	if _, err := producer.Send(ctx, message); err != nil {
		t.Fatalf("send to %s: %v", topic, err)
	}
}

// receiveFromRocketMQ is the first message of a topic for a group; "" if there is
// none.
func receiveFromRocketMQ(t *testing.T, r *RocketMQ, topic, group string) string {
	t.Helper()
	consumer, err := rocketmq.NewSimpleConsumer(rocketConfig(r, group), rocketmq.WithSimpleAwaitDuration(3*time.Second),
		rocketmq.WithSimpleSubscriptionExpressions(map[string]*rocketmq.FilterExpression{topic: rocketmq.SUB_ALL}))
	if err != nil {
		t.Fatal(err)
	}
	if err := consumer.Start(); err != nil {
		t.Fatalf("start a consumer of %s: %v", topic, err)
	}
	defer consumer.GracefulStop()
	ctx, cancel := context.WithTimeout(t.Context(), brokerTestWithin)
	defer cancel()
	// The proxy waits 5 s at least for a message.
	for range 2 {
		messages, err := consumer.Receive(ctx, 1, 20*time.Second)
		var status *rocketmq.ErrRpcStatus
		if errors.As(err, &status) && status.GetCode() == int32(v2.Code_MESSAGE_NOT_FOUND) {
			continue
		}
		if err != nil {
			t.Fatalf("read %s: %v", topic, err)
		}
		if err := consumer.Ack(ctx, messages[0]); err != nil {
			t.Fatalf("acknowledge a message of %s: %v", topic, err)
		}
		return string(messages[0].GetBody())
	}
	return ""
}
