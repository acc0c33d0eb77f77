package purchase_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/purchase"
	"seckill/internal/sale"
	"seckill/test/rig"
	"seckill/test/virtual"
)

// The outlets of these tests serve batches of ten on two lanes. A step takes 50 ms, so
// they serve 400 claims a second.
const (
	lineBatch    = 10
	lineStep     = 50 * time.Millisecond
	lineRate     = 2 * lineBatch * int(time.Second/lineStep)
	lineDeadline = 800 * time.Millisecond
)

// newLine is an outlet whose queue bound is never reached.
func newLine(t *testing.T, stock ...int64) (*outlet, *reasons) {
	t.Helper()
	why := &reasons{counts: map[purchase.TooHot]int{}}
	o := newOutletWith(t, func(opt *purchase.Options) {
		opt.QueueSize, opt.MaxBatch, opt.Timeout, opt.Reports = 100_000, lineBatch, lineDeadline, reports{tooHot: why.count}
	}, stock...)
	o.remote.setPace(lineStep)
	return o, why
}

// reasons counts the reasons of too_hot.
type reasons struct {
	mu     sync.Mutex
	counts map[purchase.TooHot]int
}

func (r *reasons) count(why purchase.TooHot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[why]++
}

func (r *reasons) of(why purchase.TooHot) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[why]
}

// seen counts the answers of a crowd.
type seen struct {
	mu    sync.Mutex
	codes map[seckill.Code]int
	took  map[seckill.Code][]time.Duration
}

func (s *seen) add(code seckill.Code, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[code]++
	s.took[code] = append(s.took[code], took)
}

// stream sends claims at a rate, answered or not.
func (o *outlet) stream(name string, rate int, lasts time.Duration) *seen {
	s := &seen{codes: map[seckill.Code]int{}, took: map[seckill.Code][]time.Duration{}}
	var all sync.WaitGroup
	for i := range int(lasts * time.Duration(rate) / time.Second) {
		all.Go(func() { s.add(o.answer(fmt.Sprintf("%s-%d", name, i))) })
		virtual.Sleep(time.Second / time.Duration(rate))
	}
	all.Wait()
	return s
}

func TestProspect_OverloadKeepsGoodputAndBoundsWaiting(t *testing.T) {
	for _, times := range []int{1, 2, 5, 20} {
		virtual.Test(t, func(t *testing.T) {
			o, why := newLine(t, 1_000_000)
			const lasts = 10 * time.Second
			s := o.stream("b", times*lineRate, lasts)
			if accepted, peak := s.codes[""], lineRate*int(lasts/time.Second); accepted < peak*95/100 {
				t.Errorf("× %d: %d accepted, %d could be: %v", times, accepted, peak, s.codes)
			}
			if s.codes[seckill.CodeBusy] > 0 || s.codes[""]+s.codes[seckill.CodeTooHot] != times*lineRate*int(lasts/time.Second) {
				t.Errorf("× %d: answered %v", times, s.codes)
			}
			if most := slices.Max(s.took[""]); most > lineDeadline {
				t.Errorf("× %d: an accepted claim waited %s", times, most)
			}
			if refused := s.took[seckill.CodeTooHot]; times > 1 && slices.Max(refused) != 0 {
				t.Errorf("× %d: a refused claim waited %s", times, slices.Max(refused))
			}
			if why.of(purchase.TooHotLate) != s.codes[seckill.CodeTooHot] {
				t.Errorf("× %d: refused for %v", times, why.counts)
			}
			o.exactlyOnce(t)
		})
	}
}

// A line that was quiet answered few claims, but can still answer as many as ever.
func TestProspect_FirstCrowdAfterQuietHourIsAdmitted(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o, _ := newLine(t, 1_000_000)
		o.stream("quiet", 1, 100*time.Second)
		s := o.stream("crowd", 100*lineRate, 5*time.Millisecond) // 200 at once: half a second's work
		if s.codes[""] != 200 {
			t.Errorf("answered %v", s.codes)
		}
	})
}

func TestProspect_LineFillsAgainAfterStall(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o, _ := newLine(t, 1_000_000)
		o.stream("before", lineRate, time.Second)
		o.remote.setPace(390 * time.Millisecond) // just below the lane's timeout
		slow := o.stream("slow", 2*lineRate, 3*time.Second)
		// Two lanes of ten every 390 ms; all claims in their steps are answered in time.
		if slow.codes[""] < 3*40 {
			t.Errorf("while it was slow: %v", slow.codes)
		}
		o.remote.setPace(lineStep)
		o.stream("waking", lineRate, 500*time.Millisecond)
		if s := o.stream("after", lineRate, time.Second); s.codes[""] < lineRate*99/100 {
			t.Errorf("a second after the stall: %v", s.codes)
		}
	})
}

