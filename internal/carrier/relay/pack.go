package relay

import (
	"seckill/internal/carrier"
	"seckill/internal/queue"
)

const (
	// packBytes and packClaims bound the entries of one message. A transaction
	// of a worker takes about as many claims.
	packBytes  = 128 << 10
	packClaims = 500
)

// packed is a message and its entries.
type packed struct {
	message carrier.Message
	entries []*heldEntry
}

// pack makes messages of entries, in order within each key. It returns entries
// that are too large for the broker separately.
func pack(codec *carrier.Codec, most int, entries []*heldEntry) (messages []packed, large []*heldEntry, err error) {
	for _, group := range byKey(entries) {
		for len(group) > 0 {
			n, claims := 0, 0
			for n < len(group) {
				claims += len(group[n].delivery.Entry.Claims)
				if n > 0 && claims > packClaims {
					break
				}
				n++
			}
			some, tooLarge, err := encode(codec, most, group[:n])
			if err != nil {
				return nil, nil, err
			}
			messages, large = append(messages, some...), append(large, tooLarge...)
			group = group[n:]
		}
	}
	return messages, large, nil
}

// encode makes one message of entries, or several if one would be too large.
func encode(codec *carrier.Codec, most int, entries []*heldEntry) (messages []packed, large []*heldEntry, err error) {
	deliveries := make([]queue.Delivery, len(entries))
	for i := range entries {
		deliveries[i] = entries[i].delivery
	}
	message, err := codec.Encode(deliveries)
	size, isOne := len(message.Body), len(entries) == 1
	switch {
	case err != nil:
		return nil, nil, err
	case isOne && size > most:
		return nil, entries, nil
	case isOne || size <= min(packBytes, most):
		return []packed{{message, entries}}, nil, nil
	}
	half := len(entries) / 2
	for _, part := range [][]*heldEntry{entries[:half], entries[half:]} {
		some, tooLarge, err := encode(codec, most, part)
		if err != nil {
			return nil, nil, err
		}
		messages, large = append(messages, some...), append(large, tooLarge...)
	}
	return messages, large, nil
}

// byKey groups entries by product and shard, in the order of their first
// entries.
func byKey(entries []*heldEntry) [][]*heldEntry {
	index := make(map[string]int)
	var groups [][]*heldEntry
	for _, h := range entries {
		key := carrier.Key(&h.delivery.Entry)
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], h)
	}
	return groups
}
