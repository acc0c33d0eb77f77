package ledgerredis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/test/server"
)

// Each test is the trace that the model of protocol 1 (test/model/numbered)
// finds when one rule is left out, played to a real server over connections
// that freeze and break.

// A set of numbers: without "the next number only", a call that was under way
// in a failover fills the hole that the lost one left, and the loss is hidden.
func TestTraceASetOfNumbersHidesALoss(t *testing.T) {
	r, _, proxy := standalone(t, server.RedisOptions{})
	slow := opened(t, Options{Place: redisclient.Place{Addrs: []string{proxy.Addr()}}})
	before := record(r)
	proxy.Freeze()
	second := r.sendLater(slow, r.ctx(), 2, 0, reserve(r.claim("bob", "")))
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	before.failover(r)
	proxy.Heal()
	if got := <-second; got.err != nil || got.reply.Outcome != ledger.OutcomeGap {
		t.Fatalf("number 2 after a failover that lost number 1: %+v", got)
	}
	r.sold(0)
	r.expect(ledger.OutcomeLost, 3, 1, nil)
	if r.figures().Open {
		t.Error("the shard sells on")
	}
}

// The highest number, in unordered flight: a number that was overtaken must
// not be told as not applied and then happen.
func TestTraceTheHighestNumberInUnorderedFlightIsAppliedAfterItWasDenied(t *testing.T) {
	r, _, proxy := standalone(t, server.RedisOptions{})
	slow := opened(t, Options{Place: redisclient.Place{Addrs: []string{proxy.Addr()}}})
	proxy.Freeze()
	first := r.sendLater(slow, r.ctx(), 1, 0, reserve(r.claim("ann", "")))
	r.expect(ledger.OutcomeGap, 2, 0, reserve(r.claim("bob", "")))
	if reply := r.expect(ledger.OutcomeApplied, 3, 0, nil); len(reply.Kept) != 0 {
		t.Fatalf("kept %s", kept(reply))
	}
	proxy.Heal()
	if got := <-first; got.err != nil || got.reply.Outcome != ledger.OutcomeStale {
		t.Fatalf("number 1, after the ask that denied it: %+v", got)
	}
	r.sold(0)
}

// A late ask: of two asks the older arrives last. What it says is of an
// instant that the process has gone past.
func TestTraceALateAskIsNotHeard(t *testing.T) {
	r, _, proxy := standalone(t, server.RedisOptions{})
	slow := opened(t, Options{Place: redisclient.Place{Addrs: []string{proxy.Addr()}}})
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	proxy.Freeze()
	late := r.sendLater(slow, r.ctx(), 2, 0, nil)
	if reply := r.expect(ledger.OutcomeApplied, 3, 0, nil); kept(reply) != "[1]" {
		t.Fatalf("kept %s", kept(reply))
	}
	r.expect(ledger.OutcomeApplied, 4, 3, reserve(r.claim("bob", "")))
	proxy.Heal()
	if got := <-late; got.err != nil || got.reply.Outcome != ledger.OutcomeStale {
		t.Fatalf("the older ask: %+v", got)
	}
	r.sold(2)
}

// A late reply: the lane has asked, and must not take the word of what it sent
// before; the server that gave it may be gone.
func TestTraceALateReplyIsNotTaken(t *testing.T) {
	r, _, proxy := standalone(t, server.RedisOptions{})
	slow := &askWatcher{Ledger: opened(t, Options{Place: redisclient.Place{Addrs: []string{proxy.Addr()}}}), asked: make(chan struct{}, 1)}
	lane := ledger.NewLane(slow, r.shard, ledger.LaneOptions{CallTimeout: 400 * time.Millisecond, MaxAskBackoff: 20 * time.Millisecond})
	before := record(r)
	proxy.FreezeReplies()
	done := make(chan error, 1)
	go func() {
		_, err := lane.Do(r.ctx(), reserve(r.claim("ann", "")))
		done <- err
	}()
	r.eventually("the call is applied", func() bool { return r.figures().Marked == 1 })
	proxy.Latency(time.Minute) // the ask is not to arrive before the failover
	before.failover(r)
	select {
	case <-slow.asked:
	case err := <-done:
		t.Fatalf("the call ended without an ask: %v", err)
	}
	proxy.Heal() // now the reply comes, too late
	if err := <-done; !errors.Is(err, ledger.ErrNotApplied) {
		t.Fatalf("the lane took the word of a server that is gone: %v", err)
	}
	r.sold(0)
}

