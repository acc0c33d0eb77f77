package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgertest"
	"seckill/test/virtual"
)

var testShard = ledger.Shard{Product: 7, Group: 7, Epoch: 1}

// reference returns an open shard with plenty of stock.
func reference(t testing.TB) *ledgertest.Reference {
	t.Helper()
	r := ledgertest.NewReference()
	allotment := ledger.Allotment{Shard: testShard, Available: 1_000_000, Limit: 1}
	if _, err := r.Install(context.Background(), allotment, nil); err != nil {
		t.Fatalf("install: %v", err)
	}
	if ok, err := r.Open(context.Background(), testShard); !ok || err != nil {
		t.Fatalf("open: %v, %v", ok, err)
	}
	return r
}

// step handles one call of a scripted ledger.
type step func(ctx context.Context, l ledger.Ledger, req ledger.Request) (ledger.Reply, error)

var errBroken = errors.New("connection broken")

func pass(ctx context.Context, l ledger.Ledger, req ledger.Request) (ledger.Reply, error) {
	return l.Do(ctx, req)
}

func loseRequest(context.Context, ledger.Ledger, ledger.Request) (ledger.Reply, error) {
	return ledger.Reply{}, errBroken
}

func loseReply(ctx context.Context, l ledger.Ledger, req ledger.Request) (ledger.Reply, error) {
	_, _ = l.Do(ctx, req)
	return ledger.Reply{}, errBroken
}

func notExecuted(context.Context, ledger.Ledger, ledger.Request) (ledger.Reply, error) {
	return ledger.Reply{}, ledger.ErrNotExecuted
}

func badCall(context.Context, ledger.Ledger, ledger.Request) (ledger.Reply, error) {
	return ledger.Reply{}, fmt.Errorf("%w: %w", ledger.ErrNotExecuted, ledger.ErrBadCall)
}

func say(outcome ledger.Outcome, epoch uint64) step {
	return func(context.Context, ledger.Ledger, ledger.Request) (ledger.Reply, error) {
		return ledger.Reply{Outcome: outcome, Epoch: epoch}, nil
	}
}

// slowReply executes a call at once and answers after d.
func slowReply(d time.Duration) step {
	return func(ctx context.Context, l ledger.Ledger, req ledger.Request) (ledger.Reply, error) {
		reply, err := l.Do(ctx, req)
		select {
		case <-time.After(d):
			return reply, err
		case <-ctx.Done():
			return ledger.Reply{}, ctx.Err()
		}
	}
}

// slowRequest executes a call after d, also if the caller has left by then.
func slowRequest(d time.Duration) step {
	return func(ctx context.Context, l ledger.Ledger, req ledger.Request) (ledger.Reply, error) {
		type answer struct {
			reply ledger.Reply
			err   error
		}
		answers := make(chan answer, 1)
		time.AfterFunc(d, func() {
			reply, err := l.Do(context.Background(), req)
			answers <- answer{reply, err}
		})
		select {
		case a := <-answers:
			return a.reply, a.err
		case <-ctx.Done():
			return ledger.Reply{}, ctx.Err()
		}
	}
}

// scripted uses one step per call, and then passes calls on to the ledger.
type scripted struct {
	ledger.Ledger
	mu    sync.Mutex
	steps []step
	calls []ledger.Request
}

func (s *scripted) Do(ctx context.Context, req ledger.Request) (ledger.Reply, error) {
	s.mu.Lock()
	s.calls = append(s.calls, req)
	next := pass
	if len(s.steps) > 0 {
		next, s.steps = s.steps[0], s.steps[1:]
	}
	s.mu.Unlock()
	return next(ctx, s.Ledger, req)
}

func (s *scripted) numbers() (all []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, req := range s.calls {
		all = append(all, req.Call.Number)
	}
	return all
}

// reserveOne returns a claim of a new buyer.
func reserveOne(n int) ledger.Reserve {
	no := seckill.NewOrderNo(time.UnixMilli(int64(n+1)), testShard.Product, uint64(n))
	return ledger.Reserve{Claims: []seckill.Claim{{OrderNo: no, Buyer: no.String(), Quantity: 1}}}
}

