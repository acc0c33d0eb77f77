package rocketmq_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"seckill/internal/carrier"
	"seckill/test/server"
)

// BenchmarkCarrier publishes, receives and settles messages of 10 KB, with some
// receivers in one process, as the relay and the workers do.
func BenchmarkCarrier(b *testing.B) {
	const batch, receivers = 64, 4
	r := server.SharedRocketMQ(b)
	c := open(b, create(b, r, server.RocketMQNormal))
	defer c.Close(within(b, openWithin))
	body := []byte(fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 10<<10)))
	b.SetBytes(int64(len(body)))
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	began := time.Now()
	var group errgroup.Group
	group.Go(func() error {
		for sent := 0; sent < b.N; sent += batch {
			messages := make([]carrier.Message, min(batch, b.N-sent))
			for i := range messages {
				messages[i] = carrier.Message{Key: fmt.Sprintf("%d-0", i%7), Body: body, Signature: "v1,s"}
			}
			if err := c.Publish(ctx, messages); err != nil {
				return err
			}
		}
		b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "published/s")
		return nil
	})
	for range receivers {
		group.Go(func() error {
			for left.Load() > 0 {
				got, err := c.Receive(ctx, 32)
				if ctx.Err() != nil {
					return nil
				}
				if err == nil {
					err = c.Done(ctx, got)
				}
				if err != nil {
					return err
				}
				if left.Add(-int64(len(got))) <= 0 {
					cancel()
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "carried/s")
}
