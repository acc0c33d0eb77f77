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

// held is what a consumer has and has not settled: the tags, by bucket and seq.
type held [buckets]map[uint64]uint64

func (h *held) put(bucket int, id queue.ID) {
	if h[bucket] == nil {
		h[bucket] = make(map[uint64]uint64)
	}
	h[bucket][id.Seq] = id.Tag
}

// has reports whether it has exactly this entry.
func (h *held) has(bucket int, id queue.ID) bool {
	tag, ok := h[bucket][id.Seq]
	return ok && tag == id.Tag
}

// settle forgets an entry that was acknowledged or handed back.
func (h *held) settle(bucket int, id queue.ID) {
	if h.has(bucket, id) {
		delete(h[bucket], id.Seq)
	}
}

// correct makes the consumer's knowledge of a bucket what the server says, and
// returns the entries that it did not know of.
func (h *held) correct(bucket int, server []queue.ID) (strange []queue.ID) {
	gone := maps.Clone(h[bucket])
	for _, id := range server {
		if !h.has(bucket, id) {
			strange = append(strange, id)
			continue
		}
		delete(gone, id.Seq)
	}
	for seq := range gone {
		delete(h[bucket], seq)
	}
	return strange
}
