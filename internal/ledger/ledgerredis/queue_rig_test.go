package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"seckill"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/internal/queue"
	"seckill/test/server"
)

// queueRig is a queue on its own server. It writes entries as the ledger does, without a
// ledger.
type queueRig struct {
	testing.TB
	server *server.RedisServer
	queue  *outboxQueue

	made      uint64
	published map[queue.ID]seckill.Entry
	pipeline  rueidis.Commands
}

const (
	// testSilence is longer than a busy machine delays heartbeats.
	testSilence = 2 * time.Second
	testWait    = 10 * time.Second
)

func newQueueRig(t testing.TB) *queueRig {
	r := &queueRig{TB: t, server: server.Redis(t, server.RedisOptions{})}
	r.queue = r.open().outbox()
	return r
}

func (r *queueRig) open() *Ledger {
	return opened(r.TB, Options{Place: redisclient.Place{Addrs: []string{r.server.Addr()}}, Prefix: "q:", silence: testSilence})
}

func ids(batch []queue.Delivery) (all []queue.ID) {
	for _, d := range batch {
		all = append(all, d.ID)
	}
	return all
}

func (r *queueRig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	r.Cleanup(cancel)
	return ctx
}

func (r *queueRig) check(err error, doing string) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s: %v", doing, err)
	}
}

func (r *queueRig) eventually(what string, holds func() bool) {
	r.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(testWait); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			r.Fatalf("not within %v: %s", testWait, what)
		}
	}
}

// fill adds n entries of one claim with one unit.
func (r *queueRig) fill(product uint32, n int) (ids []queue.ID) {
	r.Helper()
	for range n {
		at := time.UnixMilli(1_800_000_000_000 + int64(r.made)).UTC()
		ids = append(ids, r.publish(seckill.Entry{
			ProductID: product, Group: product, Epoch: 1, At: at, PriceCents: 1, Currency: "CNY", Name: "shoe", Limit: 1,
			Claims: []seckill.Claim{{OrderNo: seckill.NewOrderNo(at, product, r.made), Buyer: "b", Quantity: 1}},
		}))
	}
	r.flush()
	return ids
}

// publish adds an entry like the ledger's scripts.
func (r *queueRig) publish(e seckill.Entry) queue.ID {
	r.made++
	bucket := bucketOf(e.Group, e.Shard)
	id := queue.ID{Stream: streamName(bucket), Seq: r.made, Tag: 1<<63 + r.made}
	head := ledger.AppendHead(nil, &e)
	var claims []byte
	for i := range e.Claims {
		claims = ledger.AppendClaim(claims, &e.Claims[i])
	}
	product, sums := strconv.FormatUint(uint64(e.ProductID), 10), r.queue.keys.queue(bucket)
	r.send("HSET", sums, "seq", strconv.FormatUint(id.Seq, 10))
	r.send("HINCRBY", sums, "n:"+product, strconv.Itoa(len(e.Claims)))
	r.send("ZADD", r.queue.keys.open(bucket, e.ProductID), strconv.FormatUint(id.Seq, 10), entryID(id))
	r.send("XADD", r.queue.keys.out(bucket), entryID(id), "h", string(head), "l", strconv.Itoa(e.Limit),
		"c", string(claims))
	if r.published == nil {
		r.published = make(map[queue.ID]seckill.Entry)
	}
	r.published[id] = e
	return id
}

// deliveries returns a consumer's deliveries of published entries.
func (r *queueRig) deliveries(ids ...queue.ID) []queue.Delivery {
	all := make([]queue.Delivery, len(ids))
	for i, id := range ids {
		all[i] = queue.Delivery{ID: id, Entry: r.published[id]}
	}
	return all
}

// send adds a command for flush.
func (r *queueRig) send(command, key string, args ...string) {
	r.pipeline = append(r.pipeline, r.queue.client.B().Arbitrary(command).Keys(key).Args(args...).Build())
	if len(r.pipeline) >= 1000 {
		r.flush()
	}
}

func (r *queueRig) flush() {
	r.Helper()
	for _, result := range r.queue.send(r.ctx(), r.pipeline) {
		r.check(result.Error(), "publish")
	}
	r.pipeline = nil
}

func (r *queueRig) join() queue.Consumer {
	r.Helper()
	c, err := r.queue.Consumer(r.ctx(), "test")
	r.check(err, "join")
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx) // the server may be down by now
	})
	return c
}

// receive receives until it has n entries.
func (r *queueRig) receive(c queue.Consumer, n int) []queue.ID {
	r.Helper()
	var all []queue.ID
	for len(all) < n {
		batch, err := c.Receive(r.ctx(), n-len(all))
		r.check(err, "receive")
		all = append(all, ids(batch)...)
	}
	return all
}

// wantNothing expects no delivery for as long as a cold bucket may take.
func (r *queueRig) wantNothing(c queue.Consumer) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*coldEvery)
	defer cancel()
	if batch, err := c.Receive(ctx, 1000); !errors.Is(err, context.DeadlineExceeded) {
		r.Fatalf("received %d entries, %v, want nothing", len(batch), err)
	}
}

func (r *queueRig) ack(c queue.Consumer, ids []queue.ID) {
	r.Helper()
	r.check(c.Ack(r.ctx(), r.deliveries(ids...), ids[len(ids)-1]), "ack")
}

func (r *queueRig) stats(product uint32) queue.Stats {
	r.Helper()
	stats, err := r.queue.Stats(r.ctx(), product)
	r.check(err, "stats")
	return stats
}

func (r *queueRig) length(product uint32) int {
	r.Helper()
	n, err := strconv.Atoi(r.server.Must("XLEN", r.queue.keys.out(bucketOf(product, 0))))
	r.check(err, "length")
	return n
}

func (r *queueRig) wantEntries(got, want []queue.ID) {
	r.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.Fatalf("got %v\nwant %v", got, want)
	}
}
