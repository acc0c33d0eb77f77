package ledgerredis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/internal/queue"
	"seckill/test/server"
)

const (
	callTimeout = 10 * time.Second
	pollStep    = 2 * time.Millisecond
)

// opened returns a ledger that is shut down at the end of the test.
func opened(t testing.TB, opt Options) *Ledger {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	l, err := Open(ctx, opt)
	// A connection may take dialTimeout, which is short on a busy machine. The program retries
	// too.
	for errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		l, err = Open(ctx, opt)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		if err := l.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return l
}

// rig is one process on one open shard. The story chooses its numbers.
type rig struct {
	testing.TB
	ledger  *Ledger
	shard   ledger.Shard
	process ledger.ProcessID
	made    uint64
}

// join adds a consumer to a rig's queue.
func (r *rig) join() queue.Consumer {
	r.Helper()
	c, err := r.ledger.Queue().Consumer(r.ctx(), "worker")
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.Close(r.ctx()) })
	return c
}

// newRig opens a sale of 10 units, 5 per buyer.
func newRig(t testing.TB, l *Ledger) *rig {
	t.Helper()
	return newRigOf(t, l, 1)
}

func newRigOf(t testing.TB, l *Ledger, product uint32) *rig {
	t.Helper()
	r := &rig{TB: t, ledger: l, shard: ledger.Shard{Product: product, Group: product, Epoch: 1}}
	_, _ = rand.Read(r.process[:])
	if _, err := l.Install(r.ctx(), ledger.Allotment{Shard: r.shard, Available: 10, Limit: 5}, nil); err != nil {
		t.Fatal(err)
	}
	if ok, err := l.Open(r.ctx(), r.shard); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return r
}

// standalone returns a rig on its own server, and the network between them.
func standalone(t testing.TB, opt server.RedisOptions) (*rig, *server.RedisServer, *server.NetProxy) {
	t.Helper()
	s := server.Redis(t, opt)
	proxy := server.Proxy(t, s.Addr())
	return newRig(t, opened(t, Options{Place: redisclient.Place{Addrs: []string{s.Addr()}}})), s, proxy
}

func (r *rig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	r.Cleanup(cancel)
	return ctx
}

func (r *rig) claim(buyer string, key string) seckill.Claim {
	r.made++
	return seckill.Claim{OrderNo: seckill.NewOrderNo(time.UnixMilli(1_800_000_000_000), r.shard.Product, r.made), Buyer: buyer, Quantity: 1, Key: key}
}

func reserve(claims ...seckill.Claim) ledger.Reserve {
	return ledger.Reserve{At: time.UnixMilli(1_800_000_000_000), PriceCents: 1, Currency: "CNY", Name: "shoe", Claims: claims}
}

func (r *rig) request(number, seen uint64, w ledger.Write) ledger.Request {
	return ledger.Request{Shard: r.shard, Call: ledger.Call{Process: r.process, Number: number, Seen: seen}, Write: w}
}

// expect sends a call with these numbers on a good connection, and expects the outcome.
func (r *rig) expect(want ledger.Outcome, number, seen uint64, w ledger.Write) ledger.Reply {
	r.Helper()
	reply, err := r.ledger.Do(r.ctx(), r.request(number, seen, w))
	if err != nil || reply.Outcome != want {
		r.Fatalf("number %d, seen %d: outcome %d, want %d: %v", number, seen, reply.Outcome, want, err)
	}
	return reply
}

// callResult is the result of a call that was sent with sendLater.
type callResult struct {
	reply ledger.Reply
	err   error
}

// sendLater sends a call through another client, and does not wait for its result.
func (r *rig) sendLater(by *Ledger, ctx context.Context, number, seen uint64, w ledger.Write) <-chan callResult {
	landed := make(chan callResult, 1)
	req := r.request(number, seen, w)
	go func() {
		reply, err := by.Do(ctx, req)
		landed <- callResult{reply, err}
	}()
	return landed
}

func (r *rig) figures() ledger.Figures {
	r.Helper()
	figures, err := r.ledger.Read(r.ctx(), r.shard)
	if err != nil {
		r.Fatal(err)
	}
	return figures
}

// wantSold expects so many sold units, and that the shard balances.
func (r *rig) wantSold(units int64) {
	r.Helper()
	if f := r.figures(); f.Marked != units || f.Available != 10-units {
		r.Fatalf("%d units sold, want %d: %+v", f.Marked, units, f)
	}
}

func (r *rig) eventually(what string, holds func() bool) {
	r.Helper()
	poll(r.TB, what, holds)
}

func poll(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(pollStep)
	defer ticker.Stop()
	for deadline := time.Now().Add(callTimeout); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", callTimeout, what)
		}
	}
}

// recording is the whole data of a server at one instant, like that of a replica that falls
// behind.
type recording struct {
	client rueidis.Client
	dumps  map[string]string
}

func record(r *rig) recording {
	r.Helper()
	client := r.ledger.call.client
	keys, err := client.Do(r.ctx(), client.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		r.Fatal(err)
	}
	rec := recording{client: client, dumps: make(map[string]string)}
	for _, key := range keys {
		if rec.dumps[key], err = client.Do(r.ctx(), client.B().Dump().Key(key).Build()).ToString(); err != nil {
			r.Fatal(err)
		}
	}
	return rec
}

// failover restores the recorded data in one step.
func (rec recording) failover(r *rig) {
	r.Helper()
	b := rec.client.B()
	steps := rueidis.Commands{b.Multi().Build(), b.Flushall().Build()}
	for key, dump := range rec.dumps {
		steps = append(steps, b.Restore().Key(key).Ttl(0).SerializedValue(dump).Build())
	}
	for _, result := range rec.client.DoMulti(r.ctx(), append(steps, b.Exec().Build())...) {
		if err := result.Error(); err != nil {
			r.Fatal(err)
		}
	}
}

// kept returns the numbers of the kept verdicts.
func kept(reply ledger.Reply) string {
	var numbers []uint64
	for _, k := range reply.Kept {
		numbers = append(numbers, k.Number)
	}
	return fmt.Sprint(numbers)
}
