package ledgerredis

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"seckill"
	"seckill/internal/queue"
)

// BenchmarkReceiveAndAck drains filled streams like a worker with an infinitely fast store:
// batches of 500 claims, entries of 20.
func BenchmarkReceiveAndAck(b *testing.B) {
	for _, streams := range []int{1, 16} {
		b.Run(strconv.Itoa(streams)+" streams", func(b *testing.B) { benchmarkDrain(b, streams) })
	}
}

func benchmarkDrain(b *testing.B, streams int) {
	const claims, batchClaims = 20, 500
	r := newQueueRig(b)
	at := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	for i := range b.N {
		product := uint32(i%streams + 1)
		entry := seckill.Entry{ProductID: product, Group: product, Epoch: 1, At: at, PriceCents: 699900, Currency: "CNY", Name: "phone", Limit: 1}
		for j := range claims {
			no := seckill.NewOrderNo(at, product, uint64(i*claims+j))
			entry.Claims = append(entry.Claims, seckill.Claim{OrderNo: no, Buyer: no.String(), Quantity: 1, Key: no.String()})
		}
		r.publish(entry)
	}
	r.flush()
	c := r.join()
	b.ResetTimer()
	for done := 0; done < b.N; {
		batch, err := c.Receive(context.Background(), batchClaims)
		r.check(err, "receive")
		last := make(map[string]queue.ID) // by stream
		for _, d := range batch {
			last[d.ID.Stream] = d.ID
		}
		for stream, witness := range last {
			of := slices.DeleteFunc(slices.Clone(batch), func(d queue.Delivery) bool { return d.ID.Stream != stream })
			r.check(c.Ack(context.Background(), of, witness), "ack")
		}
		done += len(batch)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
	b.ReportMetric(claims*float64(b.N)/b.Elapsed().Seconds(), "claims/s")
}
