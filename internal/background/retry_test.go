package background_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"seckill/internal/background"
	"seckill/test/virtual"
)

var (
	errAway  = errors.New("the broker is away")
	errStays = errors.New("the password is wrong")
)

func stays(err error) bool { return errors.Is(err, errStays) }

func TestRetry_EndsWithSuccessOrAnErrorThatStays(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		for _, last := range []error{nil, errStays} {
			tries := 0
			begun := time.Now()
			err := background.Retry(t.Context(), time.Second, stays, func() error {
				if tries++; tries < 3 {
					return errAway
				}
				return last
			})
			if !errors.Is(err, last) || tries != 3 || time.Since(begun) != 2*time.Second {
				t.Errorf("it ended after %d tries and %s: %v", tries, time.Since(begun), err)
			}
		}
	})
}

func TestRetry_ReturnsTheReasonAtTheEndOfTheTime(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		first := true
		err := background.Retry(ctx, time.Second, stays, func() error {
			if first {
				first = false
				return errAway
			}
			<-ctx.Done()
			return fmt.Errorf("ask: %w", ctx.Err())
		})
		if !errors.Is(err, errAway) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		silent := fmt.Errorf("the broker does not answer: %w", context.DeadlineExceeded)
		if err := background.Retry(ctx, time.Second, stays, func() error { return silent }); err != silent {
			t.Errorf("without a reason the error is %v", err)
		}
	})
}

func TestCallWithin_ReturnsWithItsContext(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := background.CallWithin(ctx, func() error { return errAway }); err != errAway {
			t.Errorf("the call's error is %v", err)
		}
		release := make(chan struct{})
		if err := background.CallWithin(ctx, func() error { <-release; return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that hangs ended with %v", err)
		}
		if err := background.WaitWithin(ctx, func() { <-release }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that hangs ended with %v", err)
		}
		close(release)
		if err := background.WaitWithin(t.Context(), func() { <-release }); err != nil {
			t.Errorf("a wait ended with %v", err)
		}
	})
}
