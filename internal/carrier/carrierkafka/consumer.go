package carrierkafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"seckill/internal/background"
	"seckill/internal/carrier"
	"seckill/internal/client/kafkaclient"
)

// Timeouts of the membership. A dead process loses its partitions after
// sessionTimeout. Kafka's default of 45 s would delay their orders too long.
const (
	sessionTimeout    = 8 * time.Second
	heartbeatInterval = 2 * time.Second
	rebalanceTimeout  = 20 * time.Second
	// An engine that stops waits some seconds for its brokers. The last commit
	// and leaving the group fit into that time.
	lastCommitTimeout = 2 * time.Second
	leaveTimeout      = time.Second
)

// Bounds of memory. Fetching stops while one of them is reached: maxReady
// messages that no receiver has taken, maxHeld unsettled messages or heldBytes
// of them, and maxTracked messages from the first unsettled one of each
// partition. The client itself buffers one fetch per broker. Batches are not
// decompressed, so a fetch takes at most 25 times its size in memory, if
// another sender writes empty records.
const (
	maxReady       = 1000
	maxHeld        = 16_384
	heldBytes      = 64 << 20
	maxTracked     = 1 << 20
	maxPoll        = 500
	fetchBytes     = 4 << 20
	partitionBytes = 1 << 20
	fetchWait      = 500 * time.Millisecond
)

// againAfter is the delay after which a message comes again that was given
// back.
const againAfter = 3 * time.Second

// errorPause is the pause after a poll that returned only errors.
const errorPause = 200 * time.Millisecond

// delivery is the handle of a fetched message.
type delivery struct {
	message carrier.Message
	from    *partition
	offset  int64
	size    int
	settled bool
}

// consumer is one membership of the group, from joining to leaving.
type consumer struct {
	client *kgo.Client
	topic  *kafkaclient.Topic
	id     [16]byte // id of the topic when the consumer joined
	log    *slog.Logger

	cancel context.CancelFunc
	loops  sync.WaitGroup
	end    func() error // finish, once

	// committing is held from reading the offsets to the broker's answer, so
	// that an older commit never follows a newer one.
	committing sync.Mutex

	mu      sync.Mutex
	owned   map[int32]*partition
	ready   []*delivery
	held    int           // unsettled messages
	bytes   int           // bytes of unsettled messages
	tracked int           // slots of all partitions
	changed chan struct{} // closed and replaced when ready grows or the consumer ends
	room    chan struct{} // wakes the poll loop
	ended   bool
}

// newConsumer starts to join the group and to fetch. It needs no broker yet.
func newConsumer(link kafkaclient.Options, topic *kafkaclient.Topic, group string, log *slog.Logger) (*consumer, error) {
	c := &consumer{
		topic: topic, id: topic.ID(), log: log,
		owned: make(map[int32]*partition), changed: make(chan struct{}), room: make(chan struct{}, 1),
	}
	c.end = sync.OnceValue(c.finish)
	var err error
	c.client, err = link.NewClient(log,
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic.Name()), kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(sessionTimeout), kgo.HeartbeatInterval(heartbeatInterval), kgo.RebalanceTimeout(rebalanceTimeout),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		// A log that was lost is read from its beginning: all its messages are
		// new.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxBytes(fetchBytes), kgo.FetchMaxPartitionBytes(partitionBytes), kgo.FetchMaxWait(fetchWait),
		kgo.WithDecompressor(refuseCompressed{}),
		// A rebalance waits only until fetched messages are added.
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.AdjustFetchOffsetsFn(c.begin), kgo.OnPartitionsAssigned(c.assigned), kgo.OnPartitionsRevoked(c.revoked), kgo.OnPartitionsLost(c.lost))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.loops.Go(func() { c.poll(ctx) })
	c.loops.Go(func() { c.commitLoop(ctx) })
	return c, nil
}

// poll fetches while there is room.
func (c *consumer) poll(ctx context.Context) {
	for c.waitForRoom(ctx) {
		fetches := c.client.PollRecords(ctx, maxPoll)
		if ctx.Err() == nil {
			c.add(fetches)
			c.skip(fetches)
		}
		failed := c.report(fetches)
		c.client.AllowRebalance()
		if failed && fetches.Empty() {
			_ = background.Pause(ctx, errorPause) // the loop checks ctx
		}
	}
}

// waitForRoom returns false when the context has ended.
func (c *consumer) waitForRoom(ctx context.Context) bool {
	for ctx.Err() == nil {
		c.mu.Lock()
		room := len(c.ready) < maxReady && c.held < maxHeld && c.bytes < heldBytes && c.tracked < maxTracked
		c.mu.Unlock()
		if room {
			return true
		}
		select {
		case <-c.room:
		case <-ctx.Done():
		}
	}
	return false
}

// add makes fetched messages ready.
func (c *consumer) add(fetches kgo.Fetches) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.ready)
	fetches.EachRecord(func(r *kgo.Record) {
		c.addMessage(r.Partition, r.Offset, r.Offset+1, messageOf(r))
	})
	if len(c.ready) > before {
		c.signal()
	}
}

// addMessage makes a message ready that covers the offsets from offset up to
// next. The caller holds mu.
func (c *consumer) addMessage(number int32, offset, next int64, message carrier.Message) {
	p := c.owned[number]
	if p == nil {
		return
	}
	if p.isSetBack(offset) {
		c.log.Warn("kafka: a partition's log was set back, it is read from there", "topic", c.topic.Name(), "partition", number, "offset", offset, "was", p.last)
		c.drop(p)
		p = newPartition(number)
		c.owned[number] = p
	}
	d := &delivery{message: message, from: p, offset: offset, size: len(message.Key) + len(message.Body) + len(message.Signature)}
	p.add(offset, next)
	c.tracked++
	c.hold(p, 1, d.size)
	c.ready = append(c.ready, d)
}

