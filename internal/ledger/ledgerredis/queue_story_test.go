package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"seckill"

	"seckill/internal/ledger"
	"seckill/internal/queue"
	testrig "seckill/test/rig"
)

func TestQueue_DestroyedGroupIsCreatedAgain(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	const products, each = 3, 400
	all, stop := context.WithTimeout(context.Background(), testWait)
	defer stop()
	var wg sync.WaitGroup
	for range 2 {
		c := r.join()
		wg.Go(func() {
			for {
				batch, err := c.Receive(all, 40)
				if all.Err() != nil {
					return
				}
				if err != nil {
					r.Errorf("receive: %v", err)
					return
				}
				if err := c.Ack(all, batch, queue.ID{}); err != nil && all.Err() == nil {
					r.Errorf("ack: %v", err)
				}
			}
		})
	}
	for n := range each {
		for product := range uint32(products) {
			r.fill(product+1, 1)
			if n%50 == int(product) {
				r.server.Must("XGROUP", "DESTROY", r.queue.keys.out(bucketOf(product+1, 0)), workerGroup)
			}
		}
	}
	r.eventually("everything is acknowledged", func() bool { return r.stats(0).Entries == 0 })
	for product := range uint32(products) {
		if got := r.stats(product + 1); got != (queue.Stats{}) {
			t.Errorf("product %d: %+v", product+1, got)
		}
	}
	stop()
	wg.Wait()
}

// A new group delivers acknowledged entries that are not trimmed.
func TestAck_RedeliveredEntryCountsOnce(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join()
	r.fill(1, 3)
	r.ack(c, r.receive(c, 3)[:2])
	r.server.Must("XGROUP", "DESTROY", r.queue.keys.out(bucketOf(1, 0)), workerGroup)
	r.fill(1, 1)
	again := r.receive(c, 4)
	if got := r.stats(1); got.Entries != 2 || got.Reservations != 2 {
		t.Errorf("before: %+v", got)
	}
	r.ack(c, again[:3])
	if got := r.stats(1); got.Entries != 1 || got.Reservations != 1 {
		t.Errorf("after: %+v", got)
	}
}

func TestAck_TrimmingKeepsUnacknowledgedEntriesAndTheWitness(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join()
	const entries, stuck, later = 2000, 900, 1500
	out := r.queue.keys.out(bucketOf(1, 0))
	has := func(id queue.ID) bool { return r.server.Must("XRANGE", out, entryID(id), entryID(id)) != "" }
	r.fill(1, entries)
	all := r.receive(c, entries)
	r.check(c.Ack(r.ctx(), r.deliveries(all[:later]...), all[stuck-1]), "ack") // the stuck one is acknowledged, and the witness is older
	if !has(all[stuck-1]) {
		t.Fatal("the witness was trimmed")
	}
	if n := r.length(1); n > entries-stuck+1+trimSlack {
		t.Errorf("%d entries are left", n)
	}
	r.check(c.Ack(r.ctx(), nil, all[entries-1]), "ack under a higher witness")
	for _, id := range all[later:] {
		if !has(id) {
			t.Fatalf("unacknowledged %v was trimmed", id)
		}
	}
	r.ack(c, all[later:])
	r.eventually("the stream is short", func() bool { return r.length(1) <= trimSlack })
	if !has(all[entries-1]) {
		t.Error("the highest witness was trimmed")
	}
	// A worker that confirmed fewer entries carries a witness that is trimmed.
	r.check(c.Ack(r.ctx(), nil, all[0]), "ack under an old witness")
}

func TestAck_KeepsUndeliveredEntries(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join()
	r.fill(1, 500)
	read := r.receive(c, 300)
	r.ack(c, read)
	r.check(c.Close(r.ctx()), "close")
	if rest := r.receive(r.join(), 200); rest[0].Seq != 301 || rest[199].Seq != 500 {
		t.Errorf("got %d to %d", rest[0].Seq, rest[199].Seq)
	}
}

