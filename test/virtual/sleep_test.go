package virtual

import (
	"testing"
	"time"
)

func TestClock_OnlyTheBubblesTimePasses(t *testing.T) {
	Test(t, func(t *testing.T) {
		began := time.Now()
		Sleep(time.Hour)
		if passed := time.Since(began); passed != time.Hour {
			t.Errorf("%s passed", passed)
		}
	})
	Sleep(0) // zero is allowed on the real clock
	defer func() {
		if recover() == nil {
			t.Error("slept on the real clock")
		}
	}()
	Sleep(time.Nanosecond)
}
