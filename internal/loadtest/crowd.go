package loadtest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"seckill"
	"seckill/internal/auth"
)

// tokenSlack is how long buyers' tokens are valid beyond the end of the test.
const tokenSlack = 24 * time.Hour

// fate is the outcome of a buyer's requests.
type fate uint8

const (
	fateNone    fate = iota // never asked
	fateWon                 // 202
	fateRefused             // a clear no
	fateUnknown             // busy, too_hot, no answer or no token at the last try: there may be an order
)

// repeatFate is the outcome of a winner's repeated request.
type repeatFate uint8

const (
	repeatNone    repeatFate = iota
	repeatSame               // 202 with the same order
	repeatOther              // any other answer: the key did not find the order
	repeatUnknown            // busy, or no token, at the last try
)

// buyer is one of the crowd. At most one goroutine holds its call.
type buyer struct {
	authorization string
	fate          fate
	repeat        repeatFate
	orderNo       string
	body          []byte // request body with the purchase token, if the product requires one; else nil
	pass          *pass  // the token, if the product requires one; else nil
	// mayOwn: there may be an order. Another token must then belong to the same
	// purchase.
	mayOwn bool
	// lack is the reason why the last request had no valid token, nil if it
	// had one. For a winner it is about the repeated request.
	lack error
	// twist describes an answer that contradicts the API, "" if there was none.
	twist string
}

