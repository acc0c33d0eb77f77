package ledgerredis

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"seckill"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/internal/queue"
	"seckill/test/server"
)

func TestQueue_FrozenServerDelaysNoCallAndLosesNoEntry(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join()
	r.wantNothing(c)
	want := r.fill(1, 20)
	r.server.Pause()
	begun := time.Now()
	for name, call := range map[string]func(context.Context) error{
		"receive": func(ctx context.Context) error { _, err := c.Receive(ctx, 5); return err },
		"ack":     func(ctx context.Context) error { return c.Ack(ctx, r.deliveries(want[0]), want[0]) },
		"nack":    func(ctx context.Context) error { return c.Nack(ctx, want[:1]) },
		"stats":   func(ctx context.Context) error { _, err := r.queue.Stats(ctx, 0); return err },
	} {
		ctx, cancel := context.WithTimeout(r.ctx(), 100*time.Millisecond)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("four calls of 100 ms took %v", took)
	}
	// Its own timeout ends too; its request is executed after that.
	ctx, cancel := context.WithTimeout(r.ctx(), 2*roundTimeout)
	defer cancel()
	if _, err := c.Receive(ctx, 5); err == nil || ctx.Err() != nil {
		t.Errorf("receive: %v, %v", err, ctx.Err())
	}
	r.server.Resume()
	seen := make(map[queue.ID]bool)
	r.eventually("every entry is delivered", func() bool {
		ctx, cancel := context.WithTimeout(r.ctx(), coldEvery)
		defer cancel()
		batch, _ := c.Receive(ctx, 5)
		for _, d := range batch {
			seen[d.ID] = true
		}
		return len(seen) == len(want)-1 || len(seen) == len(want) // the first may be acknowledged by now
	})
}

func TestReceive_EntriesOfALostReplyAreDelivered(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join().(*consumer)
	want := r.fill(1, 20)
	// The reply is dropped, as when a connection breaks.
	r.check(r.queue.run(r.ctx(), receiveScript, c.call(bucketOf(1, 0), "20", strconv.Itoa(ledger.EntryVersion)))[0].Error(), "read")
	r.wantEntries(r.receive(c, 20), want)
}

func TestReceive_WorksWhileASlotMoves(t *testing.T) {
	t.Parallel()
	s := server.Cluster(t, server.ClusterOptions{})
	l := opened(t, Options{Place: redisclient.Place{Addrs: s.Addrs()}, Prefix: "q:", silence: testSilence})
	r := &queueRig{TB: t, queue: l.outbox()}
	slot := s.Slot(l.keys.out(bucketOf(1, 0)))
	home := s.Owner(slot)
	away := s.Nodes()[0]
	if away == home {
		away = s.Nodes()[1]
	}
	const entries = 600
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.MigrateSlot(slot, home, away)
		s.MigrateSlot(slot, away, home)
	}()
	c := r.join()
	seen := make(map[queue.ID]bool)
	for made := 0; made < entries; made += 20 {
		r.fill(1, 20)
		r.ack(c, addSeen(seen, r.receive(c, 20)))
	}
	<-done
	if got := r.stats(0); got != (queue.Stats{}) || len(seen) != entries {
		t.Errorf("%+v is left, and %d entries were delivered", got, len(seen))
	}
}

func TestQueue_UnavailablePartDoesNotStopTheRest(t *testing.T) {
	t.Parallel()
	s := server.Cluster(t, server.ClusterOptions{Args: []string{"--cluster-require-full-coverage", "no"}})
	l := opened(t, Options{Place: redisclient.Place{Addrs: s.Addrs()}, Prefix: "q:", silence: testSilence})
	r := &queueRig{TB: t, queue: l.outbox()}
	gone := s.Owner(s.Slot(l.keys.out(bucketOf(1, 0))))
	product := uint32(2)
	for s.Owner(s.Slot(l.keys.out(bucketOf(product, 0)))) == gone {
		product++
	}
	c := r.join()
	r.fill(1, 10)
	r.fill(product, 10)
	r.receive(c, 20)
	gone.Kill()
	for range 3 {
		want := r.fill(product, 10)
		ctx, cancel := context.WithTimeout(r.ctx(), patience)
		for got := 0; got < len(want); {
			batch, err := c.Receive(ctx, 10)
			if err != nil && ctx.Err() != nil {
				t.Fatalf("%d of %d entries came: %v", got, len(want), err)
			}
			got += len(batch)
		}
		cancel()
		r.ack(c, want)
	}
	r.eventually("it is reported", func() bool {
		ctx, cancel := context.WithTimeout(r.ctx(), 2*patience)
		defer cancel()
		_, err := c.Receive(ctx, 10)
		return err != nil && ctx.Err() == nil
	})
	ctx, cancel := context.WithTimeout(r.ctx(), time.Second)
	defer cancel()
	if err := c.Close(ctx); err == nil {
		t.Error("Close succeeded although entries on the dead node were not returned")
	}
}

// A frozen master does not answer, a dead one refuses. Both sometimes delay the answers of the
// others.
func TestWaits_UnavailablePartIsUnknown(t *testing.T) {
	t.Parallel()
	s := server.Cluster(t, server.ClusterOptions{AppendFsync: "always", Args: []string{"--cluster-require-full-coverage", "no"}})
	l := opened(t, Options{Place: redisclient.Place{Addrs: s.Addrs()}, Prefix: "q:", silence: testSilence})
	r := &queueRig{TB: t, queue: l.outbox()}
	gone := s.Owner(s.Slot(l.keys.out(bucketOf(1, 0))))
	product := uint32(2)
	for s.Owner(s.Slot(l.keys.out(bucketOf(product, 0)))) == gone {
		product++
	}
	c := r.join()
	of := []queue.Delivery{
		{ID: r.fill(1, 1)[0], Entry: seckill.Entry{ProductID: 1}},
		{ID: r.fill(product, 1)[0], Entry: seckill.Entry{ProductID: product}},
	}
	first := func(want queue.State) bool {
		got, err := c.Waits(r.ctx(), of)
		if len(got) != 2 || (err != nil) != (got[0] == queue.Unknown || got[1] == queue.Unknown) {
			t.Fatalf("%v, %v", got, err)
		}
		return got[0] == want && got[1] == queue.Waiting
	}
	for name, fault := range map[string]struct{ strike, mend func() }{
		"frozen": {gone.Pause, gone.Resume}, "killed": {gone.Kill, gone.Start},
	} {
		r.eventually(name+": at first all answer", func() bool { return first(queue.Waiting) })
		fault.strike()
		r.eventually(name+": one is unknown, the other waits", func() bool { return first(queue.Unknown) })
		const asks = 20
		began := time.Now()
		for range asks {
			first(queue.Unknown)
		}
		if took := time.Since(began); took > asks*waitsFor/4 {
			t.Errorf("%s: %d answers took %v", name, asks, took)
		}
		fault.mend()
		r.eventually(name+": all answer again", func() bool { return first(queue.Waiting) })
	}
}

func addSeen(seen map[queue.ID]bool, ids []queue.ID) []queue.ID {
	for _, id := range ids {
		seen[id] = true
	}
	return ids
}
