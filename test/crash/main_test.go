// Package crash proves with the real binary that nothing is lost: it is killed
// at random instants and at every named point between two writes, stopped
// under load, starved of disk space and given a damaged journal, and the
// promises I1 to I8 are shown from the outside each time.
package crash

import (
	"os"
	"testing"

	"seckill/test/engine"
)

func TestMain(m *testing.M) { os.Exit(engine.Main(m)) }
