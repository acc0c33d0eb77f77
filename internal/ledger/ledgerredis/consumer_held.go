package ledgerredis

import (
	"maps"

	"seckill/internal/queue"
)

// arrival is an entry that a round has received.
type arrival struct {
	queue.Delivery
	bucket int
}

// held has the tags of the entries that a consumer has and has not settled, by bucket and seq.
type held [buckets]map[uint64]uint64

func (h *held) put(bucket int, id queue.ID) {
	if h[bucket] == nil {
		h[bucket] = make(map[uint64]uint64)
	}
	h[bucket][id.Seq] = id.Tag
}

func (h *held) has(bucket int, id queue.ID) bool {
	tag, ok := h[bucket][id.Seq]
	return ok && tag == id.Tag
}

// settle removes an entry that was acknowledged or returned.
func (h *held) settle(bucket int, id queue.ID) {
	if h.has(bucket, id) {
		delete(h[bucket], id.Seq)
	}
}

// correct sets the known entries of a bucket to those that the server reports, and returns the
// ones that were not known.
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