func TestAck_NoticesAFlush(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join()
	r.fill(1, 2)
	held := r.receive(c, 2)
	r.ack(c, held[:1])
	r.server.FlushAll()
	for _, left := range [][]queue.ID{held[1:], nil} {
		if err := c.Ack(r.ctx(), r.deliveries(left...), held[0]); !errors.Is(err, queue.ErrLost) {
			t.Errorf("ack of %d: %v, want lost", len(left), err)
		}
	}
	r.made = 0 // the counter is gone, too
	fresh := r.fill(1, 1)
	r.wantEntries(r.receive(c, 1), fresh)
	r.ack(c, fresh)
}

func TestQueue_EntriesOfAKilledConsumerAreRedeliveredInOrder(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	const entries = 2*moveMost + 10 // more than one step returns
	want := r.fill(1, entries)
	dead := r.open().outbox()
	r.queue.silence = testSilence / 8 // no other consumer could be considered dead
	c, err := dead.Consumer(r.ctx(), "killed")
	r.check(err, "join")
	r.receive(c, entries)
	dead.client.Close()
	other := r.join()
	got := r.receive(other, entries)
	slices.SortFunc(want, func(a, b queue.ID) int { return int(a.Seq) - int(b.Seq) })
	r.wantEntries(got, want)
	if n := other.Deaths(); n != 1 {
		t.Errorf("%d deaths were found", n)
	}
	r.ack(other, got)
	r.eventually("the dead consumer is removed", func() bool {
		r.wantNothing(other)
		return !strings.Contains(r.server.Must("XINFO", "CONSUMERS", r.queue.keys.out(bucketOf(1, 0)), workerGroup), "killed")
	})
}

func TestQueue_LiveConsumerKeepsItsEntries(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	r.fill(1, 5)
	holder, other := r.join(), r.join()
	r.receive(holder, 5)
	// The holder makes no calls, as in an outage of its store.
	ctx, cancel := context.WithTimeout(r.ctx(), 2*testSilence)
	defer cancel()
	if batch, err := other.Receive(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%+v went to another: %v", batch, err)
	}
	if n := other.Deaths(); n > 0 {
		t.Errorf("%d deaths were found", n)
	}
}

func TestReceive_UnreadableEntryIsReportedAndBlocksNoOther(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	first := r.fill(1, 1)
	r.made++
	bad := queue.ID{Stream: streamName(bucketOf(1, 0)), Seq: r.made, Tag: 7}
	r.send("XADD", r.queue.keys.out(bucketOf(1, 0)), entryID(bad), "h", "\x01", "c", "junk")
	r.send("ZADD", r.queue.keys.open(bucketOf(1, 0), 1), strconv.FormatUint(bad.Seq, 10), entryID(bad))
	last := r.fill(1, 1)
	c := r.join()
	want := slices.Concat(first, last)
	for range 2 { // the second time for its next consumer
		r.wantEntries(r.receive(c, 2), want)
		if _, err := c.Receive(r.ctx(), 10); !errors.Is(err, ledger.ErrShort) {
			t.Fatalf("receive: %v", err)
		}
		r.wantNothing(c)
		r.check(c.Close(r.ctx()), "close")
		c = r.join()
	}
	r.ack(c, r.receive(c, 2))
	if got := r.stats(1); got.Entries != 1 {
		t.Errorf("%+v, want the bad entry counted", got)
	}
}

