package sale

import (
	"testing"
	"time"

	"seckill"
)

// Only a request that was seen to appear within an epoch tells since when other
// instances can see it.
func TestWatchRebuild_CountsFromTheRequestAndTheLastOrder(t *testing.T) {
	const usual, long = time.Second, unreadMost + time.Millisecond
	type reading struct {
		epoch, version uint64
		due            bool
		gap            time.Duration // since the reading before
	}
	open, due := reading{1, 7, false, usual}, reading{1, 7, true, usual}
	for name, story := range map[string]struct {
		readings []reading
		calm     time.Duration // -1 for unknown
	}{
		"not due":                            {[]reading{open, open}, -1},
		"just due":                           {[]reading{open, due}, 0},
		"due for a while":                    {[]reading{open, due, due, due}, 2 * usual},
		"an order was written":               {[]reading{open, due, due, {1, 8, true, usual}}, 0},
		"an order was written a while ago":   {[]reading{open, due, {1, 8, true, usual}, {1, 8, true, usual}}, usual},
		"the store was not read for a while": {[]reading{open, due, due, {1, 7, true, long}}, 0},
		"due while it was not read":          {[]reading{open, {1, 7, true, long}, due}, usual},
		"first seen when it is due":          {[]reading{due, due}, -1},
		"due since the epoch's own rebuild":  {[]reading{open, due, {2, 8, true, usual}, {2, 8, true, usual}}, -1},
		"rebuilt, and due again":             {[]reading{open, due, {2, 8, true, usual}, {2, 8, false, usual}, {2, 8, true, usual}, {2, 8, true, usual}}, usual},
		"no longer due":                      {[]reading{open, due, open}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			var s Sale
			var before *seckill.Product
			now := time.Now()
			for _, r := range story.readings {
				now = now.Add(r.gap)
				after := &seckill.Product{Epoch: r.epoch, Version: r.version, Rebuilding: r.due}
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
