package ledgerredis

import (
	"maps"

	"seckill/internal/queue"
)

// arrival is an entry that a round has brought.
type arrival struct {
	queue.Delivery
	bucket int
}

// tally is what an acknowledgement has to know of an entry.
type tally struct {
	tag     uint64
	product uint32
	claims  int64
	unread  bool // it cannot be decoded, and stays with this consumer
}

// held is what a consumer has and has not settled, by bucket and seq.
type held [buckets]map[uint64]tally

func (h *held) put(bucket int, seq uint64, t tally) {
	if h[bucket] == nil {
		h[bucket] = make(map[uint64]tally)
	}
	h[bucket][seq] = t
}

func (h *held) drop(bucket int, seq uint64) { delete(h[bucket], seq) }

// find is the tally of exactly this entry.
func (h *held) find(bucket int, id queue.ID) (tally, bool) {
	t, ok := h[bucket][id.Seq]
	return t, ok && t.tag == id.Tag && !t.unread
}

// settle forgets entries that were acknowledged or handed back.
func (h *held) settle(bucket int, ids []queue.ID) {
	for _, id := range ids {
		if t, ok := h[bucket][id.Seq]; ok && t.tag == id.Tag {
			h.drop(bucket, id.Seq)
		}
	}
}

// correct makes the consumer's knowledge of a bucket what the server says, and
// returns the entries that it did not know of.
func (h *held) correct(bucket int, server []queue.ID) (strange []queue.ID) {
	gone := maps.Clone(h[bucket])
	for _, id := range server {
		if t, ok := h[bucket][id.Seq]; !ok || t.tag != id.Tag {
			strange = append(strange, id)
			continue
		}
		delete(gone, id.Seq)
	}
	for seq := range gone {
		h.drop(bucket, seq)
	}
	return strange
}