func accepted(result ledger.Result, w ledger.Reserve) bool {
	return len(result.Verdicts) == 1 && result.Verdicts[0].Code == ledger.VerdictAccepted &&
		result.Verdicts[0].OrderNo == w.Claims[0].OrderNo
}

// applied returns how often the write was applied, by its outbox entries.
func applied(t testing.TB, r *ledgertest.Reference, w ledger.Reserve) int {
	t.Helper()
	count := 0
	for _, entry := range r.Outbox() {
		for _, claim := range entry.Claims {
			if claim.OrderNo == w.Claims[0].OrderNo {
				count++
			}
		}
	}
	return count
}

func laneOn(l ledger.Ledger) *ledger.Lane {
	return ledger.NewLane(l, testShard, ledger.LaneOptions{CallTimeout: time.Second, MaxAskBackoff: time.Second})
}

func TestLane_SettlesEveryKindOfFault(t *testing.T) {
	const never = time.Hour
	tests := map[string]struct {
		steps   []step
		wait    time.Duration // the caller's timeout
		err     error         // nil if there is a result
		applied int           // how often the write was applied in the end
		numbers []uint64      // sent by the call and by a successful one after it
	}{
		"a good call": {nil, never, nil, 1, []uint64{1, 2}},
		"lost reply is learned by an ask": {
			[]step{loseReply}, never, nil, 1, []uint64{1, 2, 3}},
		"lost request never happened": {
			[]step{loseRequest}, never, ledger.ErrNotApplied, 0, []uint64{1, 2, 3}},
		"each ask has a new number": {
			[]step{loseReply, loseRequest, loseReply, notExecuted}, never, nil, 1, []uint64{1, 2, 3, 4, 5, 6}},
		"not executed gives the number back": {
			[]step{notExecuted}, never, ledger.ErrNotApplied, 0, []uint64{1, 1}},
		"gap is settled by an ask": {
			[]step{say(ledger.OutcomeGap, 1)}, never, ledger.ErrNotApplied, 0, []uint64{1, 2, 3}},
		"stale of a call that was applied": {
			[]step{func(ctx context.Context, l ledger.Ledger, req ledger.Request) (ledger.Reply, error) {
				_, _ = l.Do(ctx, req)
				return l.Do(ctx, req)
			}}, never, nil, 1, []uint64{1, 2, 3}},
		"reply later than the call's timeout is learned by an ask": {
			[]step{slowReply(time.Minute)}, never, nil, 1, []uint64{1, 2, 3}},
		"late ask's reply does not count": {
			[]step{loseReply, slowReply(time.Minute)}, never, nil, 1, []uint64{1, 2, 3, 4}},
		"delayed request is stale after the ask": {
			[]step{slowRequest(time.Minute)}, never, ledger.ErrNotApplied, 0, []uint64{1, 2, 3}},
		"unknown answer is settled by an ask": {
			[]step{say(99, 1)}, never, ledger.ErrNotApplied, 0, []uint64{1, 2, 3}},
		"caller left, the next call asks": {
			[]step{slowReply(500 * time.Millisecond)}, 100 * time.Millisecond, ledger.ErrUnknown, 1, []uint64{1, 2, 3}},
		"caller left, no reply at all": {
			[]step{slowReply(time.Minute)}, 100 * time.Millisecond, ledger.ErrUnknown, 1, []uint64{1, 2, 3}},
		"caller left while asking": {
			[]step{loseRequest, slowReply(500 * time.Millisecond)}, 100 * time.Millisecond, ledger.ErrUnknown, 0, []uint64{1, 2, 3, 4}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) {
				r := reference(t)
				l := &scripted{Ledger: r, steps: test.steps}
				lane := laneOn(l)

				ctx, cancel := context.WithTimeout(t.Context(), test.wait)
				defer cancel()
				start := time.Now()
				first := reserveOne(1)
				result, err := lane.Do(ctx, first)
				if took := time.Since(start); took > test.wait || took > 10*time.Second {
					t.Errorf("Do took %v", took)
				}
				if !errors.Is(err, test.err) {
					t.Fatalf("Do: %v, want %v", err, test.err)
				}
				if err == nil && !accepted(result, first) {
					t.Errorf("result %+v", result)
				}

				second := reserveOne(2)
				result, err = lane.Do(t.Context(), second)
				if err != nil || !accepted(result, second) {
					t.Errorf("the next call: %+v, %v", result, err)
				}
				virtual.Sleep(2 * time.Minute) // let late messages arrive
				if got := applied(t, r, first); got != test.applied {
					t.Errorf("applied %d times, want %d", got, test.applied)
				}
				if got := applied(t, r, second); got != 1 {
					t.Errorf("the next call was applied %d times", got)
				}
				if got := l.numbers(); !slices.Equal(got, test.numbers) {
					t.Errorf("numbers %v, want %v", got, test.numbers)
				}
				if got, want := lane.Beat().Seen, test.numbers[len(test.numbers)-1]; got != want {
					t.Errorf("seen %d, want %d", got, want)
				}
			})
		})
	}
}

