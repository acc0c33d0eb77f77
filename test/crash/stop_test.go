package crash

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
)

const (
	stopRounds   = 3
	stopDoors    = 24
	stopDeadline = 20 * time.Second // the engine's own, of every stop
	// promptly is below the servers' read timeouts, 5 s and 10 s, which
	// connections that never say anything must not cost. Such a cost would be that
	// of every stop, while a machine with much else to do is slow now and then: it
	// is the fastest of the stops that has to be prompt, and there are more of them
	// while none was.
	promptly       = 4 * time.Second
	mostStopRounds = 2 * stopRounds
)

// TestAStopUnderLoadAnswersAllItTook stops the engine with SIGTERM while a crowd
// buys: it ends with exit code 0 within its deadline, every 202 is there after
// the restart, and no claim was carried out whose answer was then withheld.
func TestAStopUnderLoadAnswersAllItTook(t *testing.T) {
	e := engine.Start(t, engine.Options{Settings: map[string]string{"worker.batch_wait": "5ms", "shop.drain": "1s"}})
	b := newBook(t, e, engine.Product{ID: 1, Stock: 100_000})
	fastest, rounds := stopDeadline, 0
	for ; rounds < stopRounds || fastest > promptly && rounds < mostStopRounds; rounds++ {
		silent := dialSilently(t, e, 3)
		from := len(b.Claims)
		ctx, leave := context.WithCancel(t.Context())
		var crowd sync.WaitGroup
		for range stopDoors {
			crowd.Go(func() {
				for ctx.Err() == nil {
					c := b.NewClaim(b.NewBuyer(), 1, engine.Purchase{Quantity: 1, Key: "k"})
					if !engine.Answered(b.Send(t.Context(), c)) {
						return // it is gone: nobody asks twice
					}
				}
			})
		}
		market.Pause(t.Context(), 400*time.Millisecond)
		asked := time.Now()
		e.Signal(syscall.SIGTERM)
		err := e.WaitEnd(stopDeadline)
		took := time.Since(asked)
		leave()
		crowd.Wait()
		if err != nil {
			t.Errorf("the stop took %s and ended with %v", took, err)
		}
		fastest = min(fastest, took)
		for _, conn := range silent {
			if got, err := io.ReadAll(conn); len(got) > 0 || err != nil {
				t.Errorf("a connection that asked nothing was told %q (%v)", got, err)
			}
		}
		e.Start()
		b.checkUnanswered(b.Claims[from:])
	}
	if fastest > promptly {
		t.Errorf("the fastest of %d stops took %s: connections that ask nothing hold them up", rounds, fastest)
	}
	t.Logf("%d claims over %d stops, the fastest in %s", len(b.Claims), rounds, fastest)
	b.Each(func(ctx context.Context, c *market.Claim) { b.Read(ctx, c) })
	b.CheckKeys()
	b.CheckReport(1)
}

// dialSilently opens connections and says nothing, as browsers and proxies do
// in advance.
func dialSilently(t *testing.T, e *engine.Engine, n int) (silent []net.Conn) {
	t.Helper()
	for range n {
		for _, url := range []string{e.ShopURL, e.AdminURL} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			silent = append(silent, conn)
		}
	}
	return silent
}

// checkUnanswered: a claim that got no answer from a graceful stop was not
// carried out either.
func (b *book) checkUnanswered(claims []*market.Claim) {
	b.T.Helper()
	for _, c := range claims {
		if c.No != "" {
			continue
		}
		orders, err := c.Buyer.Orders(b.T.Context())
		if err != nil || len(orders) > 0 {
			b.T.Errorf("%s got no answer, and has %+v (%v)", c.Buyer.Name, orders, err)
		}
	}
}
