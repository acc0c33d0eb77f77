package ledgerredis

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"seckill/internal/queue"
)

const (
	// waitsMost bounds the entries that one command asks for.
	waitsMost = 500
	// maxCopies bounds the tallies of copies. Beyond it they are forgotten, and
	// an acknowledgement reads its entries from the stream.
	maxCopies = 200_000
)

// copies are tallies of waiting entries whose copies came by a broker. With
// them an acknowledgement does not have to read the entries.
type copies map[queue.ID]tally

func (c *copies) put(d *queue.Delivery) {
	if *c == nil || len(*c) >= maxCopies {
		*c = make(copies)
	}
	t := tally{tag: d.ID.Tag, product: d.Entry.ProductID, claims: int64(len(d.Entry.Claims))}
	for i := range d.Entry.Claims {
		t.units += int64(d.Entry.Claims[i].Quantity)
	}
	(*c)[d.ID] = t
}

func (c copies) forget(ids []queue.ID) {
	for _, id := range ids {
		delete(c, id)
	}
}

// Waits looks for entries in the sets of those that are not acknowledged, which
// have SEQ-TAG as members.
func (c *consumer) Waits(ctx context.Context, of []queue.Delivery) ([]bool, error) {
	waits := make([]bool, len(of))
	var commands rueidis.Commands
	var asked [][]int // per command, the deliveries that it asks for
	for place, all := range placesOf(of) {
		for from := 0; from < len(all); from += waitsMost {
			some := all[from:min(len(all), from+waitsMost)]
			members := make([]string, len(some))
			for i, at := range some {
				members[i] = entryID(of[at].ID)
			}
			key := c.queue.keys.open(place.bucket, place.product)
			commands = append(commands, c.queue.client.B().Zmscore().Key(key).Member(members...).Build())
			asked = append(asked, some)
		}
	}
	if len(commands) == 0 {
		return waits, nil
	}
	for i, result := range c.queue.send(ctx, commands) {
		scores, err := result.ToArray()
		if err == nil && len(scores) != len(asked[i]) {
			err = fmt.Errorf("%w: %d of %d scores", errReply, len(scores), len(asked[i]))
		}
		if err != nil {
			return nil, fmt.Errorf("look for waiting entries: %w", err)
		}
		for j, at := range asked[i] {
			waits[at] = !scores[j].IsNil()
		}
	}
	c.book(of, waits)
	c.signal()
	return waits, nil
}

// placesOf groups deliveries by bucket and product. Those of another queue are
// left out.
func placesOf(of []queue.Delivery) map[place][]int {
	places := make(map[place][]int)
	for i := range of {
		if bucket, ok := bucketNamed(of[i].ID.Stream); ok {
			at := place{bucket, of[i].Entry.ProductID}
			places[at] = append(places[at], i)
		}
	}
	return places
}

// book remembers what an acknowledgement of copies needs, and forgets entries
// of its own that others have acknowledged.
func (c *consumer) book(of []queue.Delivery, waits []bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range of {
		bucket, ok := bucketNamed(of[i].ID.Stream)
		if !ok {
			continue
		}
		_, mine := c.held.find(bucket, of[i].ID)
		switch {
		case !waits[i]:
			c.held.settle(bucket, []queue.ID{of[i].ID})
		case !mine:
			c.copies.put(&of[i])
		}
	}
}