// askWatcher tells when asks are sent.
type askWatcher struct {
	ledger.Ledger
	asked chan struct{}
}

func (w *askWatcher) Do(ctx context.Context, req ledger.Request) (ledger.Reply, error) {
	if req.Write == nil {
		select {
		case w.asked <- struct{}{}:
		default:
		}
	}
	return w.Ledger.Do(ctx, req)
}

// A burn forgotten by a failover: the number that an ask used up is free again
// on the stale server, and what the ask had denied happens. The next call of
// the process finds it.
func TestTraceABurnForgottenByAFailoverIsFound(t *testing.T) {
	r, _, proxy := standalone(t, server.RedisOptions{})
	slow := opened(t, Options{Place: redisclient.Place{Addrs: []string{proxy.Addr()}}})
	before := record(r)
	proxy.Freeze()
	first := r.sendLater(slow, r.ctx(), 1, 0, reserve(r.claim("ann", "")))
	r.expect(ledger.OutcomeApplied, 2, 0, nil)
	before.failover(r)
	proxy.Heal()
	if got := <-first; got.err != nil || got.reply.Outcome != ledger.OutcomeApplied {
		t.Fatalf("number 1, on a server without the ask: %+v", got)
	}
	r.expect(ledger.OutcomeLost, 3, 2, reserve(r.claim("ann", "")))
	r.expect(ledger.OutcomeClosed, 4, 2, nil)
}

// A verdict evicted too early: two calls were applied and no reply came; the
// ask must tell both.
func TestTraceAVerdictIsNotEvictedBeforeItIsHeard(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{})
	for number := uint64(1); number <= 2; number++ {
		proxy := server.Proxy(t, s.Addr())
		deaf := opened(t, Options{Place: redisclient.Place{Addrs: []string{proxy.Addr()}}})
		proxy.FreezeReplies()
		landed := r.sendLater(deaf, r.ctx(), number, 0, reserve(r.claim("ann", "")))
		r.eventually("the call is applied", func() bool { return r.figures().Marked == int64(number) })
		proxy.Cut() // the reply is lost
		if got := <-landed; got.err == nil || errors.Is(got.err, ledger.ErrNotExecuted) {
			t.Fatalf("a call whose reply was cut off: %+v", got)
		}
	}
	reply := r.expect(ledger.OutcomeApplied, 3, 0, nil)
	if kept(reply) != "[1 2]" || reply.Kept[1].Result.Verdicts[0].Code != ledger.VerdictAccepted {
		t.Fatalf("kept %+v", reply.Kept)
	}
	r.sold(2)
}

