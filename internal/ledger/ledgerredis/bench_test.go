package ledgerredis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/redislink"
	"seckill/test/server"
)

// benchBatch is the size of batch for which the budget of Redis CPU is stated.
const benchBatch = 64

// BenchmarkReserve is a batch of 64 reservations, every claim of a new buyer
// and accepted: what the caller allocates for it, and the Redis CPU (user and
// system, of the thread that runs scripts) per reservation.
func BenchmarkReserve(b *testing.B) {
	for _, fsync := range []string{"", "everysec"} {
		b.Run("appendfsync="+fsync, func(b *testing.B) { benchmarkReserve(b, fsync) })
	}
}

func benchmarkReserve(b *testing.B, fsync string) {
	s := server.Redis(b, server.RedisOptions{AppendFsync: fsync})
	l := opened(b, Options{Place: redislink.Place{Addrs: []string{s.Addr()}}})
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

// cpuOf is the processor time that the server has used so far.
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

// BenchmarkMarks is a shard with as many marks as iterations: what each takes
// of memory, and that no command is long, whether marks are installed, met by
// reservations, or swept (-benchtime 10000000x for ten million).
func BenchmarkMarks(b *testing.B) {
	s := server.Redis(b, server.RedisOptions{})
	l := opened(b, Options{Place: redislink.Place{Addrs: []string{s.Addr()}}})
	ctx := context.Background()
	s.Must("SLOWLOG", "RESET") // starting is no command
	empty := memoryOf(b, s)
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	install := func(marks int) {
		if _, err := l.Install(ctx, ledger.Allotment{Shard: shard, Available: 1 << 40, Limit: 1}, marksOf(1, marks)); err != nil {
			b.Fatal(err)
		}
		if ok, err := l.Open(ctx, shard); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
	b.ResetTimer()
	install(b.N)
	b.StopTimer()
	b.ReportMetric((memoryOf(b, s)-empty)/float64(b.N), "redis-B/mark")

	var claims []seckill.Claim
	for i := range benchBatch {
		claims = append(claims, seckill.Claim{OrderNo: seckill.NewOrderNo(time.Now(), 1, uint64(i)), Buyer: fmt.Sprint("new-", i), Quantity: 1})
	}
	reply, err := l.Do(ctx, ledger.Request{Shard: shard, Call: ledger.Call{Number: 1}, Write: reserve(claims...)})
	if err != nil || reply.Outcome != ledger.OutcomeApplied {
		b.Fatal(reply.Outcome, err)
	}
	shard.Epoch = 2
	install(1)
	sweepStart := time.Now()
	l.running.Wait()
	b.ReportMetric(float64(time.Since(sweepStart).Microseconds())/float64(b.N), "sweep-µs/mark")
	if left := s.Must("HLEN", l.keys.mark(shard)); left != "1" {
		b.Errorf("%s marks are left", left)
	}
	slow, err := strconv.ParseFloat(s.Must("SLOWLOG", "LEN"), 64)
	if err != nil {
		b.Fatal(err)
	}
	// Over 10 ms each. On a machine that is busy with other things there are
	// some however short the steps are.
	b.ReportMetric(slow, "slow-commands")
}

func memoryOf(b *testing.B, s *server.RedisServer) float64 {
	bytes, err := strconv.ParseFloat(parseInfo(s.Must("INFO", "memory"))["used_memory"], 64)
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}
