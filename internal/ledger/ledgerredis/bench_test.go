package ledgerredis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/test/server"
)

// benchBatch is the batch size for which the Redis CPU budget is stated.
const benchBatch = 64

// BenchmarkReserve reserves batches of 64 claims, each of a new buyer and accepted. It measures
// the caller's allocations, and the Redis CPU per reservation (user and system time of the
// thread that runs scripts).
func BenchmarkReserve(b *testing.B) {
	for _, fsync := range []string{"", "everysec"} {
		b.Run("appendfsync="+fsync, func(b *testing.B) { benchmarkReserve(b, fsync) })
	}
}

func benchmarkReserve(b *testing.B, fsync string) {
	s := server.Redis(b, server.RedisOptions{AppendFsync: fsync})
	l := opened(b, Options{Place: redisclient.Place{Addrs: []string{s.Addr()}}})
	ctx := context.Background()
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	if _, err := l.Install(ctx, ledger.Allotment{Shard: shard, Available: 1 << 40, Limit: 1}, nil); err != nil {
		b.Fatal(err)
	}
	if ok, err := l.Open(ctx, shard); err != nil || !ok {
		b.Fatal(ok, err)
	}
	claims := make([]seckill.Claim, 0, b.N*benchBatch)
	at := time.Now()
	for i := range b.N * benchBatch {
		claims = append(claims, seckill.Claim{
			OrderNo: seckill.NewOrderNo(at, 1, uint64(i)), Buyer: fmt.Sprintf("buyer-%010d", rand.Uint64N(1e10)), Quantity: 1,
			Key: strconv.Itoa(i), Ref: "ref",
		})
	}
	before := cpuOf(b, s)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		reply, err := l.Do(ctx, ledger.Request{
			Shard: shard, Call: ledger.Call{Number: uint64(i + 1), Seen: uint64(i)},
			Write: ledger.Reserve{At: at, PriceCents: 699900, Currency: "CNY", Name: "手机 Pro", Claims: claims[i*benchBatch:][:benchBatch]},
		})
		if err != nil || reply.Outcome != ledger.OutcomeApplied {
			b.Fatal(reply.Outcome, err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(cpuOf(b, s)-before)/float64(len(claims))/1e3, "redis-µs/reservation")
}

// cpuOf returns the CPU time that the server has used so far.
func cpuOf(b *testing.B, s *server.RedisServer) time.Duration {
	var total time.Duration
	for name, value := range parseInfo(s.Must("INFO", "cpu")) {
		if name != "used_cpu_sys_main_thread" && name != "used_cpu_user_main_thread" {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			b.Fatal(err)
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total
}

func memoryOf(b *testing.B, s *server.RedisServer) float64 {
	bytes, err := strconv.ParseFloat(parseInfo(s.Must("INFO", "memory"))["used_memory"], 64)
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}
