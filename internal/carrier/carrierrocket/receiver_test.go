package carrierrocket

import (
	"testing"
	"time"

	"seckill/internal/carrier"
)

func TestAgainAfter_DoublesUpToABound(t *testing.T) {
	want := []time.Duration{2, 2, 4, 8, 16, 32, 60, 60}
	for attempt, seconds := range want {
		if got := againAfter(attempt); got != seconds*time.Second {
			t.Errorf("attempt %d: %s", attempt, got)
		}
	}
	if againMax >= carrier.RedeliverWithin || DefaultInvisible >= carrier.RedeliverWithin {
		t.Error("a message comes again later than the port allows")
	}
}
