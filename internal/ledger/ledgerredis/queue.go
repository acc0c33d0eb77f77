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
	// returnedName is the consumer under which entries stand that were handed
	// back: whoever reads next takes them first. No living consumer has a name
	// without a serial.
	returnedName = "returned"
	// defaultSilence is how long a consumer may give no sign of life before what
	// it holds is given to others: within 2 s after its death they have it.
	defaultSilence = 1250 * time.Millisecond
)

// Bounds of single steps, so that no script takes long (a millisecond or two)
// however much there is.
const (
	readMost   = 256  // entries of one bucket in one read
	ackMost    = 256  // entries in one acknowledgement
	moveMost   = 500  // entries handed back in one step
	trimMost   = 1000 // entries trimmed in one step
	trimSlack  = 128  // entries up to which a stream is left alone: trimming goes by whole nodes
	recallPage = 500  // entries in one page of what a consumer holds
)

// outboxQueue is the ledger's outbox seen as a queue: a stream per bucket, each
// with one consumer group.
type outboxQueue struct {
	client  rueidis.Client
	call    *caller
	keys    keyspace
	home    func(product uint32) (group uint32, shards int, known bool) // or nil
	silence time.Duration
	logger  *slog.Logger
	stop    context.Context // ends with the ledger, and with it its consumers' signs of life
	running *sync.WaitGroup // what gives them
	silent  *sync.Map       // when the log told of dead consumers, by name
}

var _ queue.Queue = (*outboxQueue)(nil)

// Queue is the ledger's outbox as a queue.
func (l *Ledger) Queue() queue.Queue { return l.outbox() }

// OutboxStats reads figures of the outbox for those who watch it.
func (l *Ledger) OutboxStats(ctx context.Context) (OutboxStats, error) {
	return l.outbox().outboxStats(ctx)
}

// Workers counts the workers of all instances that are alive.
func (l *Ledger) Workers(ctx context.Context) (int, error) {
	workers, _, err := l.outbox().living(ctx)
	return workers, err
}

func (l *Ledger) outbox() *outboxQueue {
	return &outboxQueue{
		client: l.call.client, call: &l.call, keys: l.keys, home: l.opt.Home, silence: cmp.Or(l.opt.silence, defaultSilence), logger: l.opt.Logger, stop: l.stop, running: &l.running, silent: &l.silent,
	}
}

// streamName is how ids name a bucket's stream. It is without the prefix, so
// that what the store remembers outlives a change of it.
func streamName(bucket int) string { return "b" + strconv.Itoa(bucket) }

// bucketNamed is the inverse; false for a stream of another queue.
func bucketNamed(stream string) (int, bool) {
	bucket, err := strconv.Atoi(strings.TrimPrefix(stream, "b"))
	if err != nil || bucket < 0 || bucket >= buckets || stream != streamName(bucket) {
		return 0, false
	}
	return bucket, true
}

// entryID is an id as the stream has it: SEQ-TAG.
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
		return queue.ID{}, fmt.Errorf("%q is no id of an entry", text)
	}
	return id, nil
}

// HighestWitness is, per stream, the highest id that an acknowledgement has
// carried. A part of the server that is away does not hide the rest.
func (q *outboxQueue) HighestWitness(ctx context.Context) ([]queue.ID, error) {
	calls := make([]queueCall, buckets)
	for bucket := range calls {
		calls[bucket] = queueCall{keys: []string{q.keys.out(bucket), q.keys.queue(bucket)}}
	}
	var all []queue.ID
	var failures []error
	for bucket, result := range q.glance(ctx, witnessScript, calls...) {
		id, err := witnessOf(bucket, result)
		if err != nil {
			failures = append(failures, fmt.Errorf("read the highest witness of %s: %w", streamName(bucket), err))
		} else if !id.IsZero() {
			all = append(all, id)
		}
	}
	return all, cmp.Or(failures...)
}

// witnessOf is zero for a bucket that has none.
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

// Consumer joins the workers. The server knows the consumer by its name and a
// serial: one that crashed and came back under its old name is another, whose
// predecessor's entries are taken over like those of any silent consumer. The
// server is not asked, so that a worker can start while a part of it is away.
func (q *outboxQueue) Consumer(ctx context.Context, name string) (queue.Consumer, error) {
	return q.join(ctx, name, false)
}

// Relay joins as Consumer does, and signs in among the relays.
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
		q.running.Go(c.live)
	}
	return c, nil
}
