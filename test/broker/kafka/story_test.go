package kafka_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierkafka"
	"seckill/internal/carrier/carriertest"
	"seckill/internal/client/kafkaclient"
	"seckill/internal/queue"
	"seckill/internal/sink"
	"seckill/internal/sink/sinkkafka"
	"seckill/test/loopback"
	"seckill/test/server"
)

func TestCarrier_PassesTheSuite(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	carriertest.Run(t, func(t *testing.T) carriertest.Fixture {
		opt := onTopic(t, k, 4)
		return carriertest.Fixture{Open: func(t *testing.T) carrier.Carrier {
			c, err := carrierkafka.Open(within(t, patience), opt)
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			return c
		}}
	})
}

func TestOpen_UnknownTopic(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	err := mustFail(t, options(k, newName(t)), 30*time.Second, "does not exist: create it")
	if !errors.Is(err, kafkaclient.ErrNoTopic) {
		t.Errorf("the error is %v", err)
	}
}

func TestOpen_NoBroker(t *testing.T) {
	t.Parallel()
	address, release, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	opt := carrierkafka.Options{Link: kafkaclient.Options{Brokers: []string{address}}, Topic: "any", Group: "any", Logger: noLog}
	mustFail(t, opt, time.Second, "no broker is reachable")
}

func TestOpen_CreatesTheTopicOnce(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	opt := options(k, newName(t))
	opt.Create, opt.Partitions, opt.Replicas = true, 5, 1
	var opened sync.WaitGroup
	for range 3 {
		opened.Go(func() { // as three instances that start together
			if c, err := carrierkafka.Open(within(t, patience), opt); err != nil {
				t.Errorf("open: %v", err)
			} else {
				_ = c.Close(within(t, patience))
			}
		})
	}
	opened.Wait()
	topic, err := kafkaclient.OpenTopic(within(t, patience), opt.Link, kafkaclient.TopicOptions{Name: opt.Topic}, noLog)
	if err != nil {
		t.Fatal(err)
	}
	defer topic.Close(within(t, patience))
	if partitions, err := topic.Starts(within(t, patience)); err != nil || len(partitions) != 5 {
		t.Errorf("partitions %v, %v", partitions, err)
	}
	opt.Topic, opt.Replicas = newName(t), 3
	mustFail(t, opt, 30*time.Second, "create topic")
}