// Ten units are left. A few more claims than units may wait; the others are refused.
func TestProspect_ClaimsBeyondUnitsLeftAreTooHot(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		const left = 10
		o, why := newLine(t, left+1)
		if got, _ := o.answer("first"); got != "" {
			t.Fatalf("answered %q", got)
		}
		s := o.stream("b", 100_000, 5*time.Millisecond) // 500, within the first step
		const waited = 2 + 2*left + 2*lineBatch         // in flight, for the units, and what both lanes take
		if s.codes[""] != left || s.codes[seckill.CodeTooHot] != 500-waited || s.codes[seckill.CodeSoldOut] != waited-left {
			t.Errorf("answered %v for %v", s.codes, why.counts)
		}
		if why.of(purchase.TooHotStock) != s.codes[seckill.CodeTooHot] || slices.Max(s.took[seckill.CodeTooHot]) != 0 {
			t.Errorf("refused for %v, the slowest after %s", why.counts, slices.Max(s.took[seckill.CodeTooHot]))
		}
		o.exactlyOnce(t)
	})
}

// Free units on other shards count.
func TestProspect_CountsUnitsOfOtherShards(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o, why := newLine(t, 1, 500, 500)
		for shard := range 3 {
			o.want(t, o.homed(shard, shard), 1, "") // now all are known
		}
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() { o.answer(o.homed(0, 10+i)) })
		}
		all.Wait()
		if why.of(purchase.TooHotStock) > 0 {
			t.Errorf("refused for %v with 998 units on other shards", why.counts)
		}
		o.exactlyOnce(t)
	})
}

// A repeated claim needs no unit.
func TestProspect_RememberedBuyerNeedsNoUnit(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutletWith(t, func(opt *purchase.Options) {
			opt.Memory = sale.NewMemory()
			opt.Memory.Learn(1, "winner")
		}, 2)
		o.remote.setPace(lineStep)
		if got, _ := o.answer("winner"); got != "" {
			t.Fatalf("answered %q", got)
		}
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() { o.answer(fmt.Sprint("b", i)) })
			virtual.Sleep(time.Microsecond) // the first two are in flight, the others in line or refused
		}
		if got, took := o.answer("stranger"); got != seckill.CodeTooHot || took != 0 {
			t.Errorf("a stranger was answered %q after %s", got, took)
		}
		if got, _ := o.answer("winner"); got != "" {
			t.Errorf("who has an order was answered %q", got)
		}
		all.Wait()
	})
}

// The next claim renews the estimate of units left.
func TestProspect_ReturnedUnitsAreSold(t *testing.T) {
	for name, strategy := range map[string]seckill.Strategy{"ledger": seckill.StrategyAsync, "store": seckill.StrategyDirect} {
		t.Run(name, func(t *testing.T) {
			c := newFixtureOf(t, 1, []func(*seckill.Product){rig.Strategy(strategy)})
			_, err := c.buy("a")
			rig.Must(t, err)
			_, err = c.buy("b")
			rig.Refused(t, err, seckill.CodeSoldOut)
			_, err = c.Lifecycle.ChangeStock(t.Context(), 1, 500, "more", rig.Operator)
			rig.Must(t, err)
			if got := tally(c.crowd(100, "c")); got[""] != 100 { // a batch
				t.Errorf("answers are %v", got)
			}
		})
	}
}

// The same rules hold for the till.
func TestTill_RefusesClaimsBeyondItsCapacity(t *testing.T) {
	gate := make(chan struct{})
	slow := &slowSeller{gate: gate}
	why := &reasons{counts: map[purchase.TooHot]int{}}
	c := newShop(t, 11, func(o *purchase.Options) {
		slow.DirectSeller, o.DirectSeller, o.MaxBatch, o.Reports = o.DirectSeller, slow, lineBatch, reports{tooHot: why.count}
	})
	go func() { gate <- struct{}{} }()
	_, err := c.buy("first")
	rig.Must(t, err)
	answers := make(chan []error, 1)
	go func() { answers <- c.crowd(100, "b") }()
	const inHand, waiting = lineBatch, 2*10 + lineBatch
	rig.Until(t, "the rest is refused", func() bool { return why.of(purchase.TooHotStock) >= 100-inHand-waiting })
	close(gate)
	if got := tally(<-answers); got[""] != 10 || got[seckill.CodeTooHot]+got[seckill.CodeSoldOut] != 90 {
		t.Errorf("answers are %v", got)
	}
}
