package fault

import (
	"testing"
	"time"
)

func TestNow_SkewFromEnvironment(t *testing.T) {
	for spec, want := range map[string]time.Duration{
		"": 0, "clock:+5m": 5 * time.Minute, "clock:-5m": -5 * time.Minute,
		"clock:soon": 0, "store.confirm.before:3": 0,
	} {
		if got := skewOf(spec); got != want {
			t.Errorf("%q sets it by %v, want %v", spec, got, want)
		}
	}
	if by := time.Since(Now()); by.Abs() > time.Minute {
		t.Errorf("without the fault the clock is off by %v", by)
	}
}