// signBuyers signs the crowd's tokens before the start, so that signing takes no
// time from the sale.
func signBuyers(ctx context.Context, signer *auth.Signer, run string, n int, expires time.Time) ([]buyer, error) {
	buyers := make([]buyer, n)
	group, ctx := errgroup.WithContext(ctx)
	parts := runtime.GOMAXPROCS(0)
	for part := range parts {
		group.Go(func() error {
			for i := part; i < n; i += parts {
				token, err := signer.Sign(buyerName(run, i), expires)
				if err != nil {
					return err
				}
				buyers[i].authorization = "Bearer " + token
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return buyers, group.Wait()
}

func buyerName(run string, i int) string { return fmt.Sprint(buyerPrefix(run), i) }
func buyerKey(run string, i int) string  { return fmt.Sprintf("%s-%d", run, i) }

// crowd is all buyers of the test.
type crowd struct {
	opt     *Options
	product uint32
	path    string
	body    []byte
	clock   clock
	buyers  []buyer
	line    *line
	tally   *tally
}

// warm opens the connections before the start, as browsers that show a countdown
// do.
func (c *crowd) warm(ctx context.Context, shops []*shop) error {
	var group errgroup.Group
	for _, s := range shops {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			_, err := s.time()
			return err
		})
	}
	return group.Wait()
}

// rush sends the crowd's requests. It returns when every buyer has an answer or has
// given up, or when ctx has ended.
func (c *crowd) rush(ctx context.Context, shops []*shop) {
	stop := c.watch()
	defer stop()
	var all sync.WaitGroup
	for _, s := range shops {
		all.Go(func() {
			for ctx.Err() == nil {
				next, ok := c.line.take(c.clock.now())
				if !ok {
					return
				}
				if !c.ready(s, next) {
					continue
				}
				if c.clock.wait(ctx, next.due) != nil {
					c.line.put(next)
					return
				}
				c.send(s, next)
			}
		})
	}
	all.Wait()
}

// send sends one call and handles its answer. With a rate, latency counts from the
// moment when the call was due. So a stalled server cannot hide queueing time.
func (c *crowd) send(s *shop, next call) {
	b := &c.buyers[next.buyer]
	from := c.clock.now()
	if c.opt.Rate > 0 && next.try == 0 && !next.repeat {
		from = next.due
	}
	if next.try > 0 {
		c.tally.waiting.Add(-1)
	}
	c.tally.sent.Add(1)
	c.tally.inFlight.Add(1)
	body := c.body
	if b.body != nil {
		body = b.body
	}
	a, err := s.buy(c.path, body, b.authorization, buyerKey(c.opt.Run, next.buyer))
	took := c.clock.now().Sub(from)
	c.tally.inFlight.Add(-1)
	name := nameOf(&a, err)
	c.tally.count(name, took)
	b.mayOwn = b.mayOwn || leavesOpen(name)
	tokenless := name == string(seckill.CodeTokenInvalid)
	if tokenless {
		b.refused()
	}
	if (again(name) || tokenless) && next.try < c.opt.Retries {
		next.due = c.clock.now().Add(backoff(next.try, a.after, c.opt.Random()))
		next.try++
		c.tally.waiting.Add(1)
		if !next.repeat {
			b.fate = fateUnknown // until there is an answer
		}
		c.line.put(next)
		return
	}
	if tokenless {
		b.lack = errTokenRefused
		if !next.repeat {
			b.fate = fateUnknown
		}
		return
	}
	if next.repeat {
		b.heardRepeat(name, &a)
		return
	}
	b.heard(name, &a)
	if b.fate == fateWon && chosen(next.buyer, saltRepeat, c.opt.Repeat) {
		b.repeat = repeatUnknown
		c.line.put(call{buyer: next.buyer, repeat: true, due: c.clock.now()})
	}
}

// nameOf returns the name under which an answer is counted.
func nameOf(a *answer, err error) string {
	switch {
	case err != nil:
		return answerNone
	case a.status == 202:
		return answerAccepted
	case a.code == "":
		return answerStrange
	}
	return string(a.code)
}

// again reports whether a polite client retries after this answer. It also retries
// after `not_started`.
func again(name string) bool {
	switch name {
	case answerNone, answerStrange, string(seckill.CodeBusy), string(seckill.CodeTooHot), string(seckill.CodeRateLimited), string(seckill.CodeNotStarted):
		return true
	}
	return false
}

// leavesOpen reports whether there may be an order after this answer. The other
// answers are given before anything is reserved.
func leavesOpen(name string) bool {
	switch name {
	case answerAccepted, answerNone, answerStrange, string(seckill.CodeBusy), string(seckill.CodeTooHot):
		return true
	}
	return false
}

// heard handles a buyer's last answer.
func (b *buyer) heard(name string, a *answer) {
	switch name {
	case answerAccepted:
		no, err := orderOf(a)
		if err != nil {
			b.fate, b.twist = fateUnknown, err.Error()
			return
		}
		b.fate, b.orderNo = fateWon, no
	case answerNone, answerStrange, string(seckill.CodeBusy), string(seckill.CodeTooHot), string(seckill.CodeRateLimited):
		b.fate = fateUnknown
	case string(seckill.CodeAlreadyPurchased):
		// A new buyer with one key: either the limit counts wrongly, or the server
		// did not recognize a retry by its key.
		b.fate, b.twist = fateUnknown, "already_purchased to the only key of a new buyer"
	default:
		b.fate = fateRefused
	}
}

// heardRepeat handles the last answer to a winner's repeated request.
func (b *buyer) heardRepeat(name string, a *answer) {
	if again(name) {
		return // fate stays unknown
	}
	no, err := orderOf(a)
	switch {
	case err != nil:
		b.repeat, b.twist = repeatOther, "repeat answered "+name
	case no != b.orderNo:
		b.repeat, b.twist = repeatOther, fmt.Sprintf("repeat answered with %s instead of %s", no, b.orderNo)
	default:
		b.repeat = repeatSame
	}
}

// watch reports the progress until stopped.
func (c *crowd) watch() (stop func()) {
	var last Snapshot
	return every(progressEvery, func() {
		if now := c.clock.now(); c.opt.Progress != nil && now.After(c.line.start) {
			last = c.tally.snapshot(last, now.Sub(c.line.start))
			c.opt.Progress(last)
		}
	})
}

// every calls do periodically in the background until stopped.
func every(period time.Duration, do func()) (stop func()) {
	var ended sync.WaitGroup
	done := make(chan struct{})
	ended.Go(func() {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				do()
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		ended.Wait()
	}
}

// The salts make the shares independent of each other.
const (
	saltRepeat = 0x9e3779b97f4a7c15
	saltSettle = 0xbf58476d1ce4e5b9
)

// chosen reports whether buyer i belongs to a share. It is deterministic.
func chosen(i int, salt uint64, share float64) bool { return spread(i, salt) < share }

// spread hashes i to a number from 0 to 1 (splitmix64).
func spread(i int, salt uint64) float64 {
	z := uint64(i)*0x9e3779b97f4a7c15 + salt
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}
