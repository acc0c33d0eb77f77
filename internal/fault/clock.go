package fault

import (
	"os"
	"strings"
	"sync"
	"time"
)

// clockName is the fault of a wall clock that is wrong: EnvVar is "clock:+5m"
// or "clock:-5m".
const clockName = "clock:"

// Now is the wall clock of this process's machine, as wrong as the environment
// makes it. Whoever asks for the time of day asks here; durations are measured
// on the monotonic clock, which nobody sets.
func Now() time.Time {
	if by := Skew(); by != 0 {
		return time.Now().Round(0).Add(by)
	}
	return time.Now()
}

// Skew is by how much that clock is wrong.
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
