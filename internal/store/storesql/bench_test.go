package storesql

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// processTime is the CPU time so far: on a shared machine it says more than
// the clock.
func processTime(tb testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkConfirm is the worker's transaction: all rows of an order, synced.
func BenchmarkConfirm(b *testing.B) {
	for _, size := range []int{100, 500, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := openNew(b)
			p := sale(b, s, 100_000_000)
			b.ReportAllocs()
			orders, before := 0, processTime(b)
			for b.Loop() {
				b.StopTimer()
				req := request(&p, claims(&p, size))
				b.StartTimer()
				if _, err := s.Confirm(b.Context(), req); err != nil {
					b.Fatal(err)
				}
				orders += size
			}
			b.ReportMetric(float64((processTime(b)-before).Microseconds())/float64(orders), "cpu-µs/order")
			b.ReportMetric(float64(orders)/b.Elapsed().Seconds(), "orders/s")
		})
	}
}
