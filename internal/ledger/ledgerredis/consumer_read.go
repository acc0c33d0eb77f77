package ledgerredis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"seckill"

	"seckill/internal/ledger"
	"seckill/internal/queue"
)

const (
	// hotFor is how long after its last entry a bucket counts as busy, and hotEvery how often
	// it is read then. 64 busy buckets that have just become empty cost the server about 4% of
	// a core for that second.
	hotFor   = time.Second
	hotEvery = 5 * time.Millisecond
	// coldEvery is how often a bucket is read that had no entries for long. It is the longest
	// wait of a single order.
	coldEvery = 250 * time.Millisecond
	// awayEvery is how often a bucket that cannot be read is retried.
	awayEvery = time.Second
	// focusMost is how many buckets with a backlog are read at once. Entries of few streams
	// need few acknowledgements and few, large transactions.
	focusMost = 2
	// firstClaims is the assumed number of claims per entry before any was read.
	firstClaims = 16
)

// plan says when to read one bucket, and how much.
type plan struct {
	due    time.Time
	last   time.Time // when it last had an entry
	every  time.Duration
	claims float64 // per entry, on average
	full   bool    // the last read brought as many as requested
	away   bool    // the last read failed
}

// count estimates how many entries have this many claims.
func (p *plan) count(claims int) int {
	each := p.claims
	if each == 0 {
		each = firstClaims
	}
	return int(min(readMost, 1+float64(claims)/each))
}

// schedule decides which buckets to read next: busy ones often, others rarely.
type schedule [buckets]plan

func (s *schedule) next() time.Time {
	next := s[0].due
	for i := range s {
		if s[i].due.Before(next) {
			next = s[i].due
		}
	}
	return next
}

// reading is how many entries to read from a bucket.
type reading struct {
	bucket, count int
}

// due returns what to read now: max claims from the buckets with a backlog that have waited
// longest, and a little from the others, which are probably empty. Extra entries stay in the
// buffer.
func (s *schedule) due(now time.Time, max int) []reading {
	var backlog, others []int
	for bucket := range s {
		switch {
		case s[bucket].due.After(now):
		case s[bucket].full:
			backlog = append(backlog, bucket)
		default:
			others = append(others, bucket)
		}
	}
	slices.SortStableFunc(backlog, func(a, b int) int { return s[a].due.Compare(s[b].due) })
	if len(backlog) > focusMost {
		backlog = backlog[:focusMost]
	}
	var all []reading
	for _, bucket := range backlog {
		all = append(all, reading{bucket, s[bucket].count(max / len(backlog))})
	}
	for _, bucket := range others {
		all = append(all, reading{bucket, s[bucket].count(max / (len(others) + len(backlog)))})
	}
	return all
}

// found records the result of a read.
func (s *schedule) found(asked reading, now time.Time, arrivals []arrival) {
	p := &s[asked.bucket]
	p.full, p.away = len(arrivals) >= asked.count, false
	switch {
	case len(arrivals) > 0:
		claims := 0
		for i := range arrivals {
			claims += len(arrivals[i].Entry.Claims)
		}
		p.last, p.every = now, 0
		p.claims = (p.claims + float64(claims)/float64(len(arrivals))) / 2
	case now.Sub(p.last) < hotFor:
		p.every = hotEvery
	default:
		p.every = min(max(2*p.every, hotEvery), coldEvery)
	}
	p.due = now.Add(p.every)
}

// failed delays the next read of a bucket that could not be read, longer each time, because
// waiting for an unavailable part of the server delays the other reads.
func (s *schedule) failed(bucket int, now time.Time) {
	p := &s[bucket]
	p.away, p.every = true, min(max(2*p.every, hotEvery), awayEvery)
	p.due = now.Add(p.every)
}

func (s *schedule) anyAway() bool {
	return slices.ContainsFunc(s[:], func(p plan) bool { return p.away })
}

