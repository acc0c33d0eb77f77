// Package outage breaks what several instances of the real binary stand on,
// under load: Redis, MariaDB, the network to them, the instances themselves and
// their clocks. After each fault the promises I1 to I8 are shown from the
// outside, and what the crowd saw meanwhile is measured.
package outage

import (
	"flag"
	"os"
	"testing"

	"seckill/test/engine"
)

func TestMain(m *testing.M) {
	// The stories that run in parallel wait more than they compute.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(engine.Main(m))
}