func TestLane_FinishedByLostClosedOrEpoch(t *testing.T) {
	tests := map[string]struct {
		steps []step
		sure  error // ErrNotApplied or ErrUnknown
		cause error
		epoch uint64
	}{
		"lost":                   {[]step{say(ledger.OutcomeLost, 1)}, ledger.ErrNotApplied, ledger.ErrLost, 0},
		"closed":                 {[]step{say(ledger.OutcomeClosed, 1)}, ledger.ErrNotApplied, ledger.ErrClosed, 0},
		"another epoch":          {[]step{say(ledger.OutcomeEpoch, 5)}, ledger.ErrNotApplied, nil, 5},
		"lost, seen by an ask":   {[]step{loseReply, say(ledger.OutcomeLost, 1)}, ledger.ErrUnknown, ledger.ErrLost, 0},
		"closed, seen by an ask": {[]step{loseReply, say(ledger.OutcomeClosed, 1)}, ledger.ErrUnknown, ledger.ErrClosed, 0},
		"epoch, seen by an ask":  {[]step{loseReply, say(ledger.OutcomeEpoch, 5)}, ledger.ErrUnknown, nil, 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := &scripted{Ledger: reference(t), steps: test.steps}
			lane := laneOn(l)
			check := func(err, sure error) {
				t.Helper()
				var epoch *ledger.EpochError
				switch {
				case sure != nil && !errors.Is(err, sure):
					t.Errorf("%v is not %v", err, sure)
				case test.cause != nil && !errors.Is(err, test.cause):
					t.Errorf("%v is not %v", err, test.cause)
				case test.epoch != 0 && (!errors.As(err, &epoch) || epoch.Epoch != test.epoch):
					t.Errorf("%v does not tell epoch %d", err, test.epoch)
				}
			}
			_, err := lane.Do(t.Context(), reserveOne(1))
			check(err, test.sure)
			sent := len(l.numbers())
			_, err = lane.Do(t.Context(), reserveOne(2))
			check(err, ledger.ErrNotApplied)
			check(lane.Err(), nil)
			if got := len(l.numbers()); got != sent {
				t.Errorf("a finished lane sent %d more calls", got-sent)
			}
		})
	}
}

func TestLane_HeartbeatSendsSeenAndTakesTheOutcome(t *testing.T) {
	lane := laneOn(reference(t))
	if _, err := lane.Do(t.Context(), reserveOne(1)); err != nil {
		t.Fatalf("Do: %v", err)
	}
	forgetful := reference(t)
	outcomes, err := forgetful.Heartbeat(t.Context(), []ledger.Beat{lane.Beat()})
	if err != nil || len(outcomes) != 1 {
		t.Fatalf("heartbeat: %v, %v", outcomes, err)
	}
	lane.Heard(ledger.OutcomeApplied)
	if lane.Err() != nil {
		t.Fatalf("a good beat finished the lane: %v", lane.Err())
	}
	lane.Heard(outcomes[0])
	if _, err := lane.Do(t.Context(), reserveOne(2)); !errors.Is(err, ledger.ErrLost) || !errors.Is(err, ledger.ErrNotApplied) {
		t.Fatalf("Do after a lost beat: %v", err)
	}
}

