package kafka_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"

	"seckill/internal/carrier"
	"seckill/test/server"
)

// BenchmarkCarrier publishes messages of 10 KB in batches, receives and settles
// them. One operation is one message.
//
//	go test -run '^$' -bench Carrier -benchtime 50000x ./test/broker/kafka
func BenchmarkCarrier(b *testing.B) {
	k := server.SharedKafka(b)
	const size, batch = 10_000, 50
	for _, workers := range []int{1, 4} {
		b.Run(fmt.Sprintf("workers-%d", workers), func(b *testing.B) {
			c := open(b, onTopic(b, k, 16))
			random := make([]byte, size/2)
			if _, err := rand.Read(random); err != nil {
				b.Fatal(err)
			}
			body := []byte(hex.EncodeToString(random)) // compresses to about half, as JSON does
			b.SetBytes(size)
			b.ReportAllocs()
			b.ResetTimer()
			var senders sync.WaitGroup
			for w := range workers {
				senders.Go(func() { send(b, c, w, b.N/workers, batch, body) })
			}
			ctx := within(b, patience)
			for got, want := 0, b.N/workers*workers; got < want; {
				some, err := c.Receive(ctx, 200)
				if err != nil {
					b.Fatalf("receive: %v; %d of %d came", err, got, want)
				}
				if err := c.Done(ctx, some); err != nil {
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
