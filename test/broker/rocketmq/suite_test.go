// Package rocketmq_test holds the RocketMQ adapters to a real broker.
package rocketmq_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierrocket"
	"seckill/internal/carrier/carriertest"
	"seckill/internal/client/rocketclient"
	"seckill/test/server"
)

// noLog logs nothing.
var noLog = slog.New(slog.DiscardHandler)

// openWithin bounds what a test waits for, unless it says otherwise.
const openWithin = time.Minute

// within ends with the test or after a while.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

var names atomic.Int64

// name is a topic's or group's name that no other test has.
func name(t testing.TB) string {
	return fmt.Sprintf("%s-%d", strings.NewReplacer("/", "-").Replace(t.Name()), names.Add(1))
}

// create makes a topic and a group on a broker, and returns options for them.
func create(t testing.TB, r *server.RocketMQ, messageType string) carrierrocket.Options {
	t.Helper()
	opt := carrierrocket.Options{Link: rocketclient.Options{Endpoint: r.Addr()}, Topic: name(t), Logger: noLog}
	opt.Group = opt.Topic + "-group"
	r.CreateTopic(opt.Topic, messageType)
	r.CreateGroup(opt.Group)
	return opt
}

// open opens a carrier. The test closes it.
func open(t testing.TB, opt carrierrocket.Options) *carrierrocket.Carrier {
	t.Helper()
	c, err := carrierrocket.Open(within(t, openWithin), opt)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return c
}

// openDelayer opens a delayer. The test closes it.
func openDelayer(t testing.TB, opt carrierrocket.Options) *carrierrocket.Carrier {
	t.Helper()
	opt.Delayed = true
	return open(t, opt)
}

func TestSuite(t *testing.T) {
	r := server.SharedRocketMQ(t)
	carriertest.Run(t, func(t *testing.T) carriertest.Fixture {
		t.Parallel() // stories mostly wait for the broker
		opt, delayed := create(t, r, server.RocketMQNormal), create(t, r, server.RocketMQDelay)
		return carriertest.Fixture{
			Open:        func(t *testing.T) carrier.Carrier { return open(t, opt) },
			OpenDelayer: func(t *testing.T) carrier.Delayer { return openDelayer(t, delayed) },
		}
	})
}