func TestLane_CountsAnAnsweredAskAsSeen(t *testing.T) {
	lane := laneOn(&scripted{Ledger: reference(t), steps: []step{loseReply}})
	if _, err := lane.Do(t.Context(), reserveOne(1)); err != nil {
		t.Fatalf("Do: %v", err)
	}
	if seen := lane.Beat().Seen; seen != 2 {
		t.Fatalf("seen %d, want the ask's number 2", seen)
	}
}

func TestLane_IgnoresVerdictsOfOtherNumbers(t *testing.T) {
	kept := func(context.Context, ledger.Ledger, ledger.Request) (ledger.Reply, error) {
		return ledger.Reply{Outcome: ledger.OutcomeApplied, Epoch: 1, Kept: []ledger.Kept{{Number: 7}}}, nil
	}
	lane := laneOn(&scripted{Ledger: reference(t), steps: []step{loseRequest, kept}})
	if _, err := lane.Do(t.Context(), reserveOne(1)); !errors.Is(err, ledger.ErrNotApplied) {
		t.Fatalf("Do: %v, want not applied", err)
	}
}

func TestLane_NoticesAForgottenReply(t *testing.T) {
	l := &scripted{Ledger: reference(t)}
	lane := laneOn(l)
	if _, err := lane.Do(t.Context(), reserveOne(1)); err != nil {
		t.Fatalf("Do: %v", err)
	}
	l.Ledger = reference(t) // a failover to a replica that missed the write
	if _, err := lane.Do(t.Context(), reserveOne(2)); !errors.Is(err, ledger.ErrLost) {
		t.Fatalf("Do: %v, want lost", err)
	}
}

// A call lasts for CallTimeout. If the ledger never answers, the lane asks until its caller's
// context ends.
func TestLane_ReturnsWithinItsContextIfTheLedgerIsSilent(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context, _ ledger.Ledger, _ ledger.Request) (ledger.Reply, error) {
			<-ctx.Done()
			return ledger.Reply{}, ctx.Err()
		}
		l := &scripted{Ledger: reference(t), steps: slices.Repeat([]step{silent}, 1000)}
		lane := laneOn(l)
		for i := range 30 {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			start := time.Now()
			_, err := lane.Do(ctx, reserveOne(i))
			cancel()
			if time.Since(start) > 3*time.Second {
				t.Fatalf("Do took %v", time.Since(start))
			}
			if i == 0 && !errors.Is(err, ledger.ErrUnknown) || i > 0 && !errors.Is(err, ledger.ErrNotApplied) {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		if calls := len(l.numbers()); calls < 60 || calls > 90 { // two or three in each 3 s
			t.Errorf("%d calls in 90 s", calls)
		}
	})
}

// replies lists whether the ledger answered.
type replies []bool

func (r *replies) Replied(answered bool)                            { *r = append(*r, answered) }
func (r *replies) Settled(w ledger.Write, _ ledger.Result, _ error) {}

func TestLane_ListenerHearsWhetherTheLedgerAnswers(t *testing.T) {
	tests := map[string]struct {
		steps []step
		want  []bool
	}{
		"an answer":                         {nil, []bool{true}},
		"a refusal":                         {[]step{say(ledger.OutcomeGap, 1)}, []bool{true, true}},
		"a reply that was lost, and an ask": {[]step{loseReply}, []bool{true}},
		"not executed":                      {[]step{notExecuted}, []bool{false}},
		"a reply that does not come":        {[]step{slowReply(5 * time.Second)}, []bool{false, true}},
		"a bad call":                        {[]step{badCall}, nil},
		"asks that fail":                    {[]step{loseReply, loseRequest, loseRequest}, []bool{false, false, true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) {
				var told replies
				lane := ledger.NewLane(&scripted{Ledger: reference(t), steps: tt.steps}, testShard, ledger.LaneOptions{
					CallTimeout: time.Second, Listener: &told,
				})
				_, _ = lane.Do(context.Background(), reserveOne(1))
				virtual.Sleep(time.Minute) // let late messages arrive
				if !slices.Equal([]bool(told), tt.want) {
					t.Errorf("told %v, want %v", told, tt.want)
				}
			})
		})
	}
}