// A worker leaves an entry of another version to workers of that version: it neither holds nor
// acknowledges it, and logs it. A caller that reads all entries gets an error for it.
func TestReceive_EntryOfAnotherVersionWaitsForItsReaders(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	r.fill(1, 1)
	bucket := bucketOf(1, 0)
	at := time.Unix(1_800_000_000, 5).UTC()
	h := ledger.AppendHead(nil, &seckill.Entry{ProductID: 1, Group: 1, Epoch: 1, At: at})
	r.made++
	newer := queue.ID{Stream: streamName(bucket), Seq: r.made, Tag: 7}
	r.send("XADD", r.queue.keys.out(bucket), entryID(newer), "h", "\x09"+string(h[1:]), "v9", "unknown")
	r.send("ZADD", r.queue.keys.open(bucket, 1), strconv.FormatUint(newer.Seq, 10), entryID(newer))
	r.fill(1, 1)
	older := r.join().(*consumer)
	r.ack(older, r.receive(older, 2))
	r.wantNothing(older)

	passed := 0
	err := r.queue.Unacknowledged(r.ctx(), 1, func(seckill.Entry) error { passed++; return nil })
	if !errors.Is(err, ledger.ErrEntryVersion) || passed != 0 {
		t.Errorf("%d entries were passed: %v", passed, err)
	}
	stats, err := r.queue.outboxStats(r.ctx())
	if err != nil || stats.Entries != 1 || stats.Foreign != 1 || !stats.Oldest.Equal(at) {
		t.Errorf("%+v, %v", stats, err)
	}
	tend := func(version string) tended {
		all, err := readTended(bucket, r.queue.run(r.ctx(), tendScript, older.call(bucket, "60000", "10", version, "0"))[0])
		r.check(err, "tend")
		return all
	}
	if of := tend("1"); of.mine != 0 || of.returned != 0 || len(of.holders) > 0 {
		t.Errorf("tending of version 1 finds %+v", of)
	}
	if of := tend("9"); of.returned != 1 {
		t.Errorf("tending of version 9 finds %+v", of)
	}

	// A worker of version 9 takes it and dies. Then an older worker finds it first.
	taken := func() []rueidis.RedisMessage {
		rows, err := r.queue.run(r.ctx(), receiveScript, older.call(bucket, "10", "9"))[0].ToArray()
		r.check(err, "receive as version 9")
		return rows
	}
	if rows := taken(); len(rows) != 1 {
		t.Fatalf("version 9 received %v", rows)
	}
	r.check(older.returnEntries(r.ctx(), bucket, []queue.ID{newer}), "hand back")
	r.wantNothing(older)
	if rows := taken(); len(rows) != 1 {
		t.Fatalf("version 9 received %v", rows)
	}
}

// Prefetched entries are not delivered to the caller yet.
func TestNack_ReturnsPrefetchedEntriesToo(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	want := r.fill(1, 40)
	a, b := r.join(), r.join()
	first, err := a.Receive(r.ctx(), 20)
	r.check(err, "receive")
	second, err := a.Receive(r.ctx(), 1)
	r.check(err, "receive")
	if !a.(*consumer).hasBuffered() {
		t.Fatal("no entry was prefetched, so the test checks nothing")
	}
	r.check(a.Nack(r.ctx(), []queue.ID{second[0].ID}), "hand back")
	r.wantEntries(r.receive(b, 40-len(first)), want[len(first):])
	r.check(a.Close(r.ctx()), "close")
	r.wantEntries(r.receive(b, len(first)), want[:len(first)])
}

func TestReceive_PrefetchedEntriesGoToOthersAfterAWhile(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	want := r.fill(1, 40)
	a, b := r.join().(*consumer), r.join()
	var got []queue.ID
	for !a.hasBuffered() {
		batch, err := a.Receive(r.ctx(), 20)
		r.check(err, "receive")
		got = append(got, ids(batch)...)
	}
	for len(got) < len(want) {
		batch, err := b.Receive(r.ctx(), len(want))
		r.check(err, "receive")
		got = append(got, ids(batch)...)
	}
	slices.SortFunc(got, func(x, y queue.ID) int { return int(x.Seq) - int(y.Seq) })
	r.wantEntries(got, want)
}

func TestQueueScripts_AreSentAgainAfterAFlush(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join()
	for range 3 {
		want := r.fill(1, 1)
		r.server.Must("SCRIPT", "FLUSH")
		r.wantEntries(r.receive(c, 1), want)
		r.server.Must("SCRIPT", "FLUSH")
		r.ack(c, want)
	}
}

