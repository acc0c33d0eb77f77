package fault

import (
	"os"
	"strings"
	"sync"
	"time"
)

// clockName is the fault of a wrong wall clock: EnvVar is "clock:+5m" or
// "clock:-5m".
const clockName = "clock:"

// Now is the wall clock plus the Skew from the environment. All code that needs the
// time of day calls it. Durations use the monotonic clock, which cannot be set.
func Now() time.Time {
	if by := Skew(); by != 0 {
		return time.Now().Round(0).Add(by)
	}
	return time.Now()
}

// Skew is the configured error of the clock.
var Skew = sync.OnceValue(func() time.Duration { return skewOf(os.Getenv(EnvVar)) })

func skewOf(spec string) time.Duration {
	text, found := strings.CutPrefix(spec, clockName)
	if !found {
		return 0
	}
	by, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return by
}
