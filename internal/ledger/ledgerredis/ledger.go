package ledgerredis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
)

// How a silent server is noticed. A connection that has received nothing for pingEvery sends a
// ping, and is closed if there is no reply within replyTimeout. So a frozen server costs its
// callers at most 2·pingEvery + replyTimeout. That is well below the second in which buyers get
// an answer. Calls in flight on the connection end as unknown. A shorter stall of the server,
// such as the fork for a snapshot, closes no connection.
const (
	pingEvery    = 100 * time.Millisecond
	replyTimeout = 500 * time.Millisecond
	dialTimeout  = 300 * time.Millisecond
)

// topologyEvery is how often Sentinels and Clusters are asked for the master, in addition to
// answers that show a change. A missed notice must not keep an instance at the old master.
const topologyEvery = time.Second

// ringScale is the size of a connection's buffer: 2^12 calls, more than arrive while a frozen
// server is being noticed.
const ringScale = 12

// defaultWaitTimeout is how long replicas may take to receive a write.
const defaultWaitTimeout = 500 * time.Millisecond

// Options configure the ledger and its connection to Redis.
type Options struct {
	redisclient.Place

	// Prefix begins every key.
	Prefix string
	// Notes is the channel for accepted buyers. The step that accepts them publishes a group (4
	// bytes), seckill.HashBuyer of each (8 bytes), and a tag (8 bytes). Empty: no notes.
	Notes string
	// Tag identifies the sender of a reservation: an instance ignores notes with its own tag.
	// Adopted orders have tag 0, so all instances read their notes.
	Tag uint64

	// WaitReplicas is how many replicas must have a write before its reply counts, WaitTimeout
	// how long they may take.
	WaitReplicas int
	WaitTimeout  time.Duration

	// Home returns a product's limit group and number of shards, which never change, and false
	// if it does not know them. Figures of a known product need answers of its buckets only,
	// not of an unavailable master that has none of them. It may be nil.
	Home func(product uint32) (group uint32, shards int, known bool)

	Logger *slog.Logger

	// reply replaces replyTimeout, if not 0. Tests that do not depend on time set it higher,
	// because of loaded machines.
	reply time.Duration
	// silence is how long a consumer of the queue may send no heartbeat before others take over
	// its entries. 0 means defaultSilence.
	silence time.Duration
}

// Ledger keeps the ledger in Redis.
type Ledger struct {
	call caller
	keys keyspace
	opt  Options

	fencedMu sync.Mutex
	fenced   []string // the processes that answered the last fence

	stop    context.Context // ends with Shutdown
	cancel  context.CancelFunc
	running sync.WaitGroup // background work
	silent  sync.Map       // by name: when a dead consumer of the queue was logged
}

var _ ledger.Ledger = (*Ledger)(nil)

// Open connects to the server and checks that it is fit for a ledger. A server that evicts keys
// would forget orders, and one that forbids the user a command would end a script in the
// middle.
func Open(ctx context.Context, opt Options) (*Ledger, error) {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	opt.WaitTimeout = cmp.Or(opt.WaitTimeout, defaultWaitTimeout)
	client, err := redisclient.Connect(ctx, clientOption(&opt))
	if err != nil {
		return nil, fmt.Errorf("reach Redis at %v: %w", opt.Addrs, asRefusal(err))
	}
	l := &Ledger{
		call: caller{client: client, keys: keyspace{prefix: opt.Prefix}, replicas: opt.WaitReplicas, waitTimeout: opt.WaitTimeout},
		keys: keyspace{prefix: opt.Prefix},
		opt:  opt,
	}
	l.stop, l.cancel = context.WithCancel(context.Background())
	if err = l.ignoreUnreached(l.CheckEviction(ctx)); !errors.Is(err, redisclient.ErrSentinel) {
		err = errors.Join(err, l.ignoreUnreached(l.loadScripts(ctx)))
	}
	if err == nil {
		err = l.tryRights(ctx)
	}
	if err != nil {
		return nil, errors.Join(asRefusal(err), l.Shutdown(ctx))
	}
	return l, nil
}

// ignoreUnreached returns nil if only a master of a Cluster is unreachable: products on the others
// can be sold.
func (l *Ledger) ignoreUnreached(err error) error {
	if errors.Is(err, ErrUnreached) {
		l.opt.Logger.Warn("Redis is opened, but one of its masters cannot be reached", "error", err)
		return nil
	}
	return err
}

// ErrRefused means that Redis runs but refuses the user or a command that a ledger needs.
// Waiting does not help.
var ErrRefused = errors.New("Redis refuses this user")

func asRefusal(err error) error {
	var reply *rueidis.RedisError
	if errors.As(err, &reply) && meaningOf(reply) == refused {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

func clientOption(opt *Options) rueidis.ClientOption {
	// A lost reply must not cause a second call. So the client follows only MOVED and ASK,
	// which mean "not executed".
	option := opt.Place.Option("seckill", net.Dialer{Timeout: dialTimeout, KeepAlive: pingEvery})
	option.Sentinel.TopologyRefreshInterval = topologyEvery
	option.ClusterOption.ShardsRefreshInterval = topologyEvery
	option.ConnWriteTimeout = cmp.Or(opt.reply, replyTimeout) // also bounds the reply to a ping
	option.RingScaleEachConn = ringScale
	// One connection to each server. Calls that come together are sent and answered together,
	// which makes pipelining cheap.
	option.PipelineMultiplex = -1
	// A call waits for its reply and its context, never in a read that only a deadline ends.
	option.AlwaysPipelining = true
	return option
}

// Shutdown stops background work and disconnects. Calls in flight end as unknown.
func (l *Ledger) Shutdown(ctx context.Context) error {
	l.cancel()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		l.running.Wait()
		l.call.client.Close()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("leave Redis: %w", ctx.Err())
	}
}

func (l *Ledger) Now(ctx context.Context) (time.Time, error) {
	reply, err := l.call.runUnreplicated(ctx, nowScript, []string{l.keys.queue(0)}, nil)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the ledger's clock: %w", err)
	}
	parts, err := reply.AsIntSlice()
	if err != nil || len(parts) != 2 {
		return time.Time{}, fmt.Errorf("read the ledger's clock: %w", errors.Join(err, errReply))
	}
	return time.Unix(parts[0], parts[1]*int64(time.Microsecond)).UTC(), nil
}
