package loadtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"seckill"
)

const (
	// tokenProbe is how many purchase tokens are fetched first, to see how long
	// the others will take.
	tokenProbe = 128
	// tokenMargin is how long a token must live on when its press is due: on a
	// busy machine a request takes its time.
	tokenMargin = 5 * time.Second
)

// pass is a buyer's purchase token, and the answered challenge that gives it
// again as long as the challenge lives. All tokens of one challenge are one
// purchase; those of another challenge are another. Times are the server's.
type pass struct {
	challengeID, answer string
	challengeEnds       time.Time
	// ends is the token's end, and stale from when it is not begun with any more.
	ends, stale time.Time
}

// staleFrom leaves a margin before the end, a quarter of what is left at most.
func staleFrom(now, ends time.Time) time.Time {
	return ends.Add(-max(0, min(tokenMargin, ends.Sub(now)/4)))
}

// errOtherKey says that a token cannot be had again for the same purchase.
var errOtherKey = errors.New("its token and its challenge have run out, and another one would be another purchase")

// errTokenRefused says that the shop took none of a buyer's tokens.
var errTokenRefused = errors.New("the shop answered token_invalid to the last try")

// lacks reports whether a buyer needs a token for a press at an instant here.
func (c *crowd) lacks(b *buyer, at time.Time) bool {
	return b.pass != nil && !at.Add(c.clock.offset).Before(b.pass.stale)
}

// fetch gets a buyer a purchase token: of the challenge that the buyer has
// answered, if it lives, so that an order that there may be is found again.
// Otherwise of another challenge, if there can be no order yet.
func (c *crowd) fetch(s *shop, b *buyer) error {
	p := pass{}
	if b.pass != nil {
		p = *b.pass
	}
	if !c.clock.server().Before(p.challengeEnds) {
		if b.mayOwn {
			return errOtherKey
		}
		var err error
		if p.challengeID, p.answer, p.challengeEnds, err = s.challenge(c.product, b.authorization); err != nil {
			return err
		}
	}
	token, ends, err := s.token(c.product, b.authorization, p.challengeID, p.answer)
	if codeIs(err, seckill.CodeTokenInvalid) && b.pass != nil {
		b.pass.challengeEnds = time.Time{} // too old after all
	}
	if err != nil {
		return err
	}
	p.ends, p.stale = ends, staleFrom(c.clock.server(), ends)
	b.body = fmt.Appendf(nil, `{"quantity":%d,"token":%q}`, c.opt.Quantity, token)
	b.pass = &p
	return nil
}

func codeIs(err error, code seckill.Code) bool {
	var no *refusal
	return errors.As(err, &no) && no.code == code
}

// refused forgets a token that the shop did not take. Who can have no order
// forgets the challenge as well.
func (b *buyer) refused() {
	if b.pass == nil {
		b.pass = new(pass)
	}
	b.pass.stale = time.Time{}
	if !b.mayOwn {
		b.pass.challengeEnds = time.Time{}
	}
}

// fetchTokens gets the buyers from one number to another their purchase tokens
// before the crowd comes, or as many as it can until an instant, if one is set.
func (c *crowd) fetchTokens(ctx context.Context, shops []*shop, from, to int, until time.Time) error {
	var mu sync.Mutex
	var failed error
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	c.inTurnUntil(bounded, "fetching purchase tokens", shops, to-from, until, func(s *shop, i int) {
		err := c.steady(bounded, func() error { return c.fetch(s, &c.buyers[from+i]) })
		if err == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			failed = fmt.Errorf("fetch purchase tokens: %w", err)
			cancel()
		}
	})
	if failed == nil {
		failed = ctx.Err()
	}
	return failed
}

