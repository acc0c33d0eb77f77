package sale

import (
	"testing"
	"time"

	"seckill"
)

// Only a mark that was seen to appear within an epoch tells since when other
// instances can see it.
func TestWatchMark_CountsFromTheMarkAndTheLastOrder(t *testing.T) {
	const usual, long = time.Second, unreadMost + time.Millisecond
	type reading struct {
		epoch, version uint64
		marked         bool
		gap            time.Duration // since the reading before
	}
	open, marked := reading{1, 7, false, usual}, reading{1, 7, true, usual}
	for name, story := range map[string]struct {
		readings []reading
		calm     time.Duration // -1 for unknown
	}{
		"not marked":                          {[]reading{open, open}, -1},
		"just marked":                         {[]reading{open, marked}, 0},
		"marked for a while":                  {[]reading{open, marked, marked, marked}, 2 * usual},
		"an order was written":                {[]reading{open, marked, marked, {1, 8, true, usual}}, 0},
		"an order was written a while ago":    {[]reading{open, marked, {1, 8, true, usual}, {1, 8, true, usual}}, usual},
		"the store was not read for a while":  {[]reading{open, marked, marked, {1, 7, true, long}}, 0},
		"marked while it was not read":        {[]reading{open, {1, 7, true, long}, marked}, usual},
		"first seen with its mark":            {[]reading{marked, marked}, -1},
		"the mark of the epoch's own rebuild": {[]reading{open, marked, {2, 8, true, usual}, {2, 8, true, usual}}, -1},
		"rebuilt, and marked again":           {[]reading{open, marked, {2, 8, true, usual}, {2, 8, false, usual}, {2, 8, true, usual}, {2, 8, true, usual}}, usual},
		"the mark was taken back":             {[]reading{open, marked, open}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			var s Sale
			var before *seckill.Product
			now := time.Now()
			for _, r := range story.readings {
				now = now.Add(r.gap)
				after := &seckill.Product{Epoch: r.epoch, Version: r.version, Rebuilding: r.marked}
				s.watchRebuild(before, after, now, r.gap)
				before = after
			}
			calm := time.Duration(-1)
			if c := s.calm.Load(); c != nil {
				calm = now.Sub(c.since)
				if c.epoch != before.Epoch || c.version != before.Version {
					t.Errorf("it is calm at %+v, the product is %+v", c, before)
				}
			}
			if calm != story.calm {
				t.Errorf("calm for %s, want %s", calm, story.calm)
			}
		})
	}
}
