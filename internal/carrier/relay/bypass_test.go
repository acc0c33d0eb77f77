package relay

import (
	"errors"
	"testing"
	"time"
)

func (noMeter) Bypassed(error) {}

// endBypass ends a bypass as if the broker had become well at this time.
func endBypass(r *relay, at time.Time) { r.bypassAt, r.bypassEnd = time.Time{}, at }

func TestUnwell_RepeatedBypassesGetLonger(t *testing.T) {
	r, _ := fullRelay(&storeAway{})
	r.opt.Timing.MinBypass = 15 * time.Second
	for i, want := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, maxBypass, maxBypass} {
		r.unwell(t.Context(), errors.New("slow"))
		if r.bypassFor != want || r.bypassAt.IsZero() || !r.Line.Bypassed() {
			t.Errorf("bypass %d lasts %s at least, want %s; bypassed is %v", i+1, r.bypassFor, want, r.Line.Bypassed())
		}
		endBypass(r, time.Now().Add(time.Minute-calmAfter)) // not calm for long enough
	}
	endBypass(r, time.Now().Add(-time.Second-calmAfter))
	r.unwell(t.Context(), errors.New("slow"))
	if r.bypassFor != 15*time.Second {
		t.Errorf("after a calm time a bypass lasts %s at least", r.bypassFor)
	}
	endBypass(r, time.Now())
	r.opt.Timing.MinBypass = 2 * maxBypass
	r.bypassFor = 2 * maxBypass
	r.unwell(t.Context(), errors.New("slow"))
	if r.bypassFor != 2*maxBypass {
		t.Errorf("with a least time above the longest one a bypass lasts %s at least", r.bypassFor)
	}
}
