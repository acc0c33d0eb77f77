package challenge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/onetime"
	"seckill/internal/onetime/onetimemem"
)

var now = time.Date(2026, 11, 11, 11, 59, 30, 0, time.UTC) // half a minute before the start

func product(id uint32) *seckill.Product {
	return &seckill.Product{ID: id, StartsAt: now.Add(30 * time.Second), EndsAt: now.Add(time.Hour)}
}

// drawer records the symbols that it had to draw.
type drawer struct {
	mu   sync.Mutex
	last string
}

func (d *drawer) draw(symbols string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = symbols
	return []byte("PNG"), nil
}

// testIssuer is an issuer under test with its dependencies.
type testIssuer struct {
	*Issuer
	tokens *auth.Mint
	drawer *drawer
}

// shared is the register that all instances of one shop share.
func shared() onetime.Register { return onetimemem.New(func() time.Time { return now }) }

func open(t testing.TB, kind Kind, change ...func(*Options)) *testIssuer {
	t.Helper()
	d := &testIssuer{drawer: &drawer{}}
	opt := Options{
		Kind: kind, Secrets: [][]byte{[]byte("secret")}, Spent: shared(), Lead: time.Minute,
		PowBits: 8, CalmPerSecond: 1000, PerBuyerPerMinute: 1000, Random: rand.Reader,
		Draw:   d.drawer.draw,
		Verify: func(_ context.Context, q Question) (bool, error) { return q.Answer == "right", nil },
	}
	for _, c := range change {
		c(&opt)
	}
	var err error
	if d.tokens, err = auth.NewMint(opt.Secrets...); err != nil {
		t.Fatal(err)
	}
	opt.Tokens = d.tokens
	if d.Issuer, err = New(opt); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *testIssuer) pose(t testing.TB, buyer string, p *seckill.Product) Challenge {
	t.Helper()
	c, err := d.Pose(t.Context(), Ask{Product: p, Buyer: buyer}, now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// solve returns the right answer to the last challenge.
func (d *testIssuer) solve(c Challenge) string {
	switch c.Kind {
	case Pow:
		return Solve(c.ID, c.Difficulty)
	case Image:
		return d.drawer.last
	case Shop:
		return "right"
	}
	return ""
}

func (d *testIssuer) redeem(t testing.TB, c Challenge, answer string) (string, error) {
	t.Helper()
	token, _, err := d.Redeem(t.Context(), Answer{Product: product(1), Buyer: "ann", ChallengeID: c.ID, Text: answer}, now)
	return token, err
}

// id returns the id of a valid token of ann.
func (d *testIssuer) id(t testing.TB, token string) auth.TokenID {
	t.Helper()
	id, err := d.tokens.Verify([]byte(token), []byte("ann"), 1, now)
	if err != nil {
		t.Fatalf("the token is not good: %v", err)
	}
	return id
}

// asking are the kinds with an answer.
var asking = []Kind{Pow, Image, Shop}

func TestRedeem_RepeatedRightAnswerGivesSameToken(t *testing.T) {
	for _, kind := range Kinds {
		t.Run(string(kind), func(t *testing.T) {
			d := open(t, kind)
			c := d.pose(t, "ann", product(1))
			answer := d.solve(c)
			first, err := d.redeem(t, c, answer)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				again, err := d.redeem(t, c, answer)
				if err != nil || d.id(t, again) != d.id(t, first) {
					t.Fatalf("again: %v, or another id", err)
				}
			}
			other := d.pose(t, "ann", product(1))
			second, err := d.redeem(t, other, d.solve(other))
			if err != nil || d.id(t, second) == d.id(t, first) {
				t.Errorf("another challenge: %v, or the same id", err)
			}
		})
	}
}

func TestRedeem_WrongAnswerUsesUpChallenge(t *testing.T) {
	for _, kind := range asking {
		t.Run(string(kind), func(t *testing.T) {
			d := open(t, kind)
			for _, wrong := range []string{"", "x", "wrong", "00000000000000000000000"} {
				c := d.pose(t, "ann", product(1))
				answer := d.solve(c)
				if _, err := d.redeem(t, c, wrong); !errors.Is(err, ErrWrong) {
					t.Fatalf("%q: %v", wrong, err)
				}
				if _, err := d.redeem(t, c, answer); !errors.Is(err, ErrWrong) {
					t.Fatalf("the right answer after %q: %v", wrong, err)
				}
			}
		})
	}
}

// Concurrent guesses are settled one after the other: the first decides.
func TestRedeem_FirstOfConcurrentAnswersDecides(t *testing.T) {
	d := open(t, Image)
	for range 20 {
		c := d.pose(t, "ann", product(1))
		right := d.solve(c)
		answers := []string{"33333", "44444", right, "66666", right, "77777"}
		passed := make([]bool, len(answers))
		var group sync.WaitGroup
		for i, answer := range answers {
			group.Go(func() {
				_, err := d.redeem(t, c, answer)
				passed[i] = err == nil
			})
		}
		group.Wait()
		for i := range passed {
			if passed[i] != passed[0] {
				t.Fatalf("answers passed: %v", passed)
			}
		}
	}
}

func TestRedeem_ChallengeIsForOneBuyerProductAndTime(t *testing.T) {
	for _, kind := range Kinds {
		d := open(t, kind)
		c := d.pose(t, "ann", product(1))
		answer := d.solve(c)
		token, err := d.redeem(t, c, answer)
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			name, id, buyer string
			product         uint32
			at              time.Time
			want            error
		}{
			{"another buyer", c.ID, "eve", 1, now, ErrForeign},
			{"another product", c.ID, "ann", 2, now, ErrForeign},
			{"a token", token, "ann", 1, now, ErrMalformed},
			{"nonsense", "nonsense", "ann", 1, now, ErrMalformed},
			{"cut", c.ID[:len(c.ID)-1], "ann", 1, now, ErrMalformed},
			{"longer", c.ID + "A", "ann", 1, now, ErrMalformed},
			{"line break", c.ID[:9] + "\n" + c.ID[10:], "ann", 1, now, ErrMalformed},
			{"last instant", c.ID, "ann", 1, now.Add(TTL - time.Millisecond), nil},
			{"expired", c.ID, "ann", 1, now.Add(TTL), ErrExpired},
		} {
			_, _, err := d.Redeem(t.Context(), Answer{Product: product(tc.product), Buyer: tc.buyer, ChallengeID: tc.id, Text: answer}, tc.at)
			if !errors.Is(err, tc.want) {
				t.Errorf("%s, %s: %v, want %v", kind, tc.name, err, tc.want)
			}
			if err != nil && seckill.CodeOf(err) != seckill.CodeTokenInvalid {
				t.Errorf("%s, %s: code %s", kind, tc.name, seckill.CodeOf(err))
			}
		}
	}
}

