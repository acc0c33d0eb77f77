package ledgerredis

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"seckill/internal/ledger"
	"seckill/internal/queue"
	"seckill/test/server"
)

// lastID is the highest of which an entry's number is no longer one.
const lastID = "281474976710656-1"

// fillings make a stream take no entry any more.
func fillings(s *server.RedisServer) map[string]func(out string) {
	return map[string]func(out string){
		"an entry":              func(out string) { s.Must("XADD", out, lastID, "a", "b") },
		"an entry that is gone": func(out string) { s.Must("XADD", out, lastID, "a", "b"); s.Must("XDEL", out, lastID) },
		"an id that was set":    func(out string) { s.Must("XSETID", out, "18446744073709551615-18446744073709551615") },
	}
}

// No id is left in a stream above the highest: a reservation changes nothing,
// and the recovery begins a new stream.
func TestAStreamThatIsFullIsMended(t *testing.T) {
	for name := range fillings(nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s, _ := standalone(t, server.RedisOptions{})
			r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", ""), r.claim("ann", "")))
			keys := keysOf(r.ledger, r.shard)
			fillings(s)[name](keys["out"])
			before := record(r).dumps
			if reply, err := r.ledger.Do(r.ctx(), r.request(2, 1, reserve(r.claim("bob", "")))); err == nil || errors.Is(err, ledger.ErrNotExecuted) {
				t.Errorf("outcome %d, %v", reply.Outcome, err)
			}
			if after := record(r).dumps; !maps.Equal(before, after) {
				t.Errorf("keys before %q, after %q", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
			}
			s.Must("HDEL", keys["queue"], "seq")
			r.recover(5)
			r.sellsAgain()
		})
	}
}

// Who reads a full stream gets what is in it, and is then told that it is lost.
func TestAFullStreamIsReadToItsEndAndThenLost(t *testing.T) {
	for name := range fillings(nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newQueueRig(t)
			bucket := bucketOf(1, 0)
			waiting := r.fill(1, 3)
			fillings(r.server)[name](r.queue.keys.out(bucket))
			c := r.join()
			r.same(r.receive(c, 3), waiting)
			r.ack(c, waiting)
			r.eventually("the reader is told", func() bool {
				_, err := c.Receive(r.ctx(), 1)
				told := (*queue.LostError)(nil)
				return errors.As(err, &told) && errors.Is(err, queue.ErrLost) && told.Stream == streamName(bucket)
			})
			if _, err := r.queue.Examine(r.ctx(), 0, true); err != nil {
				t.Fatal(err)
			}
			fresh := r.fill(1, 2)
			r.same(r.receive(c, 2), fresh)
			r.ack(c, fresh)
		})
	}
}

// What is waited for and is no id of an entry stops neither who counts nor who
// mends: it is gone.
func TestWhatIsNoEntrysIDIsNoLongerWaitedFor(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join()
	waiting := r.fill(1, 2)
	strangers := []string{"garbage", "-", "+", "1", "01-1", "0-1", "1-18446744073709551616", "99999999999999999999999-1", ""}
	for _, member := range strangers {
		r.server.Must("ZADD", r.queue.keys.open(bucketOf(1, 0), 1), "0.5", member)
	}
	if got := r.stats(1); got.Entries != int64(2+len(strangers)) {
		t.Errorf("%+v", got)
	}
	for _, mend := range []bool{false, true} {
		if strays, err := r.queue.Examine(r.ctx(), 1, mend); err != nil || strays != (queue.Strays{Gone: int64(len(strangers))}) {
			t.Errorf("mend %v: %+v, %v", mend, strays, err)
		}
	}
	if got := r.stats(1); got.Entries != 2 || got.Reservations != 2 || got.Oldest.IsZero() {
		t.Errorf("%+v", got)
	}
	r.same(r.receive(c, 2), waiting)
	r.ack(c, waiting)
	if got := r.stats(1); got != (queue.Stats{}) {
		t.Errorf("it still waits for %+v", got)
	}
}

// Whoever looks after the product sees it as well, and nobody fails meanwhile.
func TestWhatIsNoEntrysIDIsSeenAndMended(t *testing.T) {
	t.Parallel()
	r, s, _ := standalone(t, server.RedisOptions{})
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	for _, score := range []string{"0.5", "1"} {
		s.Must("ZADD", r.ledger.keys.open(bucketOf(1, 0), 1), score, "!"+score)
	}
	if held, err := r.ledger.Held(r.ctx(), r.shard, "ann"); err != nil || len(held) != 1 || len(held[0].Entry.Claims) != 1 {
		t.Errorf("%+v, %v", held, err)
	}
	if !r.seen() {
		t.Error("who looks after the product does not see it")
	}
	r.recover(5)
	r.sellsAgain()
}

// An entry that no ledger wrote is acknowledged unread, and keeps nothing from
// being trimmed; one of another version is kept
// (TestAnEntryThatCannotBeReadIsToldAndStopsNobody).
func TestAnEntryThatNoLedgerWroteIsAcknowledged(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join()
	out := r.queue.keys.out(bucketOf(1, 0))
	const entries = 300
	r.server.Must("XADD", out, "0-1", "foo", "bar")
	r.server.Must("XADD", out, "0-2", "n", "1", "u", "1")
	r.fill(1, entries)
	read := r.receive(c, entries)
	r.ack(c, read)
	r.eventually("the stream is short", func() bool { return r.length(1) <= trimSlack })
	if pending := r.server.Must("XPENDING", out, workerGroup); pending[0] != '0' {
		t.Errorf("pending: %q", pending)
	}
	r.nothing(c)
}

// A witness that was never carried does not keep the true one from being spared.
func TestAWitnessWrittenByHandGivesWay(t *testing.T) {
	for _, witness := range []string{"200000000000000-1", "99999999999999999999999-1", "1-18446744073709551616"} {
		t.Run(witness, func(t *testing.T) {
			t.Parallel()
			r := newQueueRig(t)
			c := r.join()
			r.server.Must("HSET", r.queue.keys.queue(bucketOf(1, 0)), "witness", witness)
			r.fill(1, 300)
			read := r.receive(c, 300)
			r.ack(c, read)
			r.eventually("the stream is short", func() bool { return r.length(1) <= trimSlack })
			r.check(c.Ack(r.ctx(), nil, read[299]), "ack under the same witness")
			if highest, err := r.queue.HighestWitness(r.ctx()); err != nil || !slices.Equal(highest, read[299:]) {
				t.Errorf("%v, %v", highest, err)
			}
		})
	}
}
