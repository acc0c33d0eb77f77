package loadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"seckill"
)

const (
	// steadyTries is how often one call of the aftermath is tried.
	steadyTries = 6
	// settleConnections keep an engine busy without a crowd.
	settleConnections = 32
)

// inTurn does n pieces of work over the connections, each once and roughly in order.
// It reports progress and the expected remaining time. It stops early when ctx ends.
func (c *crowd) inTurn(ctx context.Context, what string, shops []*shop, n int, do func(s *shop, i int)) {
	c.inTurnUntil(ctx, what, shops, n, time.Time{}, do)
}

// inTurnUntil is inTurn that starts no piece after until, if until is set.
func (c *crowd) inTurnUntil(ctx context.Context, what string, shops []*shop, n int, until time.Time, do func(s *shop, i int)) {
	var next, done atomic.Int64
	began := c.clock.now()
	stop := every(progressEvery, func() {
		far := int(done.Load())
		if far == 0 {
			c.opt.phase("%s: 0 of %d", what, n)
			return
		}
		now := c.clock.now()
		rest := forecast(far, now.Sub(began), n-far)
		if !until.IsZero() {
			rest = min(rest, max(0, until.Sub(now)))
		}
		c.opt.phase("%s: %d of %d, about %s to go", what, far, n, roughly(rest))
	})
	defer stop()
	var all sync.WaitGroup
	for _, s := range shops[:min(len(shops), settleConnections)] {
		all.Go(func() {
			for ctx.Err() == nil && (until.IsZero() || c.clock.now().Before(until)) {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(s, i)
				done.Add(1)
			}
		})
	}
	all.Wait()
}

// steady retries calls that a busy server or a proxy refused. All its calls are
// idempotent.
func (c *crowd) steady(ctx context.Context, do func() error) error {
	for try := 0; ; try++ {
		err := do()
		if !passing(err) || try+1 == steadyTries {
			return err
		}
		if c.clock.wait(ctx, c.clock.now().Add(backoff(try, 0, c.opt.Random()))) != nil {
			return err
		}
	}
}

// passing reports whether a call failed for a temporary reason.
func passing(err error) bool {
	var no *refusal
	if err == nil || errors.Is(err, errOtherKey) {
		return false
	}
	return !errors.As(err, &no) || no.code == "" || again(string(no.code))
}

// askedWait returns the server's Retry-After, if any.
func askedWait(err error) time.Duration {
	var no *refusal
	if errors.As(err, &no) {
		return no.after
	}
	return 0
}

// settling records the winners' payments and cancellations.
type settling struct {
	pays, cancels map[int]*move // by buyer
}

// move is a payment or a cancellation.
type move struct {
	mu     sync.Mutex
	done   int  // 2xx answers
	late   bool // the order had expired before the payment
	failed error
}

func (m *move) note(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.failed = err
		return
	}
	m.done++
}

// settle lets one share of the winners pay and another cancel. It delivers each
// payment callback twice, over two connections at about the same time.
func (c *crowd) settle(ctx context.Context, shops []*shop, winners []int, pay payment) *settling {
	done := &settling{pays: map[int]*move{}, cancels: map[int]*move{}}
	var moves []func(s *shop)
	for _, i := range winners {
		b := &c.buyers[i]
		switch at := spread(i, saltSettle); {
		case at < c.opt.Pay && len(c.opt.SandboxSecret) > 0:
			m := new(move)
			done.pays[i] = m
			callback := pay
			callback.OrderNo, callback.TradeNo = b.orderNo, tradeNo(c.opt.Run, i)
			deliver := func(s *shop) {
				m.note(c.steady(ctx, func() error { return s.notify(c.opt.SandboxSecret, callback) }))
			}
			moves = append(moves, deliver, deliver)
		case at >= 1-c.opt.Cancel:
			m := new(move)
			done.cancels[i] = m
			moves = append(moves, func(s *shop) {
				m.note(c.steady(ctx, func() error { return s.cancel(b.authorization, b.orderNo) }))
			})
		}
	}
	c.inTurn(ctx, "paying and cancelling", shops, len(moves), func(s *shop, i int) { moves[i](s) })
	return done
}

func tradeNo(run string, i int) string { return fmt.Sprintf("LT%s-%d", run, i) }

// tryToCancelPaid tries to cancel a paid order. The engine must refuse.
func (c *crowd) tryToCancelPaid(ctx context.Context, s *shop, b *buyer) error {
	err := c.steady(ctx, func() error { return s.cancel(b.authorization, b.orderNo) })
	var no *refusal
	switch {
	case err == nil:
		return errors.New("a paid order was cancelled")
	case errors.As(err, &no) && no.code == seckill.CodeWrongState:
		return nil
	}
	return fmt.Errorf("%w: %w", errNotTold, err)
}

// errNotTold: a call got no clear answer.
var errNotTold = errors.New("not told")
