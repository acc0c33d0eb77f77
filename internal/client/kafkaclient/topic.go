package kafkaclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/semaphore"

	"seckill/internal/background"
)

const (
	// watchEvery is the interval between checks of the topic, and watchTimeout
	// bounds one check.
	watchEvery   = 2 * time.Second
	watchTimeout = 4 * time.Second
	// deliveryTimeout is how long the client tries to store a record. A record
	// may be stored that long after Write has returned.
	deliveryTimeout = 10 * time.Second
	storeTimeout    = 5 * time.Second
	linger          = 5 * time.Millisecond // Write does not wait for it
	// unsentBytes bounds the records on their way to the broker. Each counts
	// with its body and recordRoom.
	unsentBytes = 32 << 20
	maxUnsent   = unsentBytes / recordRoom
	// recordRoom is more than the overhead of a batch with one record: 65 bytes
	// for the batch, at most 40 for the record, and its key and headers.
	recordRoom = 512
	// headBytes bounds the key and the headers together.
	headBytes    = 384
	adminRetries = 3
)

// ErrTooLarge says that a record is larger than the topic accepts. Nothing was
// written.
var ErrTooLarge = errors.New("kafka: record is larger than the topic takes")

// TopicOptions name a topic.
type TopicOptions struct {
	Name string
	// Create creates a missing topic with Partitions and Replicas, in Open and
	// later, for example after a broker lost its disk.
	Create               bool
	Partitions, Replicas int
	// NoCompression writes and stores records uncompressed. A topic whose
	// broker compresses them is refused.
	NoCompression bool
	// IfLost is the advice in the log if the topic was created again without
	// its messages.
	IfLost string
}

// Topic writes one topic and watches it. After an outage it works again by
// itself: during it, calls return errors within their context. If the topic is
// deleted and created again, writes go to the new one within seconds.
//
// Methods are safe for concurrent use.
type Topic struct {
	link  Options
	opt   TopicOptions
	log   *slog.Logger
	admin *kadm.Client

	room      *semaphore.Weighted
	writer    atomic.Pointer[writer]
	checkNow  chan struct{}         // requests a check by watch
	lastError atomic.Pointer[error] // error of the latest check, or nil

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// writer is a client for one incarnation of the topic. franz-go does not follow
// a topic that was deleted and created again, so the writer is then replaced.
type writer struct {
	client   *kgo.Client
	id       [16]byte
	maxBatch int
	made     time.Time
	suspect  atomic.Bool // a write failed, and not because of a timeout
}

// OpenTopic checks the topic. If it is missing and may be created, OpenTopic
// creates it. It waits for the broker until the context ends.
func OpenTopic(ctx context.Context, link Options, opt TopicOptions, log *slog.Logger) (*Topic, error) {
	t := &Topic{link: link, opt: opt, log: log, room: semaphore.NewWeighted(unsentBytes), checkNow: make(chan struct{}, 1)}
	admin, err := link.NewClient(log, kgo.RequestRetries(adminRetries))
	if err != nil {
		return nil, err
	}
	t.admin = kadm.NewClient(admin)
	t.admin.SetTimeoutMillis(int32(tryTimeout.Milliseconds()))
	d, err := t.await(ctx)
	if err == nil {
		err = t.replaceWriter(d)
	}
	if err != nil {
		go t.admin.Close() // in the background: it waits for a frozen broker up to answerTimeout
		return nil, err
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.tasks.Go(t.watch)
	return t, nil
}

// Name returns the name of the topic.
func (t *Topic) Name() string { return t.opt.Name }

// ID returns an id that changes when the topic was deleted and created again.
// It may be some seconds late.
func (t *Topic) ID() [16]byte { return t.writer.Load().id }

// MaxBytes returns the size of the largest body of a record.
func (t *Topic) MaxBytes() int { return t.writer.Load().maxBatch - recordRoom }

// Ping reports whether the broker answers and every partition has a leader.
func (t *Topic) Ping(ctx context.Context) error {
	_, err := t.metadata(ctx)
	return err
}

// Write returns nil when the broker and its in-sync replicas have stored all
// records. After an error any of them may be stored, even some seconds later.
func (t *Topic) Write(ctx context.Context, records []*kgo.Record) error {
	if len(records) == 0 {
		return nil
	}
	size, err := t.check(records)
	if err != nil {
		return err
	}
	for {
		w := t.writer.Load()
		err := t.writeBy(ctx, w, size, records)
		switch {
		case err == nil:
			return nil
		case t.ctx.Err() != nil:
			return errClosed
		case errors.Is(err, kgo.ErrClientClosed):
			continue // the writer was replaced
		case isEnded(err), errors.Is(err, kgo.ErrRecordTimeout):
			return t.notStored(err)
		}
		w.suspect.Store(true)
		t.Check()
		return t.explain(err)
	}
}

// writeBy writes records with one writer.
func (t *Topic) writeBy(ctx context.Context, w *writer, size int64, records []*kgo.Record) error {
	if err := t.room.Acquire(ctx, size); err != nil {
		return err
	}
	return background.CallWithin(ctx, func() error {
		defer t.room.Release(size)
		// The records do not use the caller's context: franz-go would fail
		// records of other callers in the same batch.
		return w.client.ProduceSync(context.Background(), records...).FirstErr()
	})
}

// notStored returns the error of a timeout, with the error of the latest check
// of the topic, if there is one.
func (t *Topic) notStored(err error) error {
	if why := t.lastError.Load(); why != nil {
		return fmt.Errorf("%w; records were not stored: %w", *why, err)
	}
	return fmt.Errorf("kafka: the broker did not store the records in time: %w", err)
}

// check returns the room that the records need.
func (t *Topic) check(records []*kgo.Record) (int64, error) {
	size, most := 0, t.MaxBytes()
	for _, r := range records {
		head := len(r.Key)
		for _, h := range r.Headers {
			head += len(h.Key) + len(h.Value)
		}
		if len(r.Value) > most || head > headBytes {
			return 0, ErrTooLarge
		}
		size += len(r.Value) + recordRoom
	}
	return int64(min(size, unsentBytes)), nil
}

// Check requests a check of the topic now.
func (t *Topic) Check() {
	select {
	case t.checkNow <- struct{}{}:
	default:
	}
}

// watch replaces the writer if the topic is another one, or if the writer
// failed although the topic is well.
func (t *Topic) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-t.checkNow:
		case <-tick.C:
		}
		t.lastError.Store(t.refresh())
	}
}