func TestLane_ProbeAsksUntilAnswered(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		l := &scripted{Ledger: reference(t), steps: slices.Repeat([]step{loseRequest}, 10)}
		lane := laneOn(l)
		if err := lane.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := reserveOne(1)
		if result, err := lane.Do(t.Context(), w); err != nil || !accepted(result, w) {
			t.Fatalf("Do after a probe: %+v, %v", result, err)
		}
		if calls := len(l.numbers()); calls != 12 { // ten lost asks, one answered ask, the write
			t.Errorf("%d calls", calls)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l.mu.Lock()
		l.steps = slices.Repeat([]step{loseRequest}, 1000)
		l.mu.Unlock()
		if err := lane.Probe(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Probe of a dead ledger: %v", err)
		}
	})
}

func TestLane_PausesBetweenAsks(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		l := &scripted{Ledger: reference(t), steps: slices.Repeat([]step{loseRequest}, 1_000_000)}
		lane := laneOn(l)
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if _, err := lane.Do(ctx, reserveOne(1)); err == nil {
				t.Fatal("Do succeeded on a dead ledger")
			}
			cancel()
		}
		if calls := len(l.numbers()); calls < 50 || calls > 80 { // about one a second
			t.Errorf("%d calls in a minute", calls)
		}
	})
}

func TestLane_SendsNothingAfterItsContextEnded(t *testing.T) {
	l := &scripted{Ledger: reference(t)}
	lane := laneOn(l)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lane.Do(ctx, reserveOne(1)); !errors.Is(err, ledger.ErrNotApplied) || !errors.Is(err, context.Canceled) {
		t.Fatalf("Do: %v", err)
	}
	if len(l.numbers()) != 0 {
		t.Fatal("a call was sent")
	}
}

func TestLane_HasOneCallInFlight(t *testing.T) {
	r := reference(t)
	lane := laneOn(r)
	const callers, each = 8, 50
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				w := reserveOne(c*each + i)
				if result, err := lane.Do(t.Context(), w); err != nil || !accepted(result, w) {
					t.Errorf("Do: %+v, %v", result, err)
				}
			}
		})
	}
	wg.Wait()
	if seen := lane.Beat().Seen; seen != callers*each {
		t.Errorf("seen %d", seen)
	}
}

func TestLane_EachHasItsOwnProcessID(t *testing.T) {
	r := reference(t)
	if one, other := laneOn(r), laneOn(r); one.Beat().Process == other.Beat().Process {
		t.Fatal("two lanes have one process id")
	}
}

// applies answers every call as applied, without an effect.
type applies struct{ ledger.Ledger }

func (applies) Do(context.Context, ledger.Request) (ledger.Reply, error) {
	return ledger.Reply{Outcome: ledger.OutcomeApplied}, nil
}

func TestLane_SuccessfulCallAllocatesNothing(t *testing.T) {
	lane := ledger.NewLane(applies{}, testShard, ledger.LaneOptions{})
	var w ledger.Write = reserveOne(1)
	ctx := t.Context()
	if got := testing.AllocsPerRun(1000, func() { _, _ = lane.Do(ctx, w) }); got >= 1 {
		t.Errorf("%v allocations a call", got)
	}
}

func BenchmarkLane(b *testing.B) {
	lane := ledger.NewLane(applies{}, testShard, ledger.LaneOptions{})
	var w ledger.Write = reserveOne(1)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = lane.Do(b.Context(), w)
	}
}