func TestRedeem_TokensFromLeadToEnd(t *testing.T) {
	p := product(1)
	opens := p.StartsAt.Add(-time.Minute)
	ended := *p
	ended.State = seckill.SaleEnded
	for _, tc := range []struct {
		name    string
		product *seckill.Product
		at      time.Time
		code    seckill.Code
		expires time.Time
	}{
		{"before the lead", p, opens.Add(-time.Millisecond), seckill.CodeNotStarted, time.Time{}},
		{"at the lead", p, opens, "", p.StartsAt.Add(TokenTTL)},
		{"at the start", p, p.StartsAt, "", p.StartsAt.Add(TokenTTL)},
		{"later", p, p.StartsAt.Add(time.Minute), "", p.StartsAt.Add(time.Minute + TokenTTL)},
		{"at the end", p, p.EndsAt, seckill.CodeEnded, time.Time{}},
		{"ended by the operator", &ended, p.StartsAt, seckill.CodeEnded, time.Time{}},
	} {
		d, other := open(t, None), open(t, None)
		c, err := d.Pose(t.Context(), Ask{Product: tc.product, Buyer: "ann"}, tc.at)
		if tc.code != "" {
			if !tc.code.In(err) {
				t.Errorf("%s: challenge %v", tc.name, err)
			}
			// A challenge from an instance with a longer lead does not help.
			c, err = other.Pose(t.Context(), Ask{Product: p, Buyer: "ann"}, p.StartsAt)
		}
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		_, expires, err := d.Redeem(t.Context(), Answer{Product: tc.product, Buyer: "ann", ChallengeID: c.ID}, tc.at)
		if tc.code != "" && !tc.code.In(err) || tc.code == "" && err != nil || !expires.Equal(tc.expires) {
			t.Errorf("%s: token until %v, %v", tc.name, expires, err)
		}
	}
}

