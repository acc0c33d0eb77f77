// Package outage breaks what several instances of the real binary stand on,
// under load: Redis, MariaDB, the network to them, the instances themselves and
// their clocks. After each fault the promises I1 to I8 are shown from the
// outside, and what the crowd saw meanwhile is measured.
package outage

import (
	"os"
	"testing"

	"seckill/test/engine"
)

func TestMain(m *testing.M) { os.Exit(engine.Main(m)) }
