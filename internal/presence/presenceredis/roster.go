// Package presenceredis keeps the roster of shops in Redis: one sorted set, one
// round trip a second and shop. The client is the roster's own, so that a beat
// waits behind no reservation.
package presenceredis

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/presence"
	"seckill/internal/redislink"
)

const (
	dialTimeout = 300 * time.Millisecond
	// deafAfter is when a connection that answers nothing is given up.
	deafAfter = presence.Timeout
	// topologyEvery is how often Sentinels and Clusters are asked who is master.
	topologyEvery = time.Second
)

//go:embed script/beat.lua
var beatText string

// Options say where Redis is.
type Options struct {
	redislink.Place
	// Prefix begins the key's name; shops of one engine share it.
	Prefix string
	// Name tells this shop from the others.
	Name string
}

// Roster is a presence.Roster. It connects with its first beat, so that it can
// be made while Redis is away. Its methods are called one after the other.
type Roster struct {
	opt    Options
	beat   *rueidis.Lua
	client rueidis.Client // nil until the first beat
}

var _ presence.Roster = (*Roster)(nil)

// New makes a roster.
func New(opt Options) *Roster { return &Roster{opt: opt, beat: rueidis.NewLuaScript(beatText)} }

// key has no hash tag: it lies where its name falls.
func (r *Roster) key() string { return r.opt.Prefix + "shops" }

// Beat signs this shop in.
func (r *Roster) Beat(ctx context.Context) (int, error) {
	if r.client == nil {
		client, err := redislink.Connect(ctx, r.clientOption())
		if err != nil {
			return 0, fmt.Errorf("connect: %w", err)
		}
		r.client = client
	}
	client := r.client
	result, ended := redislink.Within(ctx, func() rueidis.RedisResult {
		return r.beat.Exec(ctx, client, []string{r.key()}, []string{r.opt.Name, strconv.FormatInt(presence.Life.Milliseconds(), 10)})
	})
	if !ended {
		return 0, fmt.Errorf("beat: %w", ctx.Err())
	}
	live, err := result.AsInt64()
	if err != nil {
		return 0, fmt.Errorf("beat: %w", err)
	}
	return int(live), nil
}

// Close signs this shop out and leaves the server.
func (r *Roster) Close(ctx context.Context) error {
	if r.client == nil {
		return nil
	}
	client := r.client
	r.client = nil
	// It says goodbye, for which a frozen Redis lets it wait.
	defer func() { go client.Close() }()
	err, ended := redislink.Within(ctx, func() error {
		return client.Do(ctx, client.B().Zrem().Key(r.key()).Member(r.opt.Name).Build()).Error()
	})
	if !ended {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("sign out: %w", err)
	}
	return nil
}

func (r *Roster) clientOption() rueidis.ClientOption {
	option := r.opt.Place.Option("seckill-presence", net.Dialer{Timeout: dialTimeout, KeepAlive: time.Second})
	option.Sentinel.TopologyRefreshInterval = topologyEvery
	option.ClusterOption.ShardsRefreshInterval = topologyEvery
	option.ConnWriteTimeout = deafAfter
	return option
}
