package background

import (
	"context"
	"time"
)

// How long a broker is waited for, and how often it is tried.
const (
	openWithin = 10 * time.Second
	openLeast  = 500 * time.Millisecond
	openMost   = 10 * time.Second
)

// Reach connects to a broker, however long it is away. It is false if ctx has
// ended before.
func Reach[T any](ctx context.Context, open func(context.Context) (T, error), failed func(error)) (opened T, ok bool) {
	for wait := openLeast; ctx.Err() == nil; wait = min(2*wait, openMost) {
		opening, cancel := context.WithTimeout(ctx, openWithin)
		opened, err := open(opening)
		cancel()
		if err == nil {
			return opened, true
		}
		if ctx.Err() == nil {
			failed(err)
		}
		_ = Pause(ctx, wait) // the loop looks at ctx
	}
	return opened, false
}
