package admission

import (
	"math"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

var start = time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)

func open(t testing.TB, o Options) *Limiter {
	t.Helper()
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A key that asks far too often gets its burst at once and then exactly the rate, at
// any rate and any rhythm.
func TestLimiter_ExactlyTheRatePassesInAMinute(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rate  float64
		burst int
		every time.Duration // between two attempts
		want  int
	}{
		{"one a second", 1, 1, time.Millisecond, 60},
		{"five a second, burst of five", 5, 5, time.Millisecond, 5 + 299},
		{"burst defaults to one second's worth", 10, 0, time.Millisecond, 10 + 599},
		{"less than one a second", 0.1, 0, time.Millisecond, 6},
		{"an interval that is no whole number of nanoseconds", 3, 1, 100 * time.Microsecond, 180},
		{"asks just at the rate", 20, 1, 50 * time.Millisecond, 1200},
		{"asks below the rate", 20, 1, 100 * time.Millisecond, 600},
		{"a product's rate", 1000, 1, 250 * time.Microsecond, 60_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := open(t, Options{PerSecond: tc.rate, Burst: tc.burst})
			passed := 0
			for at := time.Duration(0); at < time.Minute; at += tc.every {
				if ok, _ := l.Allow(TextKey("buyer"), start.Add(at)); ok {
					passed++
				}
			}
			if passed != tc.want {
				t.Errorf("%d passed in a minute, want %d", passed, tc.want)
			}
		})
	}
}

func TestLimiter_RetryAfterIsExact(t *testing.T) {
	l := open(t, Options{PerSecond: 2, Burst: 3})
	for range 3 {
		if ok, wait := l.Allow(TextKey("buyer"), start); !ok || wait != 0 {
			t.Fatalf("within the burst: %v, %v", ok, wait)
		}
	}
	ok, wait := l.Allow(TextKey("buyer"), start)
	if ok || wait != 500*time.Millisecond {
		t.Fatalf("after the burst: %v, retry after %v, want half a second", ok, wait)
	}
	if ok, _ := l.Allow(TextKey("buyer"), start.Add(wait-1)); ok {
		t.Error("passed a nanosecond too early")
	}
	if ok, _ := l.Allow(TextKey("buyer"), start.Add(wait)); !ok {
		t.Error("refused at the instant that was named")
	}
}

func TestOwe_CountsWithoutRefusing(t *testing.T) {
	const rate, burst = 2, 100
	a, neighbour, b := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("192.0.2.1")
	l := open(t, Options{PerSecond: rate, Burst: burst})
	for _, step := range []struct {
		name  string
		addr  netip.Addr
		n     int
		after time.Duration
		want  float64
	}{
		{"the first", a, 1, 0, 1},
		{"one of the same /64", neighbour, 3, 0, 4},
		{"another network", b, 1, 0, 1},
		{"after a second of rest", a, 1, time.Second, 4 - rate + 1},
		{"far too many", a, 1000, time.Second, burst},
		{"half a budget later", a, 0, 26 * time.Second, burst / 2},
		{"at rest", a, 0, time.Hour, 0},
		{"after the clock was set back", a, 1, 0, burst},
	} {
		if got := l.Owe(AddrKey(step.addr), step.n, start.Add(step.after)); got != step.want {
			t.Errorf("%s: %v, want %v", step.name, got, step.want)
		}
	}
	if got := l.Owe(TextKey("buyer"), 5, start); got != 5 {
		t.Errorf("a buyer owes %v, want 5", got)
	}
	l.Share(2)
	if got := l.Owe(TextKey("other"), 5, start); got != 10 {
		t.Errorf("at one of two instances %v, want 10", got)
	}
	if off := open(t, Options{}); off.Owe(TextKey("buyer"), 5, start) != 0 || off.Owe(AddrKey(a), 5, start) != 0 {
		t.Error("something is owed to a limiter that is off")
	}
}

