package pulsar_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierpulsar"
	"seckill/internal/carrier/carriertest"
	"seckill/internal/client/pulsarclient"
	"seckill/internal/queue"
	"seckill/internal/sink"
	"seckill/internal/sink/sinkpulsar"
	"seckill/test/loopback"
	"seckill/test/server"
)

func TestCarrier_PassesTheSuite(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	for name, partitions := range map[string]int{"Unpartitioned": 0, "Partitioned": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			carriertest.Run(t, func(t *testing.T) carriertest.Fixture { return fixture(t, p, partitions) })
		})
	}
}

func fixture(t *testing.T, p *server.Pulsar, partitions int) carriertest.Fixture {
	opt, delayed := onTopic(t, p, partitions), onTopic(t, p, partitions)
	return carriertest.Fixture{
		Open: func(t *testing.T) carrier.Carrier {
			c, err := carrierpulsar.Open(within(t, patience), opt)
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			return c
		},
		OpenDelayer: func(t *testing.T) carrier.Delayer {
			d, err := carrierpulsar.Open(within(t, patience), delayed)
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			return d
		},
	}
}

func TestOpen_NoBroker(t *testing.T) {
	t.Parallel()
	address, release, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	opt := carrierpulsar.Options{Link: pulsarclient.Options{Addresses: []string{address}}, Topic: "any", Group: "any", Logger: noLog}
	if err := mustFail(t, opt, time.Second, "no broker is reachable"); errors.Is(err, carrier.ErrSetup) {
		t.Errorf("a broker that is away is no wrong setup: %v", err)
	}
}

func TestOpen_OneOfSeveralAddressesIsEnough(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	dead, release, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	opt := onTopic(t, p, 0)
	opt.Link.Addresses = []string{dead, p.Addr()}
	working(t, open(t, opt), "any")
}

func TestOpen_WrongSetup(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	refused := func(name, text string, opt carrierpulsar.Options) {
		t.Helper()
		if err := mustFail(t, opt, 30*time.Second, text); !errors.Is(err, carrier.ErrSetup) {
			t.Errorf("%s: the error is no wrong setup: %v", name, err)
		}
	}
	used := onTopic(t, p, 0)
	newRawWriter(t, p, used.Topic).share(used.Topic, used.Group)
	refused("a subscription of another type", "with another type", used)
}

