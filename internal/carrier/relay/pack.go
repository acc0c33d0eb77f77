package relay

import (
	"seckill/internal/carrier"
	"seckill/internal/queue"
)

const (
	// packBytes and packClaims bound the entries that share a message. A worker's
	// transaction takes about as many claims.
	packBytes  = 128 << 10
	packClaims = 500
)

// packed is a message and the entries that it carries.
type packed struct {
	message carrier.Message
	entries []*holding
}

// pack makes messages of entries, in their order within each key. Entries that
// are too large for the broker are returned apart.
func pack(codec *carrier.Codec, most int, entries []*holding) (messages []packed, large []*holding, err error) {
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
func encode(codec *carrier.Codec, most int, entries []*holding) (messages []packed, large []*holding, err error) {
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
	for _, part := range [][]*holding{entries[:half], entries[half:]} {
		some, tooLarge, err := encode(codec, most, part)
		if err != nil {
			return nil, nil, err
		}
		messages, large = append(messages, some...), append(large, tooLarge...)
	}
	return messages, large, nil
}

// byKey groups entries by product and shard, in the order of their first.
func byKey(entries []*holding) [][]*holding {
	index := make(map[string]int)
	var groups [][]*holding
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