// A body that does not compress takes all of the topic's limit.
func TestPublish_FollowsTheTopicsLimit(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	opt := onTopic(t, k, 1, "max.message.bytes=20000")
	c := open(t, opt)
	if most := c.MaxBytes(); most < 19_000 || most >= 20_000 {
		t.Fatalf("the largest body is %d bytes", most)
	}
	body := make([]byte, c.MaxBytes())
	if _, err := rand.Read(body); err != nil {
		t.Fatal(err)
	}
	largest := carrier.Message{Key: strings.Repeat("k", 100), Body: body, Signature: strings.Repeat("s", 200)}
	publish(t, c, []carrier.Message{largest})
	settle(t, c, collect(t, c, []carrier.Message{largest}))
	larger := largest
	larger.Body = append(body, 0)
	if err := c.Publish(within(t, patience), []carrier.Message{larger}); !errors.Is(err, carrier.ErrTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
	target := openTarget(t, k, opt.Topic)
	if _, err := target.Deliver(within(t, patience), &sink.Message{ID: "1", Key: "k", Body: larger.Body}); !errors.Is(err, kafkaclient.ErrTooLarge) {
		t.Errorf("one byte more in the sink: %v", err)
	}
}

// Committed offsets of a log that is gone are above the end of the new one.
func TestReceive_StartsAtTheEarliestIfTheOffsetIsGone(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	opt := onTopic(t, k, 1)
	commitOffset(t, opt, 500)
	c := open(t, opt)
	want := numbered("new", 10)
	publish(t, c, want)
	settle(t, c, collect(t, c, want))
	drain(t, c, opt)
}

// commitOffset commits for a group without members, as a tool does.
func commitOffset(t *testing.T, opt carrierkafka.Options, offset int64) {
	t.Helper()
	offsets := make(kadm.Offsets)
	offsets.AddOffset(opt.Topic, 0, offset, -1)
	admin := newAdmin(t, opt)
	eventually(t, "commit an offset", func() error {
		return admin.CommitAllOffsets(within(t, 5*time.Second), opt.Group, offsets)
	})
}

// newAdmin is a client as tools have one.
func newAdmin(t *testing.T, opt carrierkafka.Options) *kadm.Client {
	t.Helper()
	client, err := opt.Link.NewClient(noLog)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// With another balancer every partition would rest while a member joins.
func TestReceive_MembersKeepTheirPartitionsWhileOthersJoin(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	opt := onTopic(t, k, 4)
	working(t, open(t, opt), "joined")
	admin := newAdmin(t, opt)
	eventually(t, "the group is cooperative", func() error {
		groups, err := admin.DescribeGroups(within(t, 5*time.Second), opt.Group)
		if group := groups[opt.Group]; err == nil && group.Protocol != "cooperative-sticky" {
			err = fmt.Errorf("it is %q (%s)", group.Protocol, group.State)
		}
		return err
	})
}

func TestReceive_OnlyPublishingOwnsNoPartition(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	opt := onTopic(t, k, 4)
	sender, receiver := open(t, opt), open(t, opt)
	for i := range 3 {
		want := numbered(fmt.Sprint(i), 40)
		publish(t, sender, want)
		settle(t, receiver, collect(t, receiver, want))
	}
}

// writeZeros writes compressed batches that are small at the broker and large in
// memory, as anybody can who may write the topic.
func writeZeros(t *testing.T, opt carrierkafka.Options, batches, perBatch int) {
	t.Helper()
	const size = 12 << 20
	client, err := opt.Link.NewClient(noLog, kgo.DefaultProduceTopic(opt.Topic),
		kgo.ProducerBatchMaxBytes(2*size), kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerLinger(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	zeros := make([]byte, size/perBatch)
	for range batches {
		records := make([]*kgo.Record, perBatch)
		for i := range records {
			records[i] = &kgo.Record{Value: zeros}
		}
		if err := client.ProduceSync(within(t, patience), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// Compressed batches take no memory and little time. Each counts as one message
// that its receiver rejects.
func TestReceive_PassesCompressedBatchesUnread(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	for name, c := range map[string]struct{ partitions, before int }{
		"behind others": {1, 5}, "first of their partitions": {6, 0},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); passesCompressed(t, onTopic(t, k, c.partitions), c.before) })
	}
}

func passesCompressed(t *testing.T, opt carrierkafka.Options, before int) {
	const batches, most = 20, 2 * time.Second
	c := open(t, opt)
	publish(t, c, numbered("before", before))
	writeZeros(t, opt, batches-1, 1)
	writeZeros(t, opt, 1, 3)
	behind := numbered("behind", 20)
	publish(t, c, behind)
	var began time.Time // of the first delivery: the consumer has joined
	empty := 0
	came := map[string]bool{}
	for len(came) < len(behind) || empty < batches {
		some, err := c.Receive(within(t, patience), 100)
		if err != nil {
			t.Fatalf("receive: %v; %d of %d messages and %d of %d batches came", err, len(came), len(behind), empty, batches)
		}
		if began.IsZero() {
			began = time.Now()
		}
		for _, d := range some {
			switch {
			case len(d.Body) == 0 && d.Signature == "":
				empty++
			case bytes.HasPrefix(d.Body, []byte(`{"n":"behind`)):
				came[string(d.Body)] = true
			case !bytes.HasPrefix(d.Body, []byte(`{"n":"before`)):
				t.Errorf("a message of %d bytes came", len(d.Body))
			}
		}
		settle(t, c, some)
	}
	took := time.Since(began)
	t.Logf("%d compressed batches took %s", empty, took)
	if took > most {
		t.Errorf("%d compressed batches held other messages up for %s", batches, took)
	}
	if empty < batches { // one may come twice
		t.Errorf("%d messages without a body came for %d compressed batches", empty, batches)
	}
	drain(t, c, opt)
}

// A broker that compresses by itself would make all messages unreadable.
func TestOpen_TopicThatCompressesIsRefused(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	mustFail(t, onTopic(t, k, 1, "compression.type=zstd"), 30*time.Second, "set compression.type=producer")
	plain := onTopic(t, k, 1, "compression.type=uncompressed")
	working(t, open(t, plain), "plain")
}

// Members come and go while messages flow. Each message is settled by somebody.
func TestReceive_RebalanceLosesNothing(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	opt := onTopic(t, k, 6)
	sender := open(t, opt)
	const rounds, perRound = 30, 40
	missing := map[string]bool{}
	for i := range rounds {
		for _, m := range numbered(fmt.Sprint(i), perRound) {
			missing[string(m.Body)] = true
		}
	}
	settled := make(chan string, 2*rounds*perRound)
	work := func(ctx context.Context) {
		c, err := carrierkafka.Open(within(t, patience), opt)
		if err != nil {
			t.Errorf("open: %v", err)
			return
		}
		defer func() { _ = c.Close(within(t, patience)) }()
		for ctx.Err() == nil {
			some, err := c.Receive(ctx, 10)
			if err != nil {
				return
			}
			_ = c.Done(ctx, some)
			for _, d := range some {
				select {
				case settled <- string(d.Body):
				case <-ctx.Done():
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var members sync.WaitGroup
	members.Go(func() { work(ctx) })
	for i := range rounds {
		publish(t, sender, numbered(fmt.Sprint(i), perRound))
		if i%10 == 5 { // one more joins, and leaves after a moment
			life, end := context.WithTimeout(ctx, time.Duration(i+10)*50*time.Millisecond)
			defer end()
			members.Go(func() { work(life) })
		}
	}
	late := time.After(patience)
	for len(missing) > 0 {
		select {
		case body := <-settled:
			delete(missing, body)
		case <-late:
			t.Fatalf("%d messages came to nobody", len(missing))
		}
	}
	cancel()
	members.Wait()
	drain(t, sender, opt)
}

// victimEnv makes the test binary a receiver that is killed. It has the address
// and the topic.
const victimEnv = "SECKILL_TEST_KAFKA_VICTIM"

// takenOverWithin is when others have the messages of a dead process: after the
// session timeout of 8 s, on a busy machine. With Kafka's default of 45 s the
// rebalance would wait 20 s for the dead one.
const takenOverWithin = 15 * time.Second

// The receiver is a child process that is killed with kill -9 while it has
// messages in hand.
func TestReceive_DeadProcessLosesItsMessagesToAnother(t *testing.T) {
	t.Parallel()
	const n = 30
	if place := os.Getenv(victimEnv); place != "" {
		address, topic, _ := strings.Cut(place, " ")
		c, err := carrierkafka.Open(within(t, patience), carrierkafka.Options{
			Link: kafkaclient.Options{Brokers: []string{address}}, Topic: topic, Group: topic + ".group", Logger: noLog,
		})
		if err != nil {
			t.Fatal(err)
		}
		all := numbered("dead", n)
		settle(t, c, slices.DeleteFunc(collect(t, c, all), func(d carrier.Delivery) bool {
			return !slices.ContainsFunc(all[:n/3], func(m carrier.Message) bool { return bytes.Equal(m.Body, d.Body) })
		}))
		fmt.Println("has them")
		select {} // until it is killed
	}
	k := server.SharedKafka(t)
	opt := onTopic(t, k, 3)
	c := open(t, opt)
	want := numbered("dead", n)
	publish(t, c, want)
	victim := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=false")
	victim.Env = append(os.Environ(), victimEnv+"="+k.Addr()+" "+opt.Topic)
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = victim.Process.Kill()
	_ = victim.Wait() // killed, as was asked
	if err != nil || line != "has them\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	died := time.Now()
	consume(t, c, want[n/3:]) // the child settled the others, which may come again
	if took := time.Since(died); took > takenOverWithin {
		t.Errorf("they came after %s", took)
	}
	drain(t, c, opt)
}

func TestConsole_PrintsAMessageOfTheCodec(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	opt := onTopic(t, k, 1)
	ring, err := auth.NewRing([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	codec := carrier.Codec{Store: "store-1", Ring: ring}
	m, err := codec.Encode([]queue.Delivery{{ID: queue.ID{Stream: "s", Seq: 7, Tag: 9}, Entry: seckill.Entry{
		ProductID: 11, Shard: 2, At: time.Unix(1, 0), Name: "Phone", Currency: "CNY", Limit: 1,
		Claims: []seckill.Claim{{Buyer: "b", Quantity: 1}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, open(t, opt), []carrier.Message{m})
	want := carrier.SignatureHeader + ":" + m.Signature + "\t11-2\t" + string(m.Body) + "\n"
	if got := k.ConsoleConsume(opt.Topic, 1); got != want {
		t.Errorf("the console printed\n%s, not\n%s", got, want)
	}
	if _, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Signature, "v1,")); err != nil {
		t.Errorf("the signature is %q", m.Signature)
	}
}

func openTarget(t *testing.T, k *server.Kafka, topic string) *sinkkafka.Target {
	t.Helper()
	target, err := sinkkafka.Open(within(t, patience), sinkkafka.Options{Link: kafkaclient.Options{Brokers: []string{k.Addr()}}, Topic: topic, Logger: noLog})
	if err != nil {
		t.Fatalf("open the sink: %v", err)
	}
	t.Cleanup(func() {
		if err := target.Close(within(t, patience)); err != nil {
			t.Errorf("close the sink: %v", err)
		}
	})
	return target
}

func TestSink_StoresEventsInOrder(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	topic := onTopic(t, k, 1).Topic
	target := openTarget(t, k, topic)
	var want bytes.Buffer
	for i := range 3 {
		body, err := json.Marshal(map[string]any{"specversion": "1.0", "id": fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		m := &sink.Message{ID: fmt.Sprintf("evt_%d", i), Key: "order-1", Type: "seckill.order.paid", Time: time.Now(), Body: body}
		if status, err := target.Deliver(within(t, patience), m); err != nil || status != "stored" {
			t.Fatalf("deliver: %q, %v", status, err)
		}
		fmt.Fprintf(&want, "content-type:application/cloudevents+json; charset=UTF-8,webhook-id:%s\torder-1\t%s\n", m.ID, body)
	}
	if got := k.ConsoleConsume(topic, 3); got != want.String() {
		t.Errorf("the console printed\n%s, not\n%s", got, &want)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := target.Deliver(ended, &sink.Message{ID: "x", Key: "k", Body: []byte("{}")}); !errors.Is(err, context.Canceled) {
		t.Errorf("deliver with an ended context: %v", err)
	}
}

func TestSink_UnknownTopic(t *testing.T) {
	t.Parallel()
	k := server.SharedKafka(t)
	_, err := sinkkafka.Open(within(t, 30*time.Second), sinkkafka.Options{Link: kafkaclient.Options{Brokers: []string{k.Addr()}}, Topic: newName(t), Logger: noLog})
	if !errors.Is(err, kafkaclient.ErrNoTopic) {
		t.Errorf("open: %v", err)
	}
}
