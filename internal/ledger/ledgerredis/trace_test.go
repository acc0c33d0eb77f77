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

// Each test is the trace that the model of protocol 1 (test/model/numbered) finds if one rule
// is left out. It runs on a real server over connections that freeze and break.

// The ledger keeps a set of numbers. Without the rule "the next number only", a call that was
// in flight during a failover fills the gap of the lost one, and the loss is hidden.
func TestTrace_SetOfNumbersHidesALoss(t *testing.T) {
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
	r.wantSold(0)
	r.expect(ledger.OutcomeLost, 3, 1, nil)
	if r.figures().Open {
		t.Error("the shard sells on")
	}
}

// The ledger keeps the highest number, and calls arrive in any order. A number that was
// overtaken must not be reported as not applied and then be applied.
func TestTrace_OvertakenNumberIsNotAppliedAfterItWasDenied(t *testing.T) {
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
	r.wantSold(0)
}

// A late ask: of two asks the older one arrives last. Its answer is out of date.
func TestTrace_LateAskIsIgnored(t *testing.T) {
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
	r.wantSold(2)
}

// A late reply: the lane has sent an ask, so it must ignore the reply to an earlier call. The
// server that gave it may be gone.
func TestTrace_LateReplyIsIgnored(t *testing.T) {
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
	proxy.Latency(time.Minute) // the ask must not arrive before the failover
	before.failover(r)
	select {
	case <-slow.asked:
	case err := <-done:
		t.Fatalf("the call ended without an ask: %v", err)
	}
	proxy.Heal() // now the reply arrives, too late
	if err := <-done; !errors.Is(err, ledger.ErrNotApplied) {
		t.Fatalf("the lane used the reply of a server that is gone: %v", err)
	}
	r.wantSold(0)
}

// askWatcher signals asks.
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

// A failover forgets a used-up number: the number that an ask used up is free again on the
// stale server, and the call that the ask had denied is applied. The next call of the process
// notices it.
func TestTrace_UsedNumberForgottenByAFailoverIsNoticed(t *testing.T) {
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

// A verdict dropped too early: two calls were applied without a reply; the ask must return
// both.
func TestTrace_VerdictIsKeptUntilReceived(t *testing.T) {
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
	r.wantSold(2)
}

// A request delivered twice: a lost reply must not cause a second send.
func TestTrace_RequestIsSentOnce(t *testing.T) {
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
	// A second delivery would be stale and drop nothing, so check the kept verdicts.
	if reply := r.expect(ledger.OutcomeApplied, 2, 0, nil); kept(reply) != "[1]" {
		t.Fatalf("kept %s", kept(reply))
	}
	r.wantSold(1)
	if calls := callsOf(s, reserveScript); calls != 1 {
		t.Errorf("the reservation arrived %d times", calls)
	}
}

// A delayed original claim must not buy again after a cancellation: keys must outlive releases.
func TestTrace_DelayedClaimDoesNotBuyAgainAfterACancel(t *testing.T) {
	r, _, proxy := standalone(t, server.RedisOptions{})
	slow := opened(t, Options{Place: redisclient.Place{Addrs: []string{proxy.Addr()}}})
	other := *r // the same buyer's first attempt, at another instance
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
	r.wantSold(0)
}

// A lane over a network that freezes, cuts and delays sells each claim once.
func TestLane_SettlesEveryCallOverABadNetwork(t *testing.T) {
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
		for asks := 0; asks < 2 && !ended; { // with the second ask, the fault has affected the call and an ask
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
		r.wantSold(sold)
		select { // drop signals of this fault's asks
		case <-bad.asked:
		default:
		}
	}
}

// callsOf returns how often the server got the script by its hash, since its slow log was set
// to log all calls.
func callsOf(s *server.RedisServer, of *script) int {
	return strings.Count(s.Must("SLOWLOG", "GET", "-1"), "\n"+of.sha+"\n")
}