func TestSpent_CountsNothing(t *testing.T) {
	l := open(t, Options{PerSecond: 1, Burst: 2})
	a, neighbour, b := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("192.0.2.1")
	for i, want := range []bool{false, false, true, true} {
		for range 10 {
			if got := l.Spent(AddrKey(neighbour), start); got != want {
				t.Errorf("after %d events: %v", i, got)
			}
		}
		l.Allow(AddrKey(a), start)
	}
	if l.Spent(AddrKey(b), start) || l.Spent(AddrKey(a), start.Add(time.Second)) {
		t.Error("another address, or one that has rested, is spent")
	}
	if (*Limiter)(nil).Spent(AddrKey(a), start) || open(t, Options{}).Spent(AddrKey(a), start) {
		t.Error("what is off is spent")
	}
}

func TestLimiter_RefusedEventSpendsNothing(t *testing.T) {
	l := open(t, Options{PerSecond: 1, Burst: 1})
	l.Allow(TextKey("buyer"), start)
	for range 1000 {
		l.Allow(TextKey("buyer"), start)
	}
	if ok, _ := l.Allow(TextKey("buyer"), start.Add(time.Second)); !ok {
		t.Error("asking while refused lengthened the wait")
	}
}

func TestLimiter_RateZeroIsOff(t *testing.T) {
	for name, l := range map[string]*Limiter{"rate 0": open(t, Options{}), "nil": nil} {
		for range 1000 {
			if ok, _ := l.Allow(TextKey("buyer"), start); !ok {
				t.Fatalf("%s: refused", name)
			}
			if ok, _ := l.Allow(AddrKey(netip.MustParseAddr("192.0.2.1")), start); !ok {
				t.Fatalf("%s: refused", name)
			}
		}
		if l != nil && l.sets != nil {
			t.Errorf("%s: holds a table", name)
		}
	}
}

func TestLimiter_KeysHaveSeparateBudgets(t *testing.T) {
	l := open(t, Options{PerSecond: 1, Burst: 1})
	for i := range 10_000 {
		key := strconv.Itoa(i)
		if ok, _ := l.Allow(TextKey(key), start); !ok {
			t.Fatalf("the first event of %s was refused", key)
		}
		if ok, _ := l.Allow(BytesKey([]byte(key)), start); ok {
			t.Fatalf("the second event of %s passed", key)
		}
	}
	for id := range uint32(100) {
		if ok, _ := l.Allow(ProductKey(id), start); !ok {
			t.Fatalf("the first event of product %d was refused", id)
		}
		if ok, _ := l.Allow(ProductKey(id), start); ok {
			t.Fatalf("the second event of product %d passed", id)
		}
	}
}

