package fault

import (
	"testing"
	"time"

	"seckill/test/virtual"
)

func TestPoint_DelaysEveryCallWithoutKilling(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		defer Arm("")
		Arm("slow~20ms")
		for _, c := range []struct {
			name string
			want time.Duration
		}{{"slow", 20 * time.Millisecond}, {"another", 0}, {"slow", 20 * time.Millisecond}} {
			began := time.Now()
			Point(c.name)
			if took := time.Since(began); took != c.want {
				t.Errorf("%s was passed in %s, want %s", c.name, took, c.want)
			}
		}
	})
}
