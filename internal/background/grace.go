// Contexts that last a little longer than a stop, for calls that are already
// running.

package background

import (
	"context"
	"time"
)

// GraceTime is how long calls to a broker may continue after a stop. A working
// broker answers within it. A silent one must not delay the stop: its messages
// come again.
const GraceTime = time.Second

// GraceContext ends a fixed time after ctx. It has the values of ctx, but not
// its deadline.
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
