package pulsarclient

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

const patience = 20 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// command is a command of a client.
type command struct {
	kind  kind
	field map[protowire.Number]field // the last field of each number
}

func (s command) number(at protowire.Number) uint64 { return s.field[at].number }
func (s command) text(at protowire.Number) string   { return string(s.field[at].bytes) }

// fakeBroker answers like a broker without data. A test changes some answers.
type fakeBroker struct {
	t       *testing.T
	address string
	// answerFirst answers a command for the test. If it returns false, the fake
	// answers.
	answerFirst func(c *fakeConn, s command) bool

	mu    sync.Mutex
	heard []command
	conns []*fakeConn
	news  chan struct{} // closed and replaced with each command
}

// fakeConn is one connection. Only its own goroutine, or a test, writes.
type fakeConn struct {
	net.Conn
	of *fakeBroker
	mu sync.Mutex
}

// newFake starts a broker. Its answers are fixed before the first connection.
func newFake(t *testing.T, answerFirst func(c *fakeConn, s command) bool) *fakeBroker {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &fakeBroker{t: t, address: listener.Addr().String(), answerFirst: answerFirst, news: make(chan struct{})}
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			c := &fakeConn{Conn: raw, of: b}
			b.mu.Lock()
			b.conns = append(b.conns, c)
			b.mu.Unlock()
			tasks.Go(c.serve)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		b.hangUp()
		tasks.Wait()
	})
	return b
}

// hangUp closes all connections.
func (b *fakeBroker) hangUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		_ = c.Close()
	}
}

func (c *fakeConn) serve() {
	defer c.Close()
	for {
		f, err := readFrame(c, 1<<20)
		if err != nil {
			return
		}
		s := command{field: map[protowire.Number]field{}}
		_ = eachField(f.command, func(part field) {
			if part.at == 1 {
				s.kind = kind(part.number)
				return
			}
			_ = eachField(part.bytes, func(inner field) { s.field[inner.at] = inner })
		})
		c.of.mu.Lock()
		c.of.heard = append(c.of.heard, s)
		close(c.of.news)
		c.of.news = make(chan struct{})
		c.of.mu.Unlock()
		if c.of.answerFirst == nil || !c.of.answerFirst(c, s) {
			c.defaultAnswer(s)
		}
	}
}

func (c *fakeConn) say(k kind, content fields) { c.write(newFrame(k, content, 0)) }

func (c *fakeConn) write(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.Write(frame) // ignore a client that has disconnected
}

// defaultAnswer answers like a broker without partitions.
func (c *fakeConn) defaultAnswer(s command) {
	switch s.kind {
	case kindConnect:
		c.say(kindConnected, fields(nil).text(1, "fake").number(3, 1<<20))
	case kindPing:
		c.say(kindPong, nil)
	case kindPartitions:
		c.say(kindPartitionsReply, fields(nil).number(1, 0).number(2, s.number(2)))
	case kindLookup:
		c.say(kindLookupReply, fields(nil).text(1, "pulsar://"+c.of.address).number(3, lookupConnect).number(4, s.number(2)))
	case kindProducer:
		c.say(kindProducerSuccess, fields(nil).number(1, s.number(3)).text(2, "fake-1"))
	case kindSend:
		c.say(kindSendReceipt, fields(nil).number(1, s.number(1)).number(2, s.number(2)))
	case kindSubscribe:
		c.say(kindSuccess, fields(nil).number(1, s.number(5)))
	case kindCloseConsumer, kindCloseProducer:
		c.say(kindSuccess, fields(nil).number(1, s.number(2)))
	case kindAck:
		c.say(kindAckResponse, fields(nil).number(1, s.number(1)).number(6, s.number(8)))
	}
}

// deliver sends a message to a consumer.
func (c *fakeConn) deliver(consumer uint64, id MessageID, payload []byte) {
	c.write(append(newFrame(kindMessage, fields(nil).number(1, consumer).bytes(2, id.encoded()), len(payload)), payload...))
}

// await waits for the nth command of a kind.
func (b *fakeBroker) await(k kind, nth int) command {
	b.t.Helper()
	late := time.After(patience)
	for {
		b.mu.Lock()
		news, seen := b.news, 0
		for _, s := range b.heard {
			if s.kind == k {
				if seen++; seen == nth {
					b.mu.Unlock()
					return s
				}
			}
		}
		b.mu.Unlock()
		select {
		case <-news:
		case <-late:
			b.t.Fatalf("command %d came %d times, not %d", k, seen, nth)
		}
	}
}

// newTestClient makes a client and closes it with all connections at the end of
// the test.
func newTestClient(t *testing.T, opt Options) *Client {
	t.Helper()
	c := opt.NewClient(slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := c.Close(within(t)); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// openTestTopic opens a topic and closes it at the end of the test.
func openTestTopic(t *testing.T, c *Client) *Topic {
	t.Helper()
	topic, err := c.OpenTopic(within(t), "topic")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := topic.Close(within(t)); err != nil {
			t.Errorf("close the topic: %v", err)
		}
	})
	return topic
}
