package background_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/internal/background"
	"seckill/test/virtual"
)

func TestPause_EndsWithItsContext(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		begun := time.Now()
		if err := background.Pause(t.Context(), time.Second); err != nil || time.Since(begun) != time.Second {
			t.Errorf("a pause ended after %v: %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := background.Pause(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 2*time.Second {
			t.Errorf("a pause went on until %v: %v", time.Since(begun), err)
		}
		if err := background.Pause(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no pause after the end: %v", err)
		}
	})
}