// read reads the buckets that are due.
func (c *consumer) read(ctx context.Context, max int) error {
	c.mu.Lock()
	readings := c.schedule.due(time.Now(), max)
	c.mu.Unlock()
	if len(readings) == 0 {
		return nil
	}
	calls := make([]queueCall, len(readings))
	for i, r := range readings {
		calls[i] = c.call(r.bucket, strconv.Itoa(r.count), strconv.Itoa(ledger.EntryVersion))
	}
	results := c.queue.runOnce(ctx, receiveScript, calls...)

	c.mu.Lock()
	defer c.mu.Unlock()
	var failures []error
	for i, result := range results {
		if err := c.processReply(readings[i], result); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", streamName(readings[i].bucket), err))
		}
	}
	return cmp.Or(failures...)
}

// processReply processes one bucket's reply. If it was lost, the server may have assigned
// entries to this consumer without its knowledge; tending finds them.
func (c *consumer) processReply(r reading, result rueidis.RedisResult) error {
	now := time.Now()
	rows, err := result.ToArray()
	if err != nil {
		c.schedule.failed(r.bucket, now)
		if meaningOf(err) == unknown {
			c.tendAt = now
		}
		return err
	}
	before, later := len(c.buffer), 0
	for i := range rows {
		id, fields, err := readRow(r.bucket, &rows[i])
		if err != nil {
			return err
		}
		if !c.decodeArrival(arrival{Delivery: queue.Delivery{ID: id}, bucket: r.bucket}, fields) {
			later++
		}
	}
	c.schedule.found(r, now, c.buffer[before:])
	if later > 0 {
		c.schedule[r.bucket].due = now // the entries behind them need not wait
		c.queue.logger.Warn("queue: entries of another format version wait for a worker that reads it: upgrade this one, or start one of that version",
			"stream", streamName(r.bucket), "entries", later, "reads", ledger.EntryVersion)
	}
	return nil
}

func readRow(bucket int, row *rueidis.RedisMessage) (id queue.ID, fields map[string]string, err error) {
	parts, err := row.ToArray()
	if err != nil || len(parts) != 2 {
		return queue.ID{}, nil, fmt.Errorf("read an entry's row: %d parts, %w", len(parts), err)
	}
	text, err := parts[0].ToString()
	if err != nil {
		return queue.ID{}, nil, fmt.Errorf("read an entry's id: %w", err)
	}
	if id, err = parseEntryID(bucket, text); err != nil {
		return queue.ID{}, nil, err
	}
	fields, err = parts[1].AsStrMap()
	return id, fields, err
}

// decodeArrival decodes an entry, unless it is of another version: the script has assigned that
// to the consumer of its version. A damaged entry is reported once, stays with this consumer,
// unacknowledged and counted, and does not block the others.
func (c *consumer) decodeArrival(a arrival, fields map[string]string) bool {
	var err error
	switch a.Entry, err = decodeEntry(fields["h"], fields["l"], fields["c"]); {
	case errors.Is(err, ledger.ErrEntryVersion):
		return false
	case err != nil:
		c.held.put(a.bucket, a.ID)
		c.unread = append(c.unread, fmt.Errorf("entry %s of %s stays unacknowledged: %w", entryID(a.ID), a.ID.Stream, err))
	default:
		c.held.put(a.bucket, a.ID)
		c.buffer = append(c.buffer, a)
	}
	return true
}

// decodeEntry decodes an outbox entry from the fields of the stream: head, limit and claims.
func decodeEntry(h, l, c string) (seckill.Entry, error) {
	entry, err := ledger.DecodeHead(h)
	if err != nil {
		return seckill.Entry{}, fmt.Errorf("read an entry's head: %w", err)
	}
	if entry.Limit, err = strconv.Atoi(l); err != nil {
		return seckill.Entry{}, fmt.Errorf("read an entry's limit: %w", err)
	}
	if entry.Claims, err = ledger.DecodeClaims(c); err != nil {
		return seckill.Entry{}, fmt.Errorf("read an entry's claims: %w", err)
	}
	return entry, nil
}