func TestRedeem_RefusesEveryChangedByte(t *testing.T) {
	d := open(t, Pow)
	c := d.pose(t, "ann", product(1))
	answer := d.solve(c)
	for i := range len(c.ID) {
		changed := []byte(c.ID)
		if changed[i]++; changed[i] > 'z' {
			changed[i] = 'A'
		}
		if _, err := d.redeem(t, Challenge{ID: string(changed)}, answer); err == nil {
			t.Fatalf("accepted with character %d changed", i)
		}
	}
	if _, err := d.redeem(t, c, answer); err != nil {
		t.Errorf("the forgeries spent the challenge: %v", err)
	}
}

// Instances get a new secret one after the other. Wherever a challenge is issued and
// redeemed, its token has the same id, so there is one purchase.
func TestRedeem_SameTokenIDDuringRotation(t *testing.T) {
	register := shared()
	with := func(secrets ...string) *testIssuer {
		return open(t, Pow, func(o *Options) {
			o.Spent, o.Secrets = register, nil
			for _, s := range secrets {
				o.Secrets = append(o.Secrets, []byte(s))
			}
		})
	}
	instances := []*testIssuer{with("old", "new"), with("new", "old"), with("third", "new", "old")}
	for _, asked := range instances[:2] {
		c := asked.pose(t, "ann", product(1))
		answer := Solve(c.ID, c.Difficulty)
		ids := map[auth.TokenID]bool{}
		for _, redeems := range instances {
			token, err := redeems.redeem(t, c, answer)
			if err != nil {
				t.Fatal(err)
			}
			ids[instances[2].id(t, token)] = true
		}
		if len(ids) != 1 {
			t.Errorf("%d ids of one challenge", len(ids))
		}
		if _, err := with("third").redeem(t, c, answer); !errors.Is(err, ErrForeign) {
			t.Errorf("after the rotation: %v", err)
		}
	}
}

func TestRedeem_WrongAnswerCountsOnAllInstances(t *testing.T) {
	register := shared()
	same := func(o *Options) { o.Spent = register }
	a, b := open(t, Image, same), open(t, Image, same)
	c := a.pose(t, "ann", product(1))
	if _, err := a.redeem(t, c, "33333"); !errors.Is(err, ErrWrong) {
		t.Fatal(err)
	}
	if _, err := b.redeem(t, c, a.drawer.last); !errors.Is(err, ErrWrong) {
		t.Errorf("the right answer at another instance: %v", err)
	}
}

func TestIssuer_LimitsRatePerBuyer(t *testing.T) {
	d := open(t, Image, func(o *Options) { o.PerBuyerPerMinute = 10 })
	var c Challenge
	for range 10 {
		c = d.pose(t, "ann", product(1))
	}
	_, err := d.Pose(t.Context(), Ask{Product: product(1), Buyer: "ann"}, now)
	var refusal *seckill.Error
	if !errors.As(err, &refusal) || refusal.Code != seckill.CodeRateLimited || refusal.RetryAfter != 6 {
		t.Errorf("the eleventh: %+v", err)
	}
	d.pose(t, "bob", product(1))
	for range 10 * answersPerAsk {
		if _, err := d.redeem(t, c, "33333"); !errors.Is(err, ErrWrong) {
			t.Fatal(err)
		}
	}
	if _, err := d.redeem(t, c, "33333"); !seckill.CodeRateLimited.In(err) {
		t.Errorf("too many answers: %v", err)
	}
}

