// Package onetimeredis is a onetime.Register in Redis for many instances. A use
// is a key, PREFIX + "spent:{DIGEST}", which expires by itself. Its value is
// the outcome.
//
// A use is as durable as the server's settings: if Redis loses it in a crash or
// a failover, the id can be used again.
package onetimeredis

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/client/redisclient"
	"seckill/internal/onetime"
)

const (
	dialTimeout = 300 * time.Millisecond
	// callTimeout bounds a use. The buyer who waits gets an answer within a
	// second.
	callTimeout = 500 * time.Millisecond
	// topologyEvery is how often Sentinels and Clusters are asked for the
	// master, besides the times when an answer shows a change.
	topologyEvery = time.Second
)

// Options say where Redis is.
type Options struct {
	redisclient.Place
	// Prefix is the beginning of every key.
	Prefix string
	// Now is the clock for the ends of uses. Open does not read it.
	Now func() time.Time
}

// Register is a onetime.Register. It is safe for concurrent use.
type Register struct {
	client rueidis.Client
	opt    Options
}

var _ onetime.Register = (*Register)(nil)

// Open connects to the server with its own client, so that uses do not wait
// behind reservations or each other.
func Open(ctx context.Context, opt Options) (*Register, error) {
	option := opt.Place.Option("seckill-spent", net.Dialer{Timeout: dialTimeout, KeepAlive: callTimeout})
	option.ConnWriteTimeout = callTimeout
	option.PipelineMultiplex = -1
	option.AlwaysPipelining = true
	option.Sentinel.TopologyRefreshInterval = topologyEvery
	option.ClusterOption.ShardsRefreshInterval = topologyEvery
	client, err := redisclient.Connect(ctx, option)
	if err != nil {
		return nil, fmt.Errorf("reach Redis at %v: %w", opt.Addrs, err)
	}
	r := &Register{client: client, opt: opt}
	if err := r.tryRights(ctx); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

// ErrRefused says that the Redis user lacks a permission that a register needs.
// Waiting does not help.
var ErrRefused = errors.New("Redis refuses this user")

// tryRights makes a test use twice, to try both commands. It ignores other
// errors, which may be temporary.
func (r *Register) tryRights(ctx context.Context) error {
	for range 2 {
		_, err := r.settle(ctx, "trial", 0, onetime.MinLife)
		var reply *rueidis.RedisError
		if errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "NOPERM") {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	return nil
}

// Close disconnects. It sends QUIT, which waits for a frozen Redis until ctx
// ends.
func (r *Register) Close(ctx context.Context) error {
	if _, ended := redisclient.Within(ctx, func() error { r.client.Close(); return nil }); !ended {
		return fmt.Errorf("leave Redis: %w", ctx.Err())
	}
	return nil
}

// Spend implements onetime.Register.
func (r *Register) Spend(ctx context.Context, id string, until time.Time) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.claim(ctx, r.key(id), 0, r.life(until))
}

// Settle implements onetime.Register.
func (r *Register) Settle(ctx context.Context, id string, outcome onetime.Outcome, until time.Time) (onetime.Outcome, error) {
	return r.settle(ctx, id, outcome, r.life(until))
}

func (r *Register) life(until time.Time) time.Duration {
	return max(until.Sub(r.opt.Now()), onetime.MinLife)
}

// settle makes a use or reads it. If the key expires between the two calls, the
// use has ended and is made again.
func (r *Register) settle(ctx context.Context, id string, outcome onetime.Outcome, life time.Duration) (onetime.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for key := r.key(id); ; {
		if first, err := r.claim(ctx, key, outcome, life); err != nil || first {
			return outcome, err
		}
		value, err := r.do(ctx, r.client.B().Get().Key(key).Build()).ToString()
		switch {
		case rueidis.IsRedisNil(err):
			continue
		case err != nil:
			return 0, fmt.Errorf("read a use: %w", err)
		case len(value) != 1:
			return 0, errors.New("read a use: the key is not this register's")
		}
		return onetime.Outcome(value[0]), nil
	}
}

// claim sets the key if it does not exist.
func (r *Register) claim(ctx context.Context, key string, outcome onetime.Outcome, life time.Duration) (first bool, err error) {
	err = r.do(ctx, r.client.B().Set().Key(key).Value(string([]byte{byte(outcome)})).Nx().Px(life).Build()).Error()
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write a use: %w", err)
	}
	return true, nil
}

func (r *Register) do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	result, ended := redisclient.Within(ctx, func() rueidis.RedisResult { return r.client.Do(ctx, command) })
	if !ended {
		return rueidis.NewErrorResult(ctx.Err())
	}
	return result
}

// key returns a digest of the id. It has a fixed length, and the id cannot
// change the hash tag that places the key in a Cluster.
func (r *Register) key(id string) string {
	digest := sha256.Sum256([]byte(id))
	return r.opt.Prefix + "spent:{" + base64.RawURLEncoding.EncodeToString(digest[:16]) + "}"
}