func TestAck_WorksOnAFullServer(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join()
	r.fill(1, 300)
	r.server.Must("CONFIG", "SET", "maxmemory", "1")
	r.ack(c, r.receive(c, 300))
	if got := r.stats(0); got != (queue.Stats{}) {
		t.Errorf("%+v", got)
	}
}

func TestHighestWitness_IsKeptPerStream(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join()
	want := make(map[queue.ID]bool)
	for product := range uint32(3) {
		made := r.fill(product+1, 3)
		r.receive(c, 3)
		r.check(c.Ack(r.ctx(), nil, made[2]), "ack")
		r.check(c.Ack(r.ctx(), nil, made[1]), "ack under a lower one")
		want[made[2]] = true
	}
	got, err := r.queue.HighestWitness(r.ctx())
	r.check(err, "read")
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for _, id := range got {
		if !want[id] {
			t.Errorf("%v is none", id)
		}
	}
}

// If the store's witness were set to it, every acknowledgement would report a loss.
func TestHighestWitness_LostOneIsNotReturned(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join()
	r.fill(1, 1)
	lost := r.receive(c, 1)
	r.ack(c, lost)
	r.server.Must("DEL", r.queue.keys.out(bucketOf(1, 0)))
	if err := c.Ack(r.ctx(), nil, lost[0]); !errors.Is(err, queue.ErrLost) {
		t.Errorf("ack: %v, want lost", err)
	}
	if got, err := r.queue.HighestWitness(r.ctx()); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	r.fill(1, 1)
	r.ack(c, r.receive(c, 1))
	if got, err := r.queue.HighestWitness(r.ctx()); err != nil || len(got) != 1 || got[0].Seq != lost[0].Seq+1 {
		t.Errorf("%v, %v", got, err)
	}
}

// A live worker counts, also if it is idle. A dead one does not.
func TestWorkers_CountsLiveOnes(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	counted := func(want int) {
		t.Helper()
		r.eventually(strconv.Itoa(want)+" workers", func() bool {
			got, err := r.queue.outboxStats(r.ctx())
			return err == nil && got.Consumers == want
		})
	}
	counted(0)
	r.join()
	b := r.join()
	counted(2)
	r.check(b.Close(r.ctx()), "leave")
	counted(1)
	key := r.queue.keys.workers()
	r.server.Must("ZADD", key, "1", "killed") // its heartbeat stays old
	counted(1)
	r.eventually("the silent consumer to be removed", func() bool { return r.server.Must("ZSCORE", key, "killed") == "" })
	r.server.Must("SET", key, "somebody's")
	counted(1)
	r.server.Must("FLUSHALL")
	counted(1)
}

func TestOutboxStats_CountsRelaysApartFromWorkers(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	counted := func(workers, relays int) {
		t.Helper()
		r.eventually(fmt.Sprintf("%d workers and %d relays", workers, relays), func() bool {
			got, err := r.queue.outboxStats(r.ctx())
			return err == nil && got.Consumers == workers && got.Relays == relays
		})
	}
	r.join()
	relays := [2]queue.Consumer{}
	for i := range relays {
		var err error
		relays[i], err = r.queue.Relay(r.ctx(), "r"+strconv.Itoa(i))
		r.check(err, "join as a relay")
	}
	counted(1, 2)
	r.check(relays[0].Close(r.ctx()), "leave")
	counted(1, 1)
}

func TestOutboxStats_Figures(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	r.fill(1, 2)
	r.fill(2, 1)
	a, b := r.join(), r.join()
	r.ack(a, r.receive(a, 3)[:1])
	r.fill(3, 1)
	r.receive(b, 1)
	got, err := r.queue.outboxStats(r.ctx())
	r.check(err, "read")
	if got.Length != 4 || got.Entries != 3 || got.Oldest.IsZero() {
		t.Errorf("%+v", got)
	}
}

const fillScript = `
for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], string.format('%.0f-1', i), 'h', string.rep('x', 200)) end`

