package engine

import (
	"testing"

	"seckill/test/loopback"
)

// freeAddress is a loopback address that is this test's alone until it ends,
// also while the engine is down.
func freeAddress(t testing.TB) string {
	t.Helper()
	address, release, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return address
}