func TestPose_PictureHasCostlierAlternative(t *testing.T) {
	d := open(t, Image)
	c := d.pose(t, "ann", product(1))
	if c.Kind != Image || string(c.Picture) != "PNG" || len(c.Alternatives) != 1 || c.Alternatives[0] != Pow || c.Difficulty != 0 {
		t.Errorf("posed %+v", c)
	}
	other, err := d.Pose(t.Context(), Ask{Product: product(1), Buyer: "ann", Kind: Pow}, now)
	if err != nil || other.Kind != Pow || other.Difficulty != 8+AlternativeBits || other.Picture != nil {
		t.Fatalf("the alternative: %+v, %v", other, err)
	}
	if _, err := d.redeem(t, other, Solve(other.ID, other.Difficulty)); err != nil {
		t.Error(err)
	}
	highest := open(t, Image, func(o *Options) { o.PowBits = MaxPowBits })
	if c, err := highest.Pose(t.Context(), Ask{Product: product(1), Buyer: "ann", Kind: Pow}, now); err != nil || c.Difficulty != MaxPowBits {
		t.Errorf("the alternative at the highest setting: %d bits, %v; a phone cannot do more in time", c.Difficulty, err)
	}
	if _, err := d.Pose(t.Context(), Ask{Product: product(1), Buyer: "ann", Kind: "audio"}, now); !seckill.CodeBadRequest.In(err) {
		t.Errorf("asked for an unknown kind: %v", err)
	}
	for _, usual := range Kinds {
		for _, wish := range Kinds {
			want := usual
			if usual == Image && wish == Pow {
				want = Pow
			}
			if c, err := open(t, usual).Pose(t.Context(), Ask{Product: product(1), Buyer: "ann", Kind: wish}, now); err != nil || c.Kind != want {
				t.Errorf("%s instead of %s: %s, %v", wish, usual, c.Kind, err)
			}
		}
	}
}

func TestRedeem_NormalizesTypedSymbols(t *testing.T) {
	for _, tc := range []struct{ drawn, typed string }{
		{"34ACX", "34ACX"}, {"34ACX", "34acx"}, {"34ACX", " 34 aCx "}, {"34ACX", "３４ａｃＸ"}, {"34ACX", "3 4　A C X\n"},
	} {
		if got := typed(tc.typed); got != tc.drawn {
			t.Errorf("%q is read as %q", tc.typed, got)
		}
	}
	d := open(t, Image)
	c := d.pose(t, "ann", product(1))
	if _, err := d.redeem(t, c, fmt.Sprintf(" %s ", d.drawer.last)); err != nil {
		t.Error(err)
	}
}

func TestRedeem_BusyVerifierLeavesChallengeUnused(t *testing.T) {
	silent := errors.New("no answer")
	fails := true
	d := open(t, Shop, func(o *Options) {
		o.Verify = func(context.Context, Question) (bool, error) {
			if fails {
				return true, silent
			}
			return true, nil
		}
	})
	c := d.pose(t, "ann", product(1))
	if _, err := d.redeem(t, c, "x"); !errors.Is(err, silent) || seckill.CodeOf(err) != seckill.CodeBusy {
		t.Errorf("while the verifier is away: %v", err)
	}
	fails = false
	if _, err := d.redeem(t, c, "x"); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}

// A verifier that accepts an answer once refuses the repeated answer. The buyer,
// whose token got lost, gets the token nevertheless.
func TestRedeem_RepeatSucceedsIfVerifierAcceptsOnce(t *testing.T) {
	taken := false
	d := open(t, Shop, func(o *Options) {
		o.Verify = func(context.Context, Question) (bool, error) { first := !taken; taken = true; return first, nil }
	})
	c := d.pose(t, "ann", product(1))
	first, err := d.redeem(t, c, "x")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := d.redeem(t, c, "x"); err != nil || d.id(t, again) != d.id(t, first) {
		t.Errorf("repeated: %v", err)
	}
}