// ready sees to it that a call has a living token when it is due. It reports
// false when there is none yet, and the call waits for its next try, or never
// will be.
func (c *crowd) ready(s *shop, next call) bool {
	b := &c.buyers[next.buyer]
	due := next.due
	if now := c.clock.now(); due.Before(now) {
		due = now
	}
	if !c.lacks(b, due) {
		return true
	}
	err := c.fetch(s, b)
	if err == nil {
		c.tally.fetched.Add(1)
		return true
	}
	first := next.try == 0
	// An answer that is too old by now may be given to another challenge.
	hope := passing(err) || codeIs(err, seckill.CodeTokenInvalid)
	switch {
	case hope && next.try < c.opt.Retries:
		next.due = c.clock.now().Add(backoff(next.try, askedWait(err), c.opt.Random()))
		next.try++
		if first {
			c.tally.waiting.Add(1)
		}
		c.line.put(next)
	default:
		b.lack = err
		if !first {
			c.tally.waiting.Add(-1)
		}
	}
	return false
}

// forecast is how long the rest takes if it goes on as it did.
func forecast(done int, took time.Duration, left int) time.Duration {
	return time.Duration(float64(took) / float64(max(done, 1)) * float64(left))
}

// roughly is a time in words that are not more exact than it is.
func roughly(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// equip gets the crowd its tokens, in time for the start if they can be had so
// fast, and returns when the crowd comes. It comes before the first of them run
// out: who has none by then fetches it on the way.
func (r *run) equip(ctx context.Context, c *crowd, start time.Time) (time.Time, error) {
	if opens := r.tokensOpen; opens != nil { // none is to be had before
		if err := c.clock.wait(ctx, c.clock.local(opens.Time()).Add(clockGrain)); err != nil {
			return start, err
		}
	}
	first := min(tokenProbe, len(c.buyers))
	began := c.clock.now()
	if err := c.fetchTokens(ctx, r.shops, 0, first, time.Time{}); err != nil {
		return start, err
	}
	if rest := len(c.buyers) - first; rest > 0 {
		took := c.clock.now().Sub(began)
		needs := forecast(first, took, rest)
		last := c.lastFetch(began, start)
		now := c.clock.now()
		r.tellForecast(start.Sub(now), max(0, last.Sub(now)), took, needs, rest)
		// A busier machine may take half as long again.
		if err := c.clock.wait(ctx, start.Add(-warmBefore-needs*3/2)); err != nil {
			return start, err
		}
		if err := c.fetchTokens(ctx, r.shops, first, len(c.buyers), last); err != nil {
			return start, err
		}
	}
	for i := range c.buyers {
		if b := &c.buyers[i]; b.pass == nil {
			b.pass = new(pass)
		}
	}
	if now := c.clock.now(); start.Before(now) {
		start = now
	}
	return start, nil
}

// lastFetch is until when tokens are fetched before the crowd comes: a quarter
// of a token's life is left for the presses. Tokens that are made before the
// start live from the start on.
func (c *crowd) lastFetch(began, start time.Time) time.Time {
	if began.Before(start) {
		began = start
	}
	ends := c.clock.local(c.buyers[0].pass.ends)
	return ends.Add(-ends.Sub(began) / 4)
}

// tellForecast says when the crowd will come, and how: opens is until the start,
// room until the crowd comes in any case.
func (r *run) tellForecast(opens, room, took, needs time.Duration, rest int) {
	fetching := max(0, min(needs, room))
	when := fmt.Sprintf("in %s, when the sale opens", roughly(opens))
	if late := fetching - opens; late > 0 {
		when = fmt.Sprintf("in about %s, %s late", roughly(fetching), roughly(late))
	}
	if lasts := needs - fetching; lasts > 0 {
		left := min(float64(rest), math.Ceil(float64(rest)*lasts.Seconds()/needs.Seconds()))
		when += fmt.Sprintf("; about %.0f fetch theirs on the way, for another %s, as tokens run out", left, roughly(lasts))
		if lasts > r.opt.Duration {
			when += ": longer than --duration"
		}
	}
	r.opt.phase("%d purchase tokens took %s, the other %d take about %s: the crowd comes %s", tokenProbe, roughly(took), rest, roughly(needs), when)
}