func TestAck_TrimsALongStreamInShortSteps(t *testing.T) {
	r := newQueueRig(t)
	const entries = 20 * trimMost
	bucket := bucketOf(1, 0)
	out := r.queue.keys.out(bucket)
	r.server.Must("EVAL", fillScript, "1", out, strconv.Itoa(entries))
	r.server.Must("XGROUP", "CREATE", out, workerGroup, "$") // as if all was delivered and acknowledged
	// Count the trimmed entries instead of the time, because the machine may be busy. The
	// stream shrinks by whole nodes.
	node, err := strconv.Atoi(strings.Fields(r.server.Must("CONFIG", "GET", "stream-node-max-entries"))[1])
	r.check(err, "read the size of a node")
	for left := entries; left > entries-5*trimMost; {
		more, err := r.queue.settle(r.ctx(), bucket, nil, queue.ID{Stream: streamName(bucket), Seq: entries, Tag: 1})
		r.check(err, "settle")
		n := r.length(1)
		if trimmed := left - n; !more || trimmed <= 0 || trimmed > trimMost+node {
			t.Fatalf("a step trimmed %d of %d entries, more to do: %v", trimmed, left, more)
		}
		left = n
	}
	c := r.join()
	r.check(c.Ack(r.ctx(), nil, queue.ID{Stream: streamName(bucket), Seq: entries, Tag: 1}), "ack")
	r.wantNothing(c)
	r.eventually("the stream is short", func() bool {
		r.wantNothing(c)
		return r.length(1) <= trimSlack
	})
}

// All workers and relays of a process find the same dead consumers.
func TestQueue_LogsADeadConsumerOnce(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	r.server.Must("ZADD", r.queue.keys.workers(), strconv.FormatInt(time.Now().UnixMilli(), 10), "ghost")
	process := r.open()
	process.silent.Store("long gone", time.Now().Add(-2*loggedFor))
	var log testrig.Log
	for range 3 {
		r.queue = process.outbox()
		r.queue.silence, r.queue.logger = testSilence/8, slog.New(slog.NewTextHandler(&log, nil))
		c := r.join() // without a Receive it takes nothing over
		r.eventually("the silent consumer is found dead", func() bool { return c.Deaths() > 0 })
	}
	process.cancel()
	process.running.Wait()
	if n := log.Count("silent=[ghost]"); n != 1 {
		t.Errorf("the log names the dead one %d times, want once", n)
	}
	if _, kept := process.silent.Load("long gone"); kept {
		t.Error("a consumer that left long ago is remembered")
	}
}

// Reconciliation and takeover read these figures and entries, so none may be left out (I3, I4).
func TestStats_CountEveryShardOfAProduct(t *testing.T) {
	const product, group, shards = 1, 9, 4
	r := newQueueRig(t)
	for shard := range shards {
		at := time.UnixMilli(1_800_000_000_000 + int64(shard)).UTC()
		r.publish(seckill.Entry{
			ProductID: product, Group: group, Shard: shard, Epoch: 1, At: at, PriceCents: 1, Currency: "CNY", Name: "shoe", Limit: 1,
			Claims: []seckill.Claim{{OrderNo: seckill.NewOrderNo(at, product, uint64(shard)), Buyer: "b", Quantity: 1}},
		})
	}
	r.flush()
	for _, known := range []bool{false, true} {
		r.queue.home = func(uint32) (uint32, int, bool) { return group, shards, known }
		if got := r.stats(product); got.Entries != shards || got.Reservations != shards {
			t.Errorf("home known: %t: %+v, want %d entries", known, got, shards)
		}
		seen := make(map[int]bool) // by shard
		r.check(r.queue.Unacknowledged(r.ctx(), product, func(e seckill.Entry) error {
			seen[e.Shard] = true
			return nil
		}), "read unacknowledged entries")
		if len(seen) != shards {
			t.Errorf("home known: %t: entries of %d shards are not acknowledged, want %d", known, len(seen), shards)
		}
	}
}
