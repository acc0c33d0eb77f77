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

// How a server that says nothing is noticed. A connection that has received
// nothing for pingEvery is asked for a sign of life, and given up when none
// comes within replyTimeout: a frozen server costs its callers at most
// 2·pingEvery + replyTimeout, well below the second in which shoppers are
// answered, and what was under way on the connection ends as unknown. A stall
// of the server that is shorter, such as the fork for a snapshot, is sat out.
const (
	pingEvery    = 100 * time.Millisecond
	replyTimeout = 500 * time.Millisecond
	dialTimeout  = 300 * time.Millisecond
)

// topologyEvery is how often Sentinels and Clusters are asked who is master,
// beside the times when an answer shows that it changed: a missed notice must
// not leave an instance with the old master.
const topologyEvery = time.Second

// ringScale makes room for 2^12 calls on a connection: more than arrive while
// a frozen server is being noticed.
const ringScale = 12

// defaultWaitTimeout is how long replicas may take to have a write.
const defaultWaitTimeout = 500 * time.Millisecond

// Options are how the ledger's Redis is reached and used.
type Options struct {
	redisclient.Place

	// Prefix begins every key.
	Prefix string
	// Notes is the channel on which accepted buyers are told, in the step that
	// accepts them: a group (4 bytes), seckill.HashBuyer of each (8 bytes), and a
	// tag (8 bytes). Empty for none.
	Notes string
	// Tag is by whom a reservation was asked for: who has the same need not hear
	// its note. Adopted orders are asked for by nobody, whose tag is 0: they are
	// told to all.
	Tag uint64

	// WaitReplicas is how many replicas must have a write before its reply
	// counts; WaitTimeout, how long they may take.
	WaitReplicas int
	WaitTimeout  time.Duration

	// Home says over how many shards of which limit group a product is spread,
	// which never changes, and false if it is not known: figures of such a product
	// need the answers of these buckets, and not of a master that is away and has
	// none of them. Nil for a ledger that knows of no product.
	Home func(product uint32) (group uint32, shards int, known bool)

	Logger *slog.Logger

	// reply is how long a server may say nothing; replyTimeout when 0. Tests of
	// what has nothing to do with time give it more, on a loaded machine.
	reply time.Duration
	// silence is how long a consumer of the queue may give no sign of life before
	// others take over what it holds; defaultSilence when 0.
	silence time.Duration
}

// Ledger keeps the ledger in Redis.
type Ledger struct {
	call caller
	keys keyspace
	opt  Options

	fencedMu sync.Mutex
	fenced   []string // the processes at which the last fence was published

	stop    context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // background work
	silent  sync.Map       // when the log told of dead consumers of the queue, by name
}

var _ ledger.Ledger = (*Ledger)(nil)

// Open reaches the server and checks that it may keep a ledger: one that
// evicts keys would forget orders, and one that refuses the user a command
// would end a script in the middle.
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
	if err = l.unlessAway(l.CheckEviction(ctx)); !errors.Is(err, redisclient.ErrSentinel) {
		err = errors.Join(err, l.unlessAway(l.loadScripts(ctx)))
	}
	if err == nil {
		err = l.tryRights(ctx)
	}
	if err != nil {
		return nil, errors.Join(asRefusal(err), l.Shutdown(ctx))
	}
	return l, nil
}

// unlessAway lets a start go on without a master of a Cluster: products of the
// others are sold.
func (l *Ledger) unlessAway(err error) error {
	if errors.Is(err, ErrUnreached) {
		l.opt.Logger.Warn("Redis is opened without one of its masters", "error", err)
		return nil
	}
	return err
}

// ErrRefused says that Redis is there and does not let the user in, or not do
// what a ledger needs: waiting does not help.
var ErrRefused = errors.New("Redis refuses this user")

func asRefusal(err error) error {
	var reply *rueidis.RedisError
	if errors.As(err, &reply) && meaningOf(reply) == refused {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

func clientOption(opt *Options) rueidis.ClientOption {
	// A lost reply must not become a second call. The client then follows MOVED
	// and ASK, which say "not executed", and no more.
	option := opt.Place.Option("seckill", net.Dialer{Timeout: dialTimeout, KeepAlive: pingEvery})
	option.Sentinel.TopologyRefreshInterval = topologyEvery
	option.ClusterOption.ShardsRefreshInterval = topologyEvery
	option.ConnWriteTimeout = cmp.Or(opt.reply, replyTimeout) // also the time that a sign of life may take
	option.RingScaleEachConn = ringScale
	// One connection to each server: calls that come together leave and arrive
	// together, which is what makes a pipeline cheap.
	option.PipelineMultiplex = -1
	// A call always waits for its reply beside its context, never in a read
	// that only a deadline ends.
	option.AlwaysPipelining = true
	return option
}

// Shutdown stops what runs in the background and leaves the server. Calls
// that are under way end as unknown.
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

// Now is the server's clock.
func (l *Ledger) Now(ctx context.Context) (time.Time, error) {
	reply, err := l.call.told(ctx, nowScript, []string{l.keys.queue(0)}, nil)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the ledger's clock: %w", err)
	}
	parts, err := reply.AsIntSlice()
	if err != nil || len(parts) != 2 {
		return time.Time{}, fmt.Errorf("read the ledger's clock: %w", errors.Join(err, errReply))
	}
	return time.Unix(parts[0], parts[1]*int64(time.Microsecond)).UTC(), nil
}
