package engine

import (
	"testing"

	"seckill/test/loopback"
)

// freeAddress reserves a loopback address for the test until it ends, also
// while the engine is down.
func freeAddress(t testing.TB) string {
	t.Helper()
	address, release, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return address
}