// hold counts unsettled messages of a partition. The caller holds mu.
func (c *consumer) hold(p *partition, messages, bytes int) {
	p.held += messages
	p.bytes += bytes
	c.held += messages
	c.bytes += bytes
}

// messageOf copies the used parts of a record. A record shares memory with its
// whole batch, with headers of any size, which would stay in memory uncounted.
func messageOf(r *kgo.Record) carrier.Message {
	m := carrier.Message{Key: string(r.Key), Body: slices.Clone(r.Value)}
	for _, h := range r.Headers {
		if h.Key == carrier.SignatureHeader {
			m.Signature = string(h.Value)
		}
	}
	return m
}

// report logs the errors of a fetch and reports whether there was one. The
// client continues by itself.
func (c *consumer) report(fetches kgo.Fetches) bool {
	failed := false
	fetches.EachError(func(_ string, number int32, err error) {
		if errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) || errors.Is(err, kgo.ErrMaxDecompress) {
			return
		}
		failed = true
		c.log.Debug("kafka: fetch", "topic", c.topic.Name(), "partition", number, "error", err)
		if errors.Is(err, kerr.UnknownTopicID) {
			c.topic.Check()
		}
	})
	return failed
}

// signal wakes receivers. The caller holds mu.
func (c *consumer) signal() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// wakePoll makes the poll loop check again for room.
func (c *consumer) wakePoll() {
	select {
	case c.room <- struct{}{}:
	default:
	}
}

// take returns up to most ready messages. If there are none, the channel
// closes when that may have changed, or ended is true.
func (c *consumer) take(most int) (got []carrier.Delivery, changed <-chan struct{}, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for ; n < len(c.ready) && len(got) < most; n++ {
		if d := c.ready[n]; !d.settled { // a message that was given back may be settled meanwhile
			got = append(got, carrier.Delivery{Message: d.message, Handle: d})
		}
	}
	clear(c.ready[:n])
	c.ready = c.ready[n:]
	if n > 0 {
		c.wakePoll()
	}
	return got, c.changed, c.ended
}

// settle settles deliveries. It ignores those of lost partitions.
func (c *consumer) settle(deliveries []carrier.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range deliveries {
		d, ok := deliveries[i].Handle.(*delivery)
		if !ok || d.settled || d.from.lost {
			continue
		}
		d.settled = true
		c.hold(d.from, -1, -d.size)
		c.tracked -= d.from.settle(d.offset)
	}
	c.wakePoll()
}

// again makes deliveries ready after some seconds. They stay in this process,
// because Kafka cannot take a message back.
func (c *consumer) again(deliveries []carrier.Delivery) {
	back := make([]*delivery, 0, len(deliveries))
	for i := range deliveries {
		if d, ok := deliveries[i].Handle.(*delivery); ok {
			back = append(back, d)
		}
	}
	time.AfterFunc(againAfter, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, d := range back {
			if d.settled || d.from.lost {
				continue
			}
			c.ready = append(c.ready, d)
		}
		c.signal()
	})
}

// assigned starts to track partitions that this process now owns.
func (c *consumer) assigned(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, number := range partitions[c.topic.Name()] {
		if p := c.owned[number]; p != nil {
			c.drop(p)
		}
		c.owned[number] = newPartition(number)
	}
}

// revoked commits and gives up partitions. When it returns, they get another
// owner, who gets their unsettled messages.
func (c *consumer) revoked(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	numbers := partitions[c.topic.Name()]
	if len(numbers) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	if err := c.commit(ctx, numbers); err != nil {
		c.log.Debug("kafka: commit of revoked partitions", "topic", c.topic.Name(), "error", err)
	}
	c.giveUp(numbers)
}

// lost gives up partitions that already have another owner.
func (c *consumer) lost(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	c.giveUp(partitions[c.topic.Name()])
}

func (c *consumer) giveUp(numbers []int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, number := range numbers {
		if p := c.owned[number]; p != nil {
			c.drop(p)
			delete(c.owned, number)
		}
	}
}

// drop forgets the messages of a partition. The caller holds mu.
func (c *consumer) drop(p *partition) {
	p.lost = true
	c.tracked -= len(p.unsettled)
	c.hold(p, -p.held, -p.bytes)
	c.ready = slices.DeleteFunc(c.ready, func(d *delivery) bool { return d.from == p })
	c.wakePoll()
}

// leave commits settled messages, gives back the others and leaves the group.
// It returns when the context ends, and continues in the background for a
// bounded time. A second call waits for the first.
func (c *consumer) leave(ctx context.Context) error {
	c.mu.Lock()
	c.ended = true
	c.signal()
	c.mu.Unlock()
	if err := background.CallWithin(ctx, c.end); err != nil {
		return fmt.Errorf("kafka: leave the group: %w", err)
	}
	return nil
}

// finish does the work of leave, once.
func (c *consumer) finish() error {
	c.cancel()
	c.loops.Wait()
	c.client.AllowRebalance()
	ctx, cancel := context.WithTimeout(context.Background(), lastCommitTimeout)
	err := c.commit(ctx, nil)
	cancel()
	c.mu.Lock()
	for _, p := range c.owned {
		c.drop(p)
	}
	clear(c.owned)
	c.ready = nil
	c.mu.Unlock()
	ctx, cancel = context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	_ = c.client.LeaveGroupContext(ctx) // otherwise the session times out
	c.client.CloseAllowingRebalance()
	if err != nil {
		return fmt.Errorf("the last commit failed, settled messages may come again: %w", err)
	}
	return nil
}