func TestAddrKey_IPv6CountsByNetwork(t *testing.T) {
	for _, tc := range []struct {
		name, first, second string
		shared              bool
	}{
		{"same IPv4", "192.0.2.1", "192.0.2.1", true},
		{"neighbouring IPv4", "192.0.2.1", "192.0.2.2", false},
		{"IPv4 written as IPv6", "192.0.2.1", "::ffff:192.0.2.1", true},
		{"two IPv4 written as IPv6", "::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
		{"same /64", "2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true},
		{"neighbouring /64", "2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"zones of one network", "fe80::1%eth0", "fe80::2%eth1", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := open(t, Options{PerSecond: 1, Burst: 1})
			l.Allow(AddrKey(netip.MustParseAddr(tc.first)), start)
			if ok, _ := l.Allow(AddrKey(netip.MustParseAddr(tc.second)), start); ok == tc.shared {
				t.Errorf("second passed: %v", ok)
			}
		})
	}
}

// A million keys take no more memory than a thousand, and do not free the busiest
// keys: their entries are dropped last.
func TestLimiter_MillionKeysDoNotFreeTheBusiest(t *testing.T) {
	const capacity = 1 << 12
	l := open(t, Options{PerSecond: 1, Burst: 10, Capacity: capacity})
	size := len(l.sets) * int(unsafe.Sizeof(set{}))
	for range 10 {
		l.Allow(TextKey("greedy"), start)
	}
	passed := 0
	allocs := testing.AllocsPerRun(1, func() {
		var key [8]byte
		for i := range 500_000 { // AllocsPerRun runs it twice
			for j := range key {
				key[j] = byte(i >> (8 * j))
			}
			now := start.Add(time.Duration(i) * time.Microsecond)
			l.Allow(BytesKey(key[:]), now)
			if ok, _ := l.Allow(TextKey("greedy"), now); ok {
				passed++
			}
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	if got := len(l.sets) * int(unsafe.Sizeof(set{})); got != size || got != capacity*17 { // an entry's 16, and its part of the set's lock
		t.Errorf("the table has %d bytes, want %d", got, capacity*17)
	}
	if passed != 0 {
		t.Errorf("the busiest key passed %d times in half a second after its burst", passed)
	}
}

func TestLimiter_RestedKeysAreDroppedFirst(t *testing.T) {
	l := open(t, Options{PerSecond: 1, Burst: 1, Capacity: ways})
	if len(l.sets) != 1 {
		t.Fatalf("%d sets, want 1", len(l.sets))
	}
	l.Allow(TextKey("rested"), start)
	for i := range ways - 1 {
		l.Allow(TextKey(strconv.Itoa(i)), start.Add(time.Second))
	}
	l.Allow(TextKey("new"), start.Add(time.Second))
	for i := range ways - 1 {
		if ok, _ := l.Allow(TextKey(strconv.Itoa(i)), start.Add(1500*time.Millisecond)); ok {
			t.Errorf("key %d was forgotten while it still counted", i)
		}
	}
}

func TestLimiter_ClockSetBackCostsOneInterval(t *testing.T) {
	l := open(t, Options{PerSecond: 1, Burst: 1})
	l.Allow(TextKey("buyer"), start)
	earlier := start.Add(-time.Hour)
	if _, wait := l.Allow(TextKey("buyer"), earlier); wait > time.Second {
		t.Fatalf("retry after %v", wait)
	}
	if ok, _ := l.Allow(TextKey("buyer"), earlier.Add(time.Second)); !ok {
		t.Error("still refused one interval after the clock was set back")
	}
}

func TestNew_RefusesInvalidOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"negative rate":     {PerSecond: -1},
		"rate too high":     {PerSecond: 2 * MaxRate},
		"rate too low":      {PerSecond: MinRate / 2},
		"rate not a number": {PerSecond: math.NaN()},
		"negative burst":    {PerSecond: 1, Burst: -1},
		"huge burst":        {PerSecond: 1, Burst: MaxBurst + 1},
		"negative capacity": {PerSecond: 1, Capacity: -1},
		"huge capacity":     {PerSecond: 1, Capacity: MaxCapacity + 1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLimiter_ExtremeOptionsDoNotOverflow(t *testing.T) {
	l := open(t, Options{PerSecond: MinRate, Burst: MaxBurst})
	for range 1000 {
		if ok, _ := l.Allow(TextKey("buyer"), start); !ok {
			t.Fatal("refused within the burst")
		}
	}
}

func TestLimiter_ConcurrentEventsPassExactlyTheBurst(t *testing.T) {
	l := open(t, Options{PerSecond: 1, Burst: 100})
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if ok, _ := l.Allow(TextKey("buyer"), start); ok {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if passed.Load() != 100 {
		t.Errorf("%d passed, want the burst of 100", passed.Load())
	}
}

func TestLimiter_AllocatesNothing(t *testing.T) {
	l := open(t, Options{PerSecond: 5})
	buyer, raw := "buyer-0000042", []byte("buyer-0000042")
	v4, v6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	if allocs := testing.AllocsPerRun(1000, func() {
		l.Allow(TextKey(buyer), start)
		l.Allow(BytesKey(raw), start)
		l.Allow(ProductKey(7), start)
		l.Allow(AddrKey(v4), start)
		l.Allow(AddrKey(v6), start)
	}); allocs != 0 {
		t.Errorf("%v allocations, budget 0", allocs)
	}
}

func BenchmarkAllow(b *testing.B) {
	l := open(b, Options{PerSecond: 5})
	keys := make([]string, 1<<14)
	for i := range keys {
		keys[i] = "buyer-" + strconv.Itoa(i)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		now := start
		for i := 0; pb.Next(); i++ {
			now = now.Add(time.Microsecond)
			l.Allow(TextKey(keys[i&(len(keys)-1)]), now)
		}
	})
}

func BenchmarkAllowAddr(b *testing.B) {
	l := open(b, Options{PerSecond: 5})
	addr := netip.MustParseAddr("2001:db8::1")
	b.ReportAllocs()
	for b.Loop() {
		l.Allow(AddrKey(addr), start)
	}
}
