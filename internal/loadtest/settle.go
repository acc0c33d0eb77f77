package loadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"seckill"
)

const (
	// steadyTries is how often one look or move of the aftermath is tried.
	steadyTries = 6
	// settleConnections is enough to keep an engine busy without a crowd.
	settleConnections = 32
)

// inTurn does n pieces of work over the connections, each piece once, in about
// the order of their numbers, and tells what how far it is. It stops early when
// ctx ends.
func (c *crowd) inTurn(ctx context.Context, what string, shops []*shop, n int, do func(s *shop, i int)) {
	var next atomic.Int64
	stop := every(progressEvery, func() { c.opt.phase("%s: %d of %d", what, min(int(next.Load()), n), n) })
	defer stop()
	var all sync.WaitGroup
	for _, s := range shops[:min(len(shops), settleConnections)] {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(s, i)
			}
		})
	}
	all.Wait()
}

// steady repeats what a busy server did not do, or a proxy answered for it. Every call it is used for may
// be repeated by the wire's own rules.
func (c *crowd) steady(ctx context.Context, do func() error) error {
	for try := 0; ; try++ {
		err := do()
		var no *refusal
		unknown := err != nil && (!errors.As(err, &no) || no.code == "" || again(string(no.code)))
		if !unknown || try+1 == steadyTries {
			return err
		}
		if c.clock.wait(ctx, c.clock.now().Add(backoff(try, 0, c.opt.Random()))) != nil {
			return err
		}
	}
}

// settling is what winners did with their orders.
type settling struct {
	pays, cancels map[int]*move // by buyer
}

// move is a payment or a cancellation.
type move struct {
	mu     sync.Mutex
	done   int  // answers of 2xx
	late   bool // the order had expired before
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

// settle lets a share of the winners pay and another cancel. Each payment's
// callback is delivered twice, by two connections at about the same time.
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

// tryToCancelPaid asks to cancel a paid order, which must be refused.
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

// errNotTold marks a look that got no clear answer.
var errNotTold = errors.New("not told")
