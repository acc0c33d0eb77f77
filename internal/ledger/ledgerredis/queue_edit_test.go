package ledgerredis

import (
	"slices"
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/test/server"
)

// What is waited for and is no id of an entry is gone: whoever looks after the
// product sees it, and nobody fails meanwhile.
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

func TestUnacknowledged_UnreadableStreamHidesNoOther(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	r.fill(1, 3)
	for bucket := range buckets {
		if bucket != bucketOf(1, 0) {
			r.server.Must("SET", r.queue.keys.open(bucket, 1), "no set")
		}
	}
	passed := 0
	err := r.queue.Unacknowledged(r.ctx(), 1, func(seckill.Entry) error { passed++; return nil })
	if passed != 3 || err == nil {
		t.Errorf("%d of 3 entries were passed: %v", passed, err)
	}
}
