package ledgerredis

import (
	"slices"
	"testing"

	"seckill"
)

// A highest witness that was never acknowledged does not replace the true one.
func TestAck_ReplacesAWitnessWrittenByHand(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	c := r.join()
	r.server.Must("HSET", r.queue.keys.queue(bucketOf(1, 0)), "witness", "200000000000000-1")
	r.fill(1, 300)
	read := r.receive(c, 300)
	r.ack(c, read)
	r.eventually("the stream is short", func() bool { return r.length(1) <= trimSlack })
	r.check(c.Ack(r.ctx(), nil, read[299]), "ack under the same witness")
	if highest, err := r.queue.HighestWitness(r.ctx()); err != nil || !slices.Equal(highest, read[299:]) {
		t.Errorf("%v, %v", highest, err)
	}
}

func TestUnacknowledged_UnreadableStreamDoesNotHideOthers(t *testing.T) {
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
