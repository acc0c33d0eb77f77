package background

import (
	"context"
	"time"
)

// Timeout of one connection attempt, and bounds of the pause between attempts.
const (
	openWithin   = 10 * time.Second
	minOpenPause = 500 * time.Millisecond
	maxOpenPause = 10 * time.Second
)

// Reach connects to a broker, and repeats until it succeeds. ok is false if ctx
// ended first.
func Reach[T any](ctx context.Context, open func(context.Context) (T, error), failed func(error)) (opened T, ok bool) {
	for wait := minOpenPause; ctx.Err() == nil; wait = min(2*wait, maxOpenPause) {
		opening, cancel := context.WithTimeout(ctx, openWithin)
		opened, err := open(opening)
		cancel()
		if err == nil {
			return opened, true
		}
		if ctx.Err() == nil {
			failed(err)
		}
		_ = Pause(ctx, wait) // the loop checks ctx
	}
	return opened, false
}
