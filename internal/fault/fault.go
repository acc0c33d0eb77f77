// Package fault kills or delays the process at named points. So tests can show what
// survives a crash between two writes, and what a slow disk does. A point costs one
// atomic load unless the environment arms it.
package fault

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// EnvVar arms a point: "name" kills at the first call, "name:3" at the third.
// "name~20ms" delays every call by that time.
const EnvVar = "SECKILL_FAULT"

type armed struct {
	name string
	left atomic.Int64
	hold time.Duration // instead of killing
}

var current atomic.Pointer[armed]

func init() {
	if spec := os.Getenv(EnvVar); spec != "" {
		Arm(spec)
	}
}

// Arm arms one point and disarms any other; an empty spec disarms.
func Arm(spec string) {
	if spec == "" {
		current.Store(nil)
		return
	}
	if name, length, found := strings.Cut(spec, "~"); found {
		hold, err := time.ParseDuration(length)
		if err != nil || hold <= 0 {
			panic(fmt.Sprintf("fault: %q is no duration", length)) // a test's mistake: it would measure nothing
		}
		current.Store(&armed{name: name, hold: hold})
		return
	}
	name, count, found := strings.Cut(spec, ":")
	a := &armed{name: name}
	a.left.Store(1)
	if n, err := strconv.ParseInt(count, 10, 64); found && err == nil && n > 0 {
		a.left.Store(n)
	}
	current.Store(a)
}

// Point marks a place between two writes. An armed point kills the process as
// SIGKILL does: nothing is flushed and no deferred function runs.
func Point(name string) {
	a := current.Load()
	if a == nil || a.name != name {
		return
	}
	if a.hold > 0 {
		<-time.After(a.hold)
		return
	}
	if a.left.Add(-1) != 0 {
		return
	}
	fmt.Fprintf(os.Stderr, "fault: killed at %s\n", name)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