// refresh checks the topic. It returns nil if all is well.
func (t *Topic) refresh() *error {
	err := t.update()
	if err == nil || t.ctx.Err() != nil {
		return nil
	}
	t.log.Debug("kafka: check the topic", "topic", t.opt.Name, "error", err)
	return &err
}

func (t *Topic) update() error {
	ctx, cancel := context.WithTimeout(t.ctx, watchTimeout)
	defer cancel()
	w := t.writer.Load()
	d, err := t.metadata(ctx)
	if err == nil && d.id == w.id && (!w.suspect.Load() || time.Since(w.made) < watchEvery) {
		return nil
	}
	if d, err = t.inspect(ctx); err != nil {
		return err
	}
	if d.id != w.id {
		t.log.Warn("kafka: the topic was created again, its earlier messages are gone: "+t.opt.IfLost, "topic", t.opt.Name)
	}
	return t.replaceWriter(d)
}

func (t *Topic) replaceWriter(d description) error {
	compression := []kgo.CompressionCodec{kgo.Lz4Compression(), kgo.NoCompression()}
	if t.opt.NoCompression {
		compression = []kgo.CompressionCodec{kgo.NoCompression()}
	}
	client, err := t.link.NewClient(t.log,
		kgo.DefaultProduceTopic(t.opt.Name), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.ProducerBatchMaxBytes(int32(d.maxBatch)), kgo.ProducerBatchCompression(compression...),
		kgo.ProducerLinger(linger), kgo.MaxBufferedRecords(maxUnsent+1),
		kgo.ProduceRequestTimeout(storeTimeout), kgo.RecordDeliveryTimeout(deliveryTimeout),
		// A record whose timeout has passed must not stay in memory until a
		// frozen broker answers. Duplicates are allowed, an unbounded buffer is
		// not.
		kgo.AllowIdempotentProduceCancellation())
	if err != nil {
		return err
	}
	old := t.writer.Swap(&writer{client: client, id: d.id, maxBatch: d.maxBatch, made: time.Now()})
	if old != nil {
		t.tasks.Go(old.client.Close) // fails records that are not sent
	}
	return nil
}

// Close fails records that are not stored yet. It waits until the context ends
// at most.
func (t *Topic) Close(ctx context.Context) error {
	if t.ctx.Err() != nil {
		return nil
	}
	t.cancel()
	err := background.WaitWithin(ctx, func() {
		t.tasks.Wait() // after this, watch makes no writer
		t.writer.Load().client.Close()
		t.admin.Close()
	})
	if err != nil {
		return fmt.Errorf("kafka: close: %w", err)
	}
	return nil
}