// A request delivered twice: a lost reply must not make anybody send again.
func TestTraceARequestIsSentOnce(t *testing.T) {
	r, s, proxy := standalone(t, server.RedisOptions{})
	deaf := opened(t, Options{Place: redisclient.Place{Addrs: []string{proxy.Addr()}}})
	s.Must("CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "10000")
	proxy.FreezeReplies()
	landed := r.sendLater(deaf, r.ctx(), 1, 0, reserve(r.claim("ann", "")))
	r.eventually("the call is applied", func() bool { return r.figures().Marked == 1 })
	proxy.Cut()
	if got := <-landed; got.err == nil || errors.Is(got.err, ledger.ErrNotExecuted) {
		t.Fatalf("a call whose reply was cut off: %+v", got)
	}
	proxy.Heal()
	if _, err := deaf.Read(r.ctx(), r.shard); err != nil { // it has a connection again
		t.Fatal(err)
	}
	// A second delivery would be stale, and drop nothing: ask what was heard.
	if reply := r.expect(ledger.OutcomeApplied, 2, 0, nil); kept(reply) != "[1]" {
		t.Fatalf("kept %s", kept(reply))
	}
	r.sold(1)
	if calls := callsOf(s, reserveScript); calls != 1 {
		t.Errorf("the reservation arrived %d times", calls)
	}
}

// A delayed original buys again after a cancel, unless keys outlive releases.
func TestTraceADelayedOriginalDoesNotBuyAgainAfterACancel(t *testing.T) {
	r, _, proxy := standalone(t, server.RedisOptions{})
	slow := opened(t, Options{Place: redisclient.Place{Addrs: []string{proxy.Addr()}}})
	other := *r // the same shopper's first attempt, at another instance
	other.process[0]++
	original, again := r.claim("ann", "key"), r.claim("ann", "key")
	proxy.Freeze()
	delayed := other.sendLater(slow, r.ctx(), 1, 0, reserve(original))
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(again))
	r.expect(ledger.OutcomeApplied, 2, 1, ledger.Release{Orders: []ledger.ReleaseOrder{{OrderNo: again.OrderNo, Buyer: "ann"}}})
	proxy.Heal()
	got := <-delayed
	if got.err != nil || got.reply.Outcome != ledger.OutcomeApplied {
		t.Fatalf("%+v", got)
	}
	if v := got.reply.Result.Verdicts[0]; v.Code != ledger.VerdictRepeated || v.OrderNo != again.OrderNo {
		t.Errorf("the original: %+v", v)
	}
	r.sold(0)
}

// A lane over a network that freezes, cuts and delays sells each claim once.
func TestALaneSettlesEveryCallOverABadNetwork(t *testing.T) {
	r, _, proxy := standalone(t, server.RedisOptions{})
	bad := &askWatcher{Ledger: opened(t, Options{Place: redisclient.Place{Addrs: []string{proxy.Addr()}}}), asked: make(chan struct{}, 1)}
	lane := ledger.NewLane(bad, r.shard, ledger.LaneOptions{CallTimeout: 100 * time.Millisecond, MaxAskBackoff: 20 * time.Millisecond})
	var sold int64
	for i, fault := range []func(){
		proxy.FreezeReplies, proxy.Freeze, proxy.Cut, proxy.HalfOpen,
		func() { proxy.ReplyDelay(250 * time.Millisecond) }, func() { proxy.Latency(250 * time.Millisecond) },
	} {
		fault()
		claim := r.claim(string(rune('a'+i)), "")
		done := make(chan error, 1)
		go func() {
			result, err := lane.Do(r.ctx(), reserve(claim))
			if err == nil && (result.Verdicts[0].Code != ledger.VerdictAccepted || result.Verdicts[0].OrderNo != claim.OrderNo) {
				err = errors.New("another call's result")
			}
			done <- err
		}()
		var err error
		ended := false
		for asks := 0; asks < 2 && !ended; { // with the second, the fault has met the call and an ask
			select {
			case err = <-done:
				ended = true
			case <-bad.asked:
				asks++
			}
		}
		if !ended {
			proxy.Heal()
			err = <-done
		}
		switch {
		case err == nil:
			sold++
		case !errors.Is(err, ledger.ErrNotApplied):
			t.Fatalf("fault %d: %v", i, err)
		}
		proxy.Heal()
		r.sold(sold)
		select { // an ask of this fault is no sign of the next
		case <-bad.asked:
		default:
		}
	}
}

// callsOf is how often the server was given the script by its hash, since its
// slow log, which then is of all calls, was set up.
func callsOf(s *server.RedisServer, of *script) int {
	return strings.Count(s.Must("SLOWLOG", "GET", "-1"), "\n"+of.sha+"\n")
}
