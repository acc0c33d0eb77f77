package onetimemem

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"seckill"
	"seckill/internal/onetime"
	"seckill/internal/onetime/onetimetest"
	"seckill/test/rig"
)

func TestConformance(t *testing.T) {
	onetimetest.Run(t, func(*testing.T) *onetimetest.Fixture {
		var clock rig.Clock
		return &onetimetest.Fixture{Registers: []onetime.Register{New(clock.Now)}, Now: clock.Now, Wait: clock.Advance}
	})
}

func TestRegister_FullRegisterRefuses(t *testing.T) {
	const few = 100
	now := time.Unix(1_800_000_000, 0)
	r := New(func() time.Time { return now })
	r.capacity = few
	for i := range few {
		if first, err := r.Spend(t.Context(), fmt.Sprint(i), now.Add(time.Minute)); !first || err != nil {
			t.Fatalf("use %d: %v, %v", i, first, err)
		}
	}
	if _, err := r.Spend(t.Context(), "one more", now.Add(time.Minute)); !errors.Is(err, &seckill.Error{Code: seckill.CodeTooHot}) {
		t.Errorf("one more: %v", err)
	}
	if _, err := r.Settle(t.Context(), "one more", 1, now.Add(time.Minute)); seckill.CodeOf(err) != seckill.CodeTooHot {
		t.Errorf("one more, settled: %v", err)
	}
	for i := range few {
		if first, err := r.Spend(t.Context(), fmt.Sprint(i), now.Add(time.Minute)); first || err != nil {
			t.Fatalf("use %d again: %v, %v", i, first, err)
		}
	}
	now = now.Add(time.Minute)
	if first, err := r.Spend(t.Context(), "one more", now.Add(time.Minute)); !first || err != nil {
		t.Errorf("when all have ended: %v, %v", first, err)
	}
	if len(r.uses) != 1 || len(r.ends) != 1 {
		t.Errorf("%d uses and %d ends are kept, want 1", len(r.uses), len(r.ends))
	}
}

// A full register keeps to its capacity over many uses: the map reuses the
// memory of removed ones.
func TestRegister_UseTakesFewBytes(t *testing.T) {
	const some = 1 << 16
	now := time.Unix(1_800_000_000, 0)
	before := heapBytes()
	r := New(func() time.Time { return now })
	r.capacity = some
	for i := range 4 * some {
		if i%some == 0 {
			now = now.Add(time.Minute)
		}
		if first, err := r.Spend(t.Context(), fmt.Sprint(i), now.Add(time.Minute)); !first || err != nil {
			t.Fatalf("use %d: %v, %v", i, first, err)
		}
	}
	each := float64(heapBytes()-before) / some
	t.Logf("%.0f bytes a use", each)
	if each > 128 {
		t.Errorf("%.0f bytes a use, budget 128", each)
	}
	runtime.KeepAlive(r)
}

func heapBytes() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func BenchmarkSettle(b *testing.B) {
	now := time.Unix(1_800_000_000, 0)
	r := New(func() time.Time { return now })
	ids := make([]string, 1<<12)
	for i := range ids {
		ids[i] = fmt.Sprint("challenge:", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Millisecond)
		if _, err := r.Settle(b.Context(), ids[i&(len(ids)-1)], 1, now.Add(time.Second)); err != nil {
			b.Fatal(err)
		}
	}
}
