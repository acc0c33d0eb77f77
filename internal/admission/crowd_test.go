package admission

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"testing"
	"time"
)

// network returns an address in the n-th /64.
func network(n uint64) netip.Addr {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], 0x2001_0db8_0000_0000+n)
	raw[15] = byte(n) | 1
	return netip.AddrFrom16(raw)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A million customers send some events each. The table of the default size does not
// grow. One busy address gets no more than its rate, plus a little for the times when
// it was dropped from the table.
func TestLimiter_MillionNetworksStayInMemoryBound(t *testing.T) {
	const rate = 5
	busy := netip.MustParseAddr("192.0.2.1")
	for _, tc := range []struct {
		name     string
		networks int
		each     int           // events of each network, one after the other
		every    time.Duration // interval between events
		spare    int           // allowed events of the busiest address above its rate
	}{
		{"each once within a second", 1_000_000, 1, time.Microsecond, 0},
		{"each once within ten seconds", 1_000_000, 1, 10 * time.Microsecond, 0},
		{"each as often as it may", 300_000, rate, time.Microsecond, rate},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := open(t, Options{PerSecond: rate})
			before := heap()
			passed, others, now := 0, 0, start
			for n := range uint64(tc.networks) {
				addr := network(n)
				for range tc.each {
					now = now.Add(tc.every)
					if ok, _ := l.Allow(AddrKey(addr), now); ok {
						others++
					}
				}
				if ok, _ := l.Allow(AddrKey(busy), now); ok {
					passed++
				}
			}
			if grown := heap() - before; grown > 64<<10 { // the test's own
				t.Errorf("the heap grew by %d bytes", grown)
			}
			if others != tc.networks*tc.each {
				t.Errorf("%d of %d events of the others passed, who were all within the rate", others, tc.networks*tc.each)
			}
			may := rate + int(now.Sub(start)*rate/time.Second)
			if passed > may+tc.spare {
				t.Errorf("the busiest passed %d times in %s, and may %d times", passed, now.Sub(start), may)
			}
			t.Logf("the busiest passed %d times of %d, and may %d times", passed, tc.networks, may)
			runtime.KeepAlive(l)
		})
	}
}
