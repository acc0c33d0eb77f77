package outage

import (
	"context"
	"os"
	"testing"
	"time"

	"seckill/test/market"
)

// soakEnv is how long a soak lasts; unset, it is short.
const (
	soakEnv   = "SECKILL_SOAK"
	soakShort = 3 * time.Second
	countGap  = 100 * time.Millisecond // between two counts
	// undecidedMost is the fraction of counts that may not be able to tell.
	undecidedMost = 0.01
)

// Every product is counted again and again while the crowd does what it can,
// and no count finds anything: there is nothing to find.
func TestCountsUnderTrafficRaiseNoFalseAlarm(t *testing.T) {
	duration := soakShort
	if text := os.Getenv(soakEnv); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", soakEnv, err)
		}
	}
	s := open(t, plan{})
	var balanced, undecided int
	s.during(func(ctx context.Context) {
		for began := time.Now(); time.Since(began) < duration && !t.Failed(); {
			for id := range s.Products {
				report, err := s.Operator().Reconcile(ctx, id, false)
				switch {
				case err != nil && !market.Temporary(err):
					t.Errorf("count product %d: %v", id, err)
				case err != nil || report.Balanced == nil:
					undecided++ // busy is no alarm
				case *report.Balanced:
					balanced++
				default:
					t.Errorf("a false alarm for product %d: %+v", id, report)
				}
				market.Pause(ctx, countGap)
			}
		}
	})
	t.Logf("%d counts balanced, %d undecided, over %v", balanced, undecided, duration)
	if float64(undecided) > undecidedMost*float64(balanced)+1 {
		t.Errorf("%d of %d counts could not tell", undecided, balanced+undecided)
	}
	s.keepsItsPromises()
}
