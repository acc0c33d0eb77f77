package ledgerredis

import "testing"

func TestPace_ReadsFewerMarksIfTheyAreLong(t *testing.T) {
	for name, c := range map[string]struct {
		mark int64 // bytes
		want int
	}{
		"of one order each":       {100, 256},
		"of some":                 {400, 128},
		"of many":                 {12_000, 4},
		"each more than it wants": {1 << 20, 1},
		"none":                    {0, 256},
	} {
		p := newPace(256)
		for range 20 {
			p.saw(int64(p.next) * c.mark)
		}
		if p.next != c.want {
			t.Errorf("marks %s: %d a step, want %d", name, p.next, c.want)
		}
	}
	p := newPace(256)
	for range 20 {
		p.saw(1 << 20)
	}
	for range 20 {
		p.saw(0)
	}
	if p.next != 256 {
		t.Errorf("%d a step after long marks are over", p.next)
	}
}
