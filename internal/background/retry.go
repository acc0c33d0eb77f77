package background

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Retry calls try until it succeeds, returns an error for which stays is true,
// or ctx ends. At the end of ctx it returns the last real error, not only the
// timeout.
func Retry(ctx context.Context, pause time.Duration, stays func(error) bool, try func() error) error {
	var last error
	for {
		err := try()
		if err == nil || stays(err) {
			return err
		}
		if last == nil || !isEnd(err) {
			last = err
		}
		if Pause(ctx, pause) == nil {
			continue
		}
		if errors.Is(last, ctx.Err()) {
			return last
		}
		return fmt.Errorf("%w; gave up: %w", last, ctx.Err())
	}
}

// isEnd reports whether an error comes from a context.
func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// CallWithin returns when the call does, or when ctx ends. The call then
// continues in the background.
func CallWithin(ctx context.Context, call func() error) error {
	result := make(chan error, 1)
	go func() { result <- call() }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WaitWithin is CallWithin for a wait without an error, such as that of a
// WaitGroup.
func WaitWithin(ctx context.Context, end func()) error {
	return CallWithin(ctx, func() error {
		end()
		return nil
	})
}
