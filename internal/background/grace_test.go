package background_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/background"
	"seckill/test/virtual"
)

func TestGraceContext_EndsLaterThanItsParent(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		longer, end := background.GraceContext(ctx, time.Second)
		defer end()
		began := time.Now()
		<-longer.Done()
		if took := time.Since(began); took != time.Minute+time.Second {
			t.Errorf("the context ended after %s", took)
		}
	})
}

func TestGraceContext_EndsWhenCancelled(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		longer, end := background.GraceContext(ctx, time.Hour)
		cancel()
		synctest.Wait()
		if longer.Err() != nil {
			t.Error("the context ended with its parent")
		}
		end()
		if longer.Err() == nil {
			t.Error("the context did not end")
		}
	})
}