// A body that does not compress takes all of the broker's limit.
func TestPublish_TakesBodiesThatDoNotCompress(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	opt := onTopic(t, p, 0)
	c := open(t, opt)
	if most := c.MaxBytes(); most < 5<<20-64<<10 || most >= 5<<20 {
		t.Fatalf("the largest body is %d bytes", most)
	}
	body := make([]byte, c.MaxBytes())
	if _, err := rand.Read(body); err != nil {
		t.Fatal(err)
	}
	largest := carrier.Message{Key: strings.Repeat("k", 100), Body: body, Signature: strings.Repeat("s", 200)}
	publish(t, c, []carrier.Message{largest, largest})
	settle(t, c, collect(t, c, []carrier.Message{largest}))
	delayer := open(t, onTopic(t, p, 0))
	if err := delayer.PublishAt(within(t, patience), largest, time.Now().Add(time.Second)); err != nil {
		t.Errorf("publish with a delay: %v", err)
	}
	settle(t, delayer, collect(t, delayer, []carrier.Message{largest}))
	larger := largest
	larger.Body = append(body, 0)
	if err := delayer.PublishAt(within(t, patience), larger, time.Now()); !errors.Is(err, carrier.ErrTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
	target := openTarget(t, p, opt.Topic)
	if _, err := target.Deliver(within(t, patience), &sink.Message{ID: "1", Key: "k", Body: larger.Body}); !errors.Is(err, pulsarclient.ErrTooLarge) {
		t.Errorf("one byte more in the sink: %v", err)
	}
}

func TestReceive_OnlyPublishingGetsNoMessage(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	opt := onTopic(t, p, 4)
	sender, receiver := open(t, opt), open(t, opt)
	for i := range 3 {
		want := numbered(fmt.Sprint(i), 40)
		publish(t, sender, want)
		settle(t, receiver, collect(t, receiver, want))
	}
}

func TestAgain_RepeatsNoOther(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	c := open(t, onTopic(t, p, 0))
	want := numbered("one key", 6)
	for i := range want {
		want[i].Key = "1-0"
	}
	publish(t, c, want)
	got := collect(t, c, want)
	settle(t, c, got[:2])
	if err := c.Again(within(t, patience), got[2:3]); err != nil {
		t.Fatal(err)
	}
	some, err := c.Receive(within(t, patience), 100)
	if err != nil || len(some) != 1 || string(some[0].Body) != string(got[2].Body) {
		t.Fatalf("%d messages came again, %v", len(some), err)
	}
	nothing(t, c)
	settle(t, c, append(some, got[3:]...))
}

// Members come and go while messages flow. Each message is settled by somebody.
func TestReceive_MembersThatComeAndGoLoseNothing(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	opt := onTopic(t, p, 2)
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
		c, err := carrierpulsar.Open(within(t, patience), opt)
		if err != nil {
			t.Errorf("open: %v", err)
			return
		}
		defer func() { _ = c.Close(within(t, patience)) }()
		for ctx.Err() == nil {
			some, err := c.Receive(ctx, 10)
			if err != nil || c.Done(within(t, patience), some) != nil {
				continue
			}
			for _, d := range some {
				settled <- string(d.Body) // has room for every message to come twice
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
	nothing(t, sender)
}

// victimEnv makes the test binary a receiver that is killed. It has the address
// and the topic.
const victimEnv = "SECKILL_TEST_PULSAR_VICTIM"

// The receiver is a child process that is killed with kill -9 while it has
// messages in hand.
func TestReceive_DeadProcessLosesItsMessagesToAnother(t *testing.T) {
	t.Parallel()
	const n = 30
	if place := os.Getenv(victimEnv); place != "" {
		address, topic, _ := strings.Cut(place, " ")
		c, err := carrierpulsar.Open(within(t, patience), carrierpulsar.Options{
			Link: pulsarclient.Options{Addresses: []string{address}}, Topic: topic, Group: topic + ".group", Logger: noLog,
		})
		if err != nil {
			t.Fatal(err)
		}
		settle(t, c, collect(t, c, numbered("dead", n))[:n/3])
		fmt.Println("has them")
		select {} // until it is killed
	}
	p := server.SharedPulsar(t)
	opt := onTopic(t, p, 3)
	c := open(t, opt)
	publish(t, c, numbered("dead", n))
	victim := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=false")
	victim.Env = append(os.Environ(), victimEnv+"="+p.Addr()+" "+opt.Topic)
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
	seen := map[string]bool{}
	for ctx := within(t, patience); len(seen) < n-n/3; {
		some, err := c.Receive(ctx, 100)
		if err != nil {
			t.Fatalf("receive: %v; %d messages came", err, len(seen))
		}
		settle(t, c, some)
		for _, d := range some {
			seen[string(d.Body)] = true
		}
	}
	if took := time.Since(died); took > carrier.RedeliverWithin {
		t.Errorf("they came after %s", took)
	}
	nothing(t, c) // what the child settled is settled
}

// Pulsar's console consumer is not among the broker's jars. Its WebSocket
// service reads with the same Java client.
func TestJavaClient_ReadsAMessageOfTheCodec(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	opt := onTopic(t, p, 0)
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
	publish(t, open(t, opt), []carrier.Message{m, m})
	for _, got := range p.ReadTopic(opt.Topic, 2) {
		if got.Key != "11-2" || got.Properties[carrier.SignatureHeader] != m.Signature || !bytes.Equal(got.Payload, m.Body) {
			t.Errorf("Java read key %q, properties %v, body %s", got.Key, got.Properties, got.Payload)
		}
	}
}

func openTarget(t *testing.T, p *server.Pulsar, topic string) *sinkpulsar.Target {
	t.Helper()
	target, err := sinkpulsar.Open(within(t, patience), sinkpulsar.Options{Link: pulsarclient.Options{Addresses: []string{p.Addr()}}, Topic: topic, Logger: noLog})
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
	p := server.SharedPulsar(t)
	topic := newName(t)
	target := openTarget(t, p, topic)
	var want []sink.Message
	for i := range 3 {
		body, err := json.Marshal(map[string]any{"specversion": "1.0", "id": fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		m := sink.Message{ID: fmt.Sprintf("evt_%d", i), Key: "order-1", Type: "seckill.order.paid", Time: time.Now(), Body: body}
		if status, err := target.Deliver(within(t, patience), &m); err != nil || status != "stored" {
			t.Fatalf("deliver: %q, %v", status, err)
		}
		want = append(want, m)
	}
	for i, got := range p.ReadTopic(topic, 3) {
		if got.Key != "order-1" || got.Properties["webhook-id"] != want[i].ID || !bytes.Equal(got.Payload, want[i].Body) ||
			got.Properties["content-type"] != "application/cloudevents+json; charset=UTF-8" {
			t.Errorf("Java read %s: key %q, properties %v, body %s", want[i].ID, got.Key, got.Properties, got.Payload)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := target.Deliver(ended, &sink.Message{ID: "x", Key: "k", Body: []byte("{}")}); !errors.Is(err, context.Canceled) {
		t.Errorf("deliver with an ended context: %v", err)
	}
}
