package redisclient_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"seckill/internal/client/redisclient"
	"seckill/test/server"
)

func TestWithin_ReturnsBeforeACallThatOutlastsItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := make(chan struct{})
	defer close(never)
	if _, ended := redisclient.Within(ctx, func() int { <-never; return 1 }); ended {
		t.Error("a call that goes on has ended")
	}
	if got, ended := redisclient.Within(t.Context(), func() int { return 1 }); got != 1 || !ended {
		t.Errorf("%d, %v", got, ended)
	}
}

func TestConnect_DoesNotWaitForAFrozenServer(t *testing.T) {
	redis := server.Redis(t, server.RedisOptions{})
	redis.Pause()
	defer redis.Resume()
	option := redisclient.Place{Addrs: []string{redis.Addr()}}.Option("test", net.Dialer{})
	option.ConnWriteTimeout = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := redisclient.Connect(ctx, option); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("connect: %v", err)
	}
}
