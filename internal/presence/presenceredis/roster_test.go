package presenceredis_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"seckill/internal/presence"
	"seckill/internal/presence/presenceredis"
	"seckill/internal/redislink"
	"seckill/test/rig"
	"seckill/test/server"
)

func sign(t *testing.T, prefix, name string, addresses ...string) *presenceredis.Roster {
	t.Helper()
	r := presenceredis.New(presenceredis.Options{Place: redislink.Place{Addrs: addresses}, Prefix: prefix, Name: name})
	t.Cleanup(func() { _ = r.Close(context.Background()) }) // its server may be gone
	return r
}

// beat is a beat that was answered. On a loaded machine one may run out of its
// time, as any may: the next is made.
func beat(t *testing.T, r *presenceredis.Roster) (live int) {
	t.Helper()
	rig.Until(t, "a beat is answered", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var err error
		live, err = r.Beat(ctx)
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
		rig.Must(t, err)
		return true
	})
	return live
}

func TestShopsSeeEachOtherComeAndGo(t *testing.T) {
	address := server.SharedRedis(t).Addr()
	a, b := sign(t, t.Name(), "a", address), sign(t, t.Name(), "b", address)
	other := sign(t, "another engine", "c", address)
	if got := beat(t, a); got != 1 {
		t.Errorf("one shop sees %d", got)
	}
	if got := beat(t, b); got != 2 {
		t.Errorf("the second of two sees %d", got)
	}
	if got := beat(t, a); got != 2 {
		t.Errorf("the first of two sees %d", got)
	}
	if got := beat(t, other); got != 1 {
		t.Errorf("a shop of another engine sees %d", got)
	}
	rig.Must(t, b.Close(t.Context()))
	if got := beat(t, a); got != 1 {
		t.Errorf("after the other signed out, a shop sees %d", got)
	}
	if got := beat(t, b); got != 2 {
		t.Errorf("after it came back, it sees %d", got)
	}
}

// One that is killed says nothing.
func TestAShopThatIsSilentCountsUntilItsLifeIsOver(t *testing.T) {
	address := server.SharedRedis(t).Addr()
	a, b := sign(t, t.Name(), "a", address), sign(t, t.Name(), "b", address)
	beat(t, b)
	began := time.Now()
	if got := beat(t, a); got != 2 {
		t.Fatalf("%d shops", got)
	}
	rig.Until(t, "the silent shop is forgotten", func() bool { return beat(t, a) == 1 })
	if took := time.Since(began); took < presence.Life-presence.Every || took > presence.Life+2*time.Second {
		t.Errorf("forgotten after %s, its life is %s", took, presence.Life)
	}
}

// The server's clock was an hour ahead when a shop signed in that is dead now.
func TestAShopFromBeforeTheClockWasSetBackIsForgotten(t *testing.T) {
	redis := server.Redis(t, server.RedisOptions{})
	a := sign(t, "p:", "a", redis.Addr())
	ahead := time.Now().Add(time.Hour + presence.Life).UnixMilli()
	redis.Must("ZADD", "p:shops", strconv.FormatInt(ahead, 10), "dead", strconv.FormatInt(ahead, 10), "a")
	if got := beat(t, a); got != 1 {
		t.Errorf("%d shops", got)
	}
}

func TestARosterThatForgotEverybodyIsToldAgain(t *testing.T) {
	redis := server.Redis(t, server.RedisOptions{})
	a, b := sign(t, "p:", "a", redis.Addr()), sign(t, "p:", "b", redis.Addr())
	beat(t, a)
	beat(t, b)
	redis.Must("FLUSHALL")
	redis.Must("SCRIPT", "FLUSH")
	beat(t, a)
	if got := beat(t, b); got != 2 {
		t.Errorf("%d shops", got)
	}
}

func TestABeatEndsInTimeThoughRedisIsFrozenAndBeatsGoOnAfterwards(t *testing.T) {
	redis := server.Redis(t, server.RedisOptions{})
	a := sign(t, "p:", "a", redis.Addr())
	beat(t, a)
	redis.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), presence.Timeout)
	defer cancel()
	began := time.Now()
	if _, err := a.Beat(ctx); err == nil {
		t.Error("a frozen Redis answered")
	}
	if took := time.Since(began); took > 2*presence.Timeout {
		t.Errorf("the beat took %s", took)
	}
	redis.Resume()
	rig.Until(t, "beats are answered again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), presence.Timeout)
		defer cancel()
		live, err := a.Beat(ctx)
		return err == nil && live == 1
	})
}

func TestARosterIsKeptInACluster(t *testing.T) {
	cluster := server.Cluster(t, server.ClusterOptions{})
	a, b := sign(t, "p:", "a", cluster.Addrs()...), sign(t, "p:", "b", cluster.Addrs()...)
	beat(t, a)
	if got := beat(t, b); got != 2 {
		t.Errorf("%d shops", got)
	}
}
