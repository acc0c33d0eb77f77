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
	// tokenProbe is how many purchase tokens are fetched first, to predict the
	// time for the others.
	tokenProbe = 128
	// tokenMargin is how long a token must still be valid when its request is due.
	// It allows for delays on a busy machine.
	tokenMargin = 5 * time.Second
)

// pass is a buyer's purchase token with its solved challenge. While the challenge is
// valid, its answer gives the token again. All tokens of one challenge belong to one
// purchase; another challenge means another purchase. Times are the server's.
type pass struct {
	challengeID, answer string
	challengeEnds       time.Time
	// ends is the token's expiry. After stale it is not used for a new request.
	ends, stale time.Time
}

// staleFrom leaves a margin before the expiry, at most a quarter of the lifetime.
func staleFrom(now, ends time.Time) time.Time {
	return ends.Add(-max(0, min(tokenMargin, ends.Sub(now)/4)))
}

// errOtherKey: no further token can be had for the same purchase.
var errOtherKey = errors.New("its token and its challenge have run out, and another one would be another purchase")

// errTokenRefused: the shop refused all tokens of a buyer.
var errTokenRefused = errors.New("the shop answered token_invalid to the last try")

// lacks reports whether a buyer needs a token for a request at a local time.
func (c *crowd) lacks(b *buyer, at time.Time) bool {
	return b.pass != nil && !at.Add(c.clock.offset).Before(b.pass.stale)
}

// fetch gets a purchase token. If the solved challenge is still valid, it uses that
// challenge, so that the token finds an existing order. Otherwise it solves a new
// challenge, unless there may be an order already.
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
		b.pass.challengeEnds = time.Time{} // it has expired
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

// refused drops a token that the shop refused. If the buyer cannot have an order
// yet, it drops the challenge too.
func (b *buyer) refused() {
	if b.pass == nil {
		b.pass = new(pass)
	}
	b.pass.stale = time.Time{}
	if !b.mayOwn {
		b.pass.challengeEnds = time.Time{}
	}
}

// fetchTokens gets purchase tokens for the buyers from one index to another before
// the rush. It stops at until, if that is set.
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

// ready makes sure that a call has a valid token when it is due. It returns false
// if there is none: then it has queued the call again or given the buyer up.
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
	// If the challenge has expired, another one may succeed.
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

// forecast extrapolates the remaining time.
func forecast(done int, took time.Duration, left int) time.Duration {
	return time.Duration(float64(took) / float64(max(done, 1)) * float64(left))
}

// roughly rounds a duration for display.
func roughly(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// equip fetches the crowd's tokens before the start, as far as time allows, and
// returns the time of the rush. The rush comes before the first token expires;
// buyers without a token fetch one during it.
func (r *run) equip(ctx context.Context, c *crowd, start time.Time) (time.Time, error) {
	if opens := r.tokensOpen; opens != nil { // tokens are not available earlier
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

// lastFetch is when fetching before the rush ends: a quarter of a token's lifetime
// must remain for requests. The lifetime of tokens made before the start counts
// from the start.
func (c *crowd) lastFetch(began, start time.Time) time.Time {
	if began.Before(start) {
		began = start
	}
	ends := c.clock.local(c.buyers[0].pass.ends)
	return ends.Add(-ends.Sub(began) / 4)
}

// tellForecast reports when and how the rush will come. opens is the time until the
// start, room the time until the rush at the latest.
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
