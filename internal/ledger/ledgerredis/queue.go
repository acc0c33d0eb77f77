package ledgerredis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/queue"
)

const (
	// workerGroup is the consumer group of every stream.
	workerGroup = "worker"
	// returnedName is the consumer that holds returned entries. Every reader takes them first.
	// Names of real consumers have a serial.
	returnedName = "returned"
	// defaultSilence is how long a consumer may send no heartbeat before its entries go to
	// others. They get them within 2 s after its death.
	defaultSilence = 1250 * time.Millisecond
)

// Bounds of single steps, so that each script takes at most a millisecond or two.
const (
	readMost   = 256  // entries of one bucket in one read
	ackMost    = 256  // entries acknowledged in one step
	moveMost   = 500  // entries returned in one step
	trimMost   = 1000 // entries trimmed in one step
	trimSlack  = 128  // shorter streams are not trimmed, because trimming removes whole nodes
	recallPage = 500  // entries in one page of a consumer's entries
)

// outboxQueue is the ledger's outbox as a queue: a stream per bucket, each with one consumer
// group.
type outboxQueue struct {
	client  rueidis.Client
	call    *caller
	keys    keyspace
	home    func(product uint32) (group uint32, shards int, known bool) // or nil
	silence time.Duration
	logger  *slog.Logger
	stop    context.Context // ends with the ledger, and stops its consumers' heartbeats
	running *sync.WaitGroup // the goroutines that send heartbeats
	silent  *sync.Map       // by name: when a dead consumer was logged
}

var _ queue.Queue = (*outboxQueue)(nil)

// Queue returns the ledger's outbox as a queue.
func (l *Ledger) Queue() queue.Queue { return l.outbox() }

// OutboxStats reads figures of the outbox for operators.
func (l *Ledger) OutboxStats(ctx context.Context) (OutboxStats, error) {
	return l.outbox().outboxStats(ctx)
}

// Workers counts the live workers of all instances.
func (l *Ledger) Workers(ctx context.Context) (int, error) {
	workers, _, err := l.outbox().living(ctx)
	return workers, err
}

func (l *Ledger) outbox() *outboxQueue {
	return &outboxQueue{
		client: l.call.client, call: &l.call, keys: l.keys, home: l.opt.Home, silence: cmp.Or(l.opt.silence, defaultSilence), logger: l.opt.Logger, stop: l.stop, running: &l.running, silent: &l.silent,
	}
}

// streamName returns the name of a bucket's stream in ids. It has no prefix, so the store's
// witnesses stay valid if the prefix changes.
func streamName(bucket int) string { return "b" + strconv.Itoa(bucket) }

// bucketNamed is the inverse of streamName. It returns false for a stream of another queue.
func bucketNamed(stream string) (int, bool) {
	bucket, err := strconv.Atoi(strings.TrimPrefix(stream, "b"))
	if err != nil || bucket < 0 || bucket >= buckets || stream != streamName(bucket) {
		return 0, false
	}
	return bucket, true
}

// entryID returns an id in the stream's form: SEQ-TAG.
func entryID(id queue.ID) string {
	return strconv.FormatUint(id.Seq, 10) + "-" + strconv.FormatUint(id.Tag, 10)
}

func parseEntryID(bucket int, text string) (queue.ID, error) {
	seq, tag, found := strings.Cut(text, "-")
	id := queue.ID{Stream: streamName(bucket)}
	var err, err2 error
	id.Seq, err = strconv.ParseUint(seq, 10, 64)
	id.Tag, err2 = strconv.ParseUint(tag, 10, 64)
	if !found || err != nil || err2 != nil {
		return queue.ID{}, fmt.Errorf("%q is not an id of an entry", text)
	}
	return id, nil
}

// HighestWitness returns, per stream, the highest id that an acknowledgement has carried. If a
// part of the server is unavailable, it still returns the rest.
func (q *outboxQueue) HighestWitness(ctx context.Context) ([]queue.ID, error) {
	calls := make([]queueCall, buckets)
	for bucket := range calls {
		calls[bucket] = queueCall{keys: []string{q.keys.out(bucket), q.keys.queue(bucket)}}
	}
	var all []queue.ID
	var failures []error
	for bucket, result := range q.runBriefly(ctx, witnessScript, calls...) {
		id, err := witnessOf(bucket, result)
		if err != nil {
			failures = append(failures, fmt.Errorf("read the highest witness of %s: %w", streamName(bucket), err))
		} else if !id.IsZero() {
			all = append(all, id)
		}
	}
	return all, cmp.Or(failures...)
}

// witnessOf returns the zero ID for a bucket without a witness.
func witnessOf(bucket int, result rueidis.RedisResult) (queue.ID, error) {
	text, err := result.ToString()
	if rueidis.IsRedisNil(err) {
		return queue.ID{}, nil
	}
	if err != nil {
		return queue.ID{}, err
	}
	return parseEntryID(bucket, text)
}

// Consumer adds a worker. The server knows it by its name and a serial, so after a crash the
// same name gives another consumer, and the entries of the old one are taken over like those of
// any silent consumer. The server is not asked, so a worker can start while a part of it is
// unavailable.
func (q *outboxQueue) Consumer(ctx context.Context, name string) (queue.Consumer, error) {
	return q.join(ctx, name, false)
}

// Relay adds a consumer that is counted as a relay.
func (q *outboxQueue) Relay(ctx context.Context, name string) (queue.Consumer, error) {
	return q.join(ctx, name, true)
}

func (q *outboxQueue) join(ctx context.Context, name string, relay bool) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, errors.New("join queue: a consumer needs a name")
	}
	c := newConsumer(q, name+":"+strconv.FormatUint(rand.Uint64(), 16), relay)
	if q.stop.Err() == nil {
		q.running.Go(c.sendHeartbeats)
	}
	return c, nil
}
