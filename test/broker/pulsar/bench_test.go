package pulsar_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"

	"seckill/internal/carrier"
	"seckill/test/server"
)

// BenchmarkCarrier publishes messages in batches, receives and settles them. One
// operation is one message.
//
//	go test -run '^$' -bench Carrier -benchtime 20000x ./test/broker/pulsar
func BenchmarkCarrier(b *testing.B) {
	p := server.SharedPulsar(b)
	const batch = 50
	for _, c := range []struct{ size, partitions, workers int }{{10_000, 0, 1}, {10_000, 4, 4}, {400, 4, 4}} {
		b.Run(fmt.Sprintf("bytes-%d/partitions-%d/workers-%d", c.size, c.partitions, c.workers), func(b *testing.B) {
			random := make([]byte, c.size/2)
			if _, err := rand.Read(random); err != nil {
				b.Fatal(err)
			}
			body := []byte(hex.EncodeToString(random)) // compresses to about half, as JSON does
			on := open(b, onTopic(b, p, c.partitions))
			b.SetBytes(int64(c.size))
			b.ReportAllocs()
			b.ResetTimer()
			var senders sync.WaitGroup
			for w := range c.workers {
				senders.Go(func() { send(b, on, w, b.N/c.workers, batch, body) })
			}
			ctx := within(b, patience)
			for got, want := 0, b.N/c.workers*c.workers; got < want; {
				some, err := on.Receive(ctx, 200)
				if err != nil {
					b.Fatalf("receive: %v; %d of %d came", err, got, want)
				}
				if err := on.Done(ctx, some); err != nil {
					b.Fatal(err)
				}
				got += len(some)
			}
			senders.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// send publishes n messages.
func send(b *testing.B, c carrier.Carrier, worker, n, batch int, body []byte) {
	ctx := within(b, patience)
	for sent := 0; sent < n; {
		messages := make([]carrier.Message, min(batch, n-sent))
		for i := range messages {
			messages[i] = carrier.Message{Key: fmt.Sprintf("%d-%d", worker, (sent+i)%32), Body: body, Signature: "v1,s"}
		}
		if err := c.Publish(ctx, messages); err != nil {
			b.Errorf("publish: %v", err)
			return
		}
		sent += len(messages)
	}
}
