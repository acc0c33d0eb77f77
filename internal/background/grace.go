// This file says how long calls in hand may go on after a stop, and has the
// wait that ends with one.

package background

import (
	"context"
	"time"
)

// GraceTime is how long calls to a broker go on. One that works answers within it. One
// that does not must not hold up a stop: all that it has comes again.
const GraceTime = time.Second

// GraceContext ends so long after ctx. It has the values of ctx, and not its
// deadline.
func GraceContext(ctx context.Context, long time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(long, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		forget()
		cancel()
	}
}
