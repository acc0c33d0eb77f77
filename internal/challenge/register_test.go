package challenge

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/onetime"
	"seckill/internal/onetime/onetimemem"
	"seckill/test/virtual"
)

var errGone = errors.New("Redis is away")

// frail is a register that can be away: it returns errors at once, or hangs.
type frail struct {
	onetime.Register
	fails, hangs atomic.Bool
	asked        atomic.Int64
}

func newFrail() *frail { return &frail{Register: onetimemem.New(time.Now)} }

func (f *frail) Settle(ctx context.Context, id string, outcome onetime.Outcome, until time.Time) (onetime.Outcome, error) {
	f.asked.Add(1)
	if f.hangs.Load() {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	if f.fails.Load() {
		return 0, errGone
	}
	return f.Register.Settle(ctx, id, outcome, until)
}

// spares counts the answers that the spare register settled.
type spares struct {
	unmeasured
	count *atomic.Int64
}

func (s spares) Spared() { s.count.Add(1) }

// pairOf is a register under test over two that can fail. spared counts the
// answers of the second.
func pairOf() (r *register, usual, spare *frail, spared *atomic.Int64) {
	usual, spare, spared = newFrail(), newFrail(), new(atomic.Int64)
	r = newRegister(&Options{Spent: usual, Spare: spare, Meter: spares{count: spared}})
	return r, usual, spare, spared
}

func settleNow(t *testing.T, r *register, id string, outcome onetime.Outcome) (onetime.Outcome, error) {
	t.Helper()
	return r.settle(t.Context(), id, outcome, time.Now().Add(time.Minute), time.Now())
}

func TestRegister_SpareUnusedWhileUsualAnswers(t *testing.T) {
	r, usual, spare, spared := pairOf()
	for _, outcome := range []onetime.Outcome{outcomeWrong, outcomeRight} { // also not by one that comes second
		if standing, err := settleNow(t, r, "a", outcome); standing != outcomeWrong || err != nil {
			t.Errorf("%d, %v", standing, err)
		}
	}
	usual.Register = full{&seckill.Error{Code: seckill.CodeTooHot}} // an answer too
	for range 3 {
		if _, err := settleNow(t, r, "b", outcomeRight); seckill.CodeOf(err) != seckill.CodeTooHot {
			t.Errorf("a full register: %v", err)
		}
	}
	if n := spare.asked.Load(); n != 0 || spared.Load() != 0 || usual.asked.Load() != 5 {
		t.Errorf("the spare was asked %d times", n)
	}
}

func TestRegister_SpareDecidesOnceWhileUsualIsAway(t *testing.T) {
	r, usual, _, spared := pairOf()
	usual.fails.Store(true)
	for i, outcome := range []onetime.Outcome{outcomeWrong, outcomeRight, outcomeRight} {
		if standing, err := settleNow(t, r, "a", outcome); standing != outcomeWrong || err != nil {
			t.Errorf("answer %d: %d stands, %v", i+1, standing, err)
		}
	}
	if spared.Load() != 3 {
		t.Errorf("%d were counted", spared.Load())
	}
}

// However often the usual register comes and goes, a challenge is settled at most
// once in each register.
func TestRegister_AtMostOneAnswerInEach(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		r, usual, _, _ := pairOf()
		var stood []onetime.Outcome
		for i := range 6 {
			usual.fails.Store(i%2 == 1)
			virtual.Sleep(retryEvery)
			standing, err := settleNow(t, r, "a", onetime.Outcome(10+i))
			if err != nil {
				t.Fatal(err)
			}
			stood = append(stood, standing)
		}
		if want := fmt.Sprint([]onetime.Outcome{10, 11, 10, 11, 10, 11}); fmt.Sprint(stood) != want {
			t.Errorf("%v stood, want %s", stood, want)
		}
	})
}

func TestRegister_HangingUsualDelaysFewAnswers(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		r, usual, _, _ := pairOf()
		usual.hangs.Store(true)
		slow, froze := 0, time.Now()
		const answers, pause = 1000, 10 * time.Millisecond
		for i := range answers {
			began := time.Now()
			if _, err := settleNow(t, r, fmt.Sprint(i), outcomeRight); err != nil {
				t.Fatal(err)
			}
			switch took := time.Since(began); {
			case took > usualPatience:
				t.Errorf("an answer took %s", took)
			case took > 0:
				slow++
			}
			virtual.Sleep(pause)
		}
		if most := silences + int(time.Since(froze)/retryEvery); slow < silences || slow > most {
			t.Errorf("%d answers of %d waited for a register that is away", slow, answers)
		}
		usual.hangs.Store(false)
		virtual.Sleep(retryEvery)
		for i := range 3 {
			before := usual.asked.Load()
			if _, err := settleNow(t, r, fmt.Sprint("after-", i), outcomeRight); err != nil || usual.asked.Load() != before+1 {
				t.Errorf("answer %d after its return was not the usual register's: %v", i+1, err)
			}
		}
	})
}

func TestRegister_ClockSetBackDoesNotKeepBreakerOpen(t *testing.T) {
	var b breaker
	now := time.Now()
	for range silences {
		b.heard(false, now)
	}
	if b.mayAsk(now) {
		t.Error("it may be asked at once")
	}
	if !b.mayAsk(now.Add(-time.Hour)) || b.mayAsk(now.Add(-time.Hour)) {
		t.Error("an hour back it may not be asked, or twice at once")
	}
}

func TestRegister_BusyWithoutSpare(t *testing.T) {
	r := newRegister(&Options{Spent: full{errGone}})
	if _, err := settleNow(t, r, "a", outcomeRight); !errors.Is(err, errGone) || seckill.CodeOf(err) != seckill.CodeBusy {
		t.Errorf("%v", err)
	}
}

// A request that ends early does not count as silence of the register.
func TestRegister_EndedRequestDoesNotOpenBreaker(t *testing.T) {
	r, usual, spare, _ := pairOf()
	usual.hangs.Store(true)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 * silences {
		if _, err := r.settle(over, "a", outcomeRight, time.Now().Add(time.Minute), time.Now()); err == nil {
			t.Error("settled")
		}
	}
	if r.away.silent.Load() != 0 || spare.asked.Load() != 0 {
		t.Error("the register counts as away")
	}
}
