package kafkaclient

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/semaphore"
)

// frozen is the address of a broker that accepts connections and never answers.
func frozen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// killed is an address without a listener.
func killed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// opened is a topic whose broker was well when it was opened.
func opened(t *testing.T, address string) *Topic {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	topic := &Topic{
		link: Options{Brokers: []string{address}}, opt: TopicOptions{Name: "topic"}, log: log,
		room: semaphore.NewWeighted(unsentBytes), checkNow: make(chan struct{}, 1),
	}
	topic.ctx, topic.cancel = context.WithCancel(context.Background())
	admin, err := topic.link.NewClient(log, kgo.RequestRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	topic.admin = kadm.NewClient(admin)
	if err := topic.replaceWriter(description{maxBatch: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = topic.Close(ctx) // a frozen broker keeps its connections open
	})
	return topic
}

func write(t *testing.T, topic *Topic, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return topic.Write(ctx, []*kgo.Record{{Value: []byte("x")}})
}

func TestWrite_ReportsWhyTheBrokerDidNotStore(t *testing.T) {
	for name, c := range map[string]struct {
		address string
		looked  bool
		want    string
	}{
		"killed":            {killed(t), true, "kafka: no broker is reachable: "},
		"frozen":            {frozen(t), true, "kafka: the broker does not answer: "},
		"frozen, not asked": {frozen(t), false, "kafka: the broker did not store the records in time: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := opened(t, c.address)
			if c.looked {
				topic.lastError.Store(topic.refresh())
			}
			err := write(t, topic, 200*time.Millisecond)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error: %v", err)
			}
		})
	}
}

// When the topic was created again, the writer is replaced. Waiting writes
// continue with the new one.
func TestWrite_ContinuesWithANewWriter(t *testing.T) {
	topic := opened(t, frozen(t))
	result := make(chan error, 1)
	go func() { result <- write(t, topic, 2*time.Second) }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for topic.writer.Load().client.BufferedProduceRecords() == 0 {
		<-tick.C
	}
	if err := topic.replaceWriter(description{maxBatch: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the write ended with: %v", err)
	}
}

func TestWrite_AfterClose(t *testing.T) {
	topic := opened(t, frozen(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = topic.Close(ctx) // a frozen broker keeps its connections open
	if err := write(t, topic, time.Second); !errors.Is(err, errClosed) {
		t.Errorf("the write ended with: %v", err)
	}
}

func TestExplain_NamesTheMissingTopic(t *testing.T) {
	err := opened(t, killed(t)).explain(ErrNoTopic)
	if !errors.Is(err, ErrNoTopic) || err.Error() != "kafka: topic topic does not exist: create it, or set kafka.create_topic" {
		t.Errorf("error: %v", err)
	}
}

// One broker cannot test this: a topic with one replica accepts records with
// any min.insync.replicas.
func TestWriter_WaitsForAllInSyncReplicasWithoutDuplicates(t *testing.T) {
	client := opened(t, killed(t)).writer.Load().client
	if acks := client.OptValue(kgo.RequiredAcks); acks != kgo.AllISRAcks() {
		t.Errorf("the required acks are %v", acks)
	}
	if disabled := client.OptValue(kgo.DisableIdempotentWrite); disabled != false {
		t.Errorf("idempotent writes are off: %v", disabled)
	}
}
