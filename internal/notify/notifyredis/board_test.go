package notifyredis_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/client/redisclient"
	"seckill/internal/notify"
	"seckill/internal/notify/notifyredis"
	"seckill/test/rig"
	"seckill/test/server"
)

var quiet = slog.New(slog.DiscardHandler)

// listener is a running board that collects notices.
type listener struct {
	*notifyredis.Board
	heard          chan notify.Notice
	joined, parted atomic.Int64
}

func join(t *testing.T, address, name, prefix string) *listener {
	t.Helper()
	return joinBy(t, notifyredis.Options{Place: redisclient.Place{Addrs: []string{address}}, Name: name, Prefix: prefix})
}

func joinBy(t *testing.T, opt notifyredis.Options) *listener {
	t.Helper()
	opt.Logger = quiet
	l := &listener{heard: make(chan notify.Notice, 1000), Board: notifyredis.New(opt)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(ctx, func(n notify.Notice) { n.Buyers = slices.Clone(n.Buyers); l.heard <- n }, func() { l.joined.Add(1) }, func() { l.parted.Add(1) })
	}()
	t.Cleanup(func() { stop(); <-ended })
	return l
}

var prefixes atomic.Int64

// newPrefix returns a prefix that no other test, and no earlier run, has used
// on the shared Redis.
func newPrefix(t *testing.T) string {
	return fmt.Sprintf("%s-%d:", t.Name(), prefixes.Add(1))
}

func (l *listener) waitJoined(t *testing.T, times int64) {
	t.Helper()
	rig.Until(t, "the board listens", func() bool { return l.joined.Load() >= times })
}

func (l *listener) next(t *testing.T) notify.Notice {
	t.Helper()
	select {
	case n := <-l.heard:
		return n
	case <-time.After(rig.Patience):
		t.Fatal("nothing was heard")
		return notify.Notice{}
	}
}

func TestPost_OthersHearIt(t *testing.T) {
	redis := server.SharedRedis(t)
	prefix := newPrefix(t)
	a, b, other := join(t, redis.Addr(), "a", prefix), join(t, redis.Addr(), "b", prefix), join(t, redis.Addr(), "c", "another engine")
	for _, l := range []*listener{a, b, other} {
		l.waitJoined(t, 1)
	}
	a.Post(notify.Notice{Kind: notify.ProductChanged, Product: 1})
	if n := b.next(t); n.Kind != notify.ProductChanged || n.Product != 1 {
		t.Errorf("b heard %+v", n)
	}
	b.Post(notify.Notice{Kind: notify.DutyDue, Duty: "release"})
	if n := a.next(t); n.Kind != notify.DutyDue || n.Duty != "release" {
		t.Errorf("a heard %+v", n) // and not its own notice before it
	}
	if len(other.heard) != 0 || len(b.heard) != 0 {
		t.Error("an instance heard a notice that was not for it")
	}
	rig.Until(t, "b has counted", func() bool { return b.Stats() == notify.Stats{Posted: 1, Heard: 1} })
}

func TestBoard_ReconnectsByItself(t *testing.T) {
	redis := server.Redis(t, server.RedisOptions{})
	a, b := join(t, redis.Addr(), "a", "x:"), join(t, redis.Addr(), "b", "x:")
	a.waitJoined(t, 1)
	b.waitJoined(t, 1)
	for round, outage := range []func(){
		func() { redis.Must("CLIENT", "KILL", "TYPE", "pubsub") },
		func() { redis.Kill(); redis.Start() },
	} {
		outage()
		want := int64(round) + 2
		a.waitJoined(t, want)
		b.waitJoined(t, want)
		if b.parted.Load() != want-1 {
			t.Errorf("b parted %d times in %d outages", b.parted.Load(), want-1)
		}
		// The sender's own connection may not be back yet, so wait for a notice
		// to arrive.
		rig.Until(t, "a notice arrives again", func() bool {
			a.Post(notify.Notice{Kind: notify.UnitsBack, Product: 5})
			return len(b.heard) > 0
		})
		for len(b.heard) > 0 {
			<-b.heard
		}
	}
}

// arrives posts until the other board hears it.
func arrives(t *testing.T, from, to *listener) {
	t.Helper()
	rig.Until(t, "a notice arrives", func() bool {
		from.Post(notify.Notice{Kind: notify.UnitsBack, Product: 5})
		return len(to.heard) > 0
	})
	for len(to.heard) > 0 {
		<-to.heard
	}
}

func TestBoard_NoticesCrossACluster(t *testing.T) {
	cluster := server.Cluster(t, server.ClusterOptions{})
	var boards []*listener
	for i, address := range cluster.Addrs() { // each on another node
		boards = append(boards, joinBy(t, notifyredis.Options{Place: redisclient.Place{Addrs: []string{address}}, Name: string(rune('a' + i)), Prefix: "x:"}))
	}
	for i, from := range boards {
		from.waitJoined(t, 1)
		to := boards[(i+1)%len(boards)]
		to.waitJoined(t, 1)
		arrives(t, from, to)
	}
}

func TestBoard_WorksAfterAFailover(t *testing.T) {
	set := server.Sentinel(t, server.SentinelOptions{})
	var boards []*listener
	for _, name := range []string{"a", "b"} {
		boards = append(boards, joinBy(t, notifyredis.Options{Place: redisclient.Place{Addrs: set.Addrs(), Sentinel: set.MasterName()}, Name: name, Prefix: "x:"}))
	}
	arrives(t, boards[0], boards[1])
	old := set.Master()
	old.Kill()
	set.WaitFailover(old)
	arrives(t, boards[0], boards[1])
	arrives(t, boards[1], boards[0])
}

func TestPost_NeverWaitsForRedis(t *testing.T) {
	nobody := notifyredis.New(notifyredis.Options{Place: redisclient.Place{Addrs: []string{"127.0.0.1:1"}}, Logger: quiet})
	began := time.Now()
	for i := range 100_000 {
		nobody.Post(notify.Notice{Kind: notify.UnitsBack, Product: uint32(i)})
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("100,000 posts took %s", took)
	}
	if nobody.Stats().Dropped == 0 {
		t.Error("nothing was dropped: the board has no bound")
	}
}

// A stop does not wait for a frozen Redis: neither for a connection, a message,
// nor a QUIT.
func TestStop_DoesNotWaitForAFrozenRedis(t *testing.T) {
	for name, joins := range map[string]bool{"before it listens": false, "while it listens": true} {
		t.Run(name, func(t *testing.T) {
			redis := server.Redis(t, server.RedisOptions{})
			board := notifyredis.New(notifyredis.Options{
				Place: redisclient.Place{Addrs: []string{redis.Addr()}}, Name: "a", Logger: quiet,
			})
			ctx, stop := context.WithCancel(t.Context())
			joined, ended := make(chan struct{}, 1), make(chan struct{})
			run := func() {
				defer close(ended)
				board.Run(ctx, func(notify.Notice) {}, func() { joined <- struct{}{} }, func() {})
			}
			if joins {
				go run()
				<-joined
				redis.Pause()
			} else {
				redis.Pause()
				go run()
			}
			board.Post(notify.Notice{Kind: notify.UnitsBack, Product: 1})
			select { // there is no signal that the message or the greeting waits for Redis
			case <-ended:
				t.Fatal("the board stopped by itself")
			case <-time.After(200 * time.Millisecond):
			}
			began := time.Now()
			stop()
			<-ended
			if took := time.Since(began); took > time.Second {
				t.Errorf("the stop took %v", took)
			}
			redis.Resume()
		})
	}
}
