package virtual

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// bubbles counts the running bubbles and keeps the GOMAXPROCS of before the
// first.
var bubbles struct {
	mu     sync.Mutex
	count  int
	before int
}

// Test runs f in a testing/synctest bubble, on one processor. With more, two
// threads can fire timers of one bubble at the same time, and the race detector
// crashes (Go 1.26; golang.org/issue/78156).
func Test(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	bubbles.mu.Lock()
	if bubbles.count == 0 {
		bubbles.before = runtime.GOMAXPROCS(1)
	}
	bubbles.count++
	bubbles.mu.Unlock()
	defer func() {
		bubbles.mu.Lock()
		defer bubbles.mu.Unlock()
		if bubbles.count--; bubbles.count == 0 {
			runtime.GOMAXPROCS(bubbles.before)
		}
	}()
	synctest.Test(t, f)
}