// full is a register that is full or cannot be reached.
type full struct{ err error }

func (f full) Spend(context.Context, string, time.Time) (bool, error) { return false, f.err }
func (f full) Settle(_ context.Context, _ string, o onetime.Outcome, _ time.Time) (onetime.Outcome, error) {
	return o, f.err
}

func TestRedeem_NoTokenIfRegisterFails(t *testing.T) {
	for want, err := range map[seckill.Code]error{
		seckill.CodeBusy: errors.New("Redis is away"), seckill.CodeTooHot: &seckill.Error{Code: seckill.CodeTooHot},
	} {
		d := open(t, Pow, func(o *Options) { o.Spent = full{err} })
		c := d.pose(t, "ann", product(1))
		if token, err := d.redeem(t, c, d.solve(c)); token != "" || seckill.CodeOf(err) != want {
			t.Errorf("%q, %v, want %s", token, err, want)
		}
	}
}

func TestPose_TooHotIfDrawingQueueIsFull(t *testing.T) {
	drawing, done := make(chan struct{}), make(chan struct{})
	d := open(t, Image, func(o *Options) {
		o.Draw = func(string) ([]byte, error) { drawing <- struct{}{}; <-done; return []byte("PNG"), nil }
	})
	d.draws = newGate(1, 1, time.Hour)
	results := make(chan error, 2)
	ask := func() {
		_, err := d.Pose(t.Context(), Ask{Product: product(1), Buyer: "ann"}, now)
		results <- err
	}
	go ask()
	<-drawing // one draws
	d.draws.line <- struct{}{}
	// and one waits
	if _, err := d.Pose(t.Context(), Ask{Product: product(1), Buyer: "ann"}, now); !seckill.CodeTooHot.In(err) {
		t.Errorf("the third: %v", err)
	}
	<-d.draws.line
	d.draws.patience = time.Millisecond
	if _, err := d.Pose(t.Context(), Ask{Product: product(1), Buyer: "ann"}, now); !seckill.CodeTooHot.In(err) {
		t.Errorf("one that waited in vain: %v", err)
	}
	close(done)
	if err := <-results; err != nil {
		t.Error(err)
	}
}

func TestPose_NeedsRandomnessAndBuyer(t *testing.T) {
	for _, kind := range Kinds {
		d := open(t, kind, func(o *Options) { o.Random = iotest.ErrReader(errors.New("dry")) })
		if _, err := d.Pose(t.Context(), Ask{Product: product(1), Buyer: "ann"}, now); err == nil || seckill.CodeOf(err) != seckill.CodeBusy {
			t.Errorf("%s without randomness: %v", kind, err)
		}
		if _, err := open(t, kind).Pose(t.Context(), Ask{Product: product(1)}, now); !seckill.CodeBadRequest.In(err) {
			t.Errorf("%s without a buyer: %v", kind, err)
		}
	}
}

func FuzzRedeem(f *testing.F) {
	d := open(f, Image, func(o *Options) { o.PerBuyerPerMinute = 1 << 18 })
	f.Add("", "", "")
	f.Add(d.pose(f, "ann", product(1)).ID, "eve", "34ACX")
	f.Fuzz(func(t *testing.T, id, buyer, answer string) {
		token, _, err := d.Redeem(t.Context(), Answer{Product: product(1), Buyer: buyer, ChallengeID: id, Text: answer}, now)
		if err == nil || token != "" {
			t.Fatalf("a token for %q of %q", id, buyer)
		}
	})
}

func BenchmarkRedeem(b *testing.B) {
	d := open(b, Pow, func(o *Options) { o.PerBuyerPerMinute = 1 << 18 })
	c := d.pose(b, "ann", product(1))
	answer := d.solve(c)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := now.Add(time.Duration(i) * time.Microsecond)
		if _, _, err := d.Redeem(b.Context(), Answer{Product: product(1), Buyer: "ann", ChallengeID: c.ID, Text: answer}, at); err != nil {
			b.Fatal(err)
		}
	}
}
