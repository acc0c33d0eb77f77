package robot

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/challenge"
	"seckill/internal/onetime/onetimemem"
	"seckill/test/engine"
)

// parallelGuesses sends many answers to one challenge to both instances at
// once. The first answer decides: if it is right, the right answers get one and
// the same token; if it is wrong, no answer gets a token.
func parallelGuesses(t *testing.T, p *pair) {
	const guessers = 8
	b := p.open(t, engine.Product{ID: 21, Stock: 50, PerUserLimit: 5})
	honest := p.crowd(t, b, 21)
	robot := New(t)
	for i := range guessers {
		eve := robot.Account(p.either(i), fmt.Sprintf("robot-guesser-%d", i))
		posed, _ := eve.Ask(21, "")
		right := challenge.Solve(posed.ID, posed.Difficulty)
		b.refused("the right answer after guesses", seckill.CodeTokenInvalid, guessed(b, p, eve, posed.ID, "x", right)...)

		posed, _ = eve.Ask(21, "")
		right = challenge.Solve(posed.ID, posed.Difficulty)
		nos := make([]string, 0, 2)
		for i, got := range guessed(b, p, eve, posed.ID, right, right) {
			if got.Token != "" {
				nos = append(nos, eve.At(p.either(i)).Press(21, got.Token).OrderNo)
			} else {
				b.refused("a right answer among guesses", seckill.CodeTokenInvalid, got)
			}
		}
		if len(nos) > 0 {
			b.gives(eve.Name, 1)
			one(t, "orders of one challenge", nos)
		}
	}
	honest()
	b.close()
}

// guessed sends one answer among wrong ones, all at once. It buys with every
// token that it gets, and then answers again at both instances.
func guessed(b *book, p *pair, eve Account, id, among, after string) []Answer {
	const guesses = 8
	Together(guesses, func(i int) {
		answer := among
		if i > 0 {
			answer = fmt.Sprint("x", i)
		}
		got := eve.At(p.either(i)).Redeem(21, id, answer)
		if got.Token == "" {
			b.refused("a guess", seckill.CodeTokenInvalid, got)
			return
		}
		eve.At(p.either(i+1)).Press(21, got.Token)
	})
	return []Answer{eve.At(p.a).Redeem(21, id, after), eve.At(p.b).Redeem(21, id, after)}
}

// guesses tries pictures by brute force, proofs without the work, challenges
// that the engine never issued, and altered challenges. No guess gives a token.
//
// A picture has 21⁵ possible answers and an account five guesses, so the robot
// succeeds by chance once in 200,000 runs.
func guesses(t *testing.T) {
	const perMinute, painters = 5, 4
	e := engine.Start(t, engine.Options{Settings: map[string]string{
		"token.required": "true", "challenge.kind": "image", "challenge.pow_bits": "8", "challenge.per_buyer_per_minute": fmt.Sprint(perMinute),
	}})
	b := open(t, e, engine.Product{ID: 1, Stock: 50, PerUserLimit: 5})
	people := New(t)
	honest := b.crowd(1, true, func(_ int, name string) Account { return people.Account(e, name) })
	robot := New(t)
	Together(painters, func(i int) { guessedPictures(b, robot.Account(e, fmt.Sprintf("robot-painter-%d", i)), perMinute) })
	tooLittleWork(b, robot.Account(e, "robot-lazy"))
	alteredChallenges(b, robot.Account(e, "robot-editor"))
	inventedChallenges(b, robot.Account(e, "robot-inventor"))
	honest()
	b.close()
}

// guessedPictures asks for as many pictures as an account may get, and for
// alternatives, and guesses at each.
func guessedPictures(b *book, eve Account, perMinute int) {
	clock, asked := clock{eve}, 0
	began := clock.now()
	for i := range 4 * perMinute {
		posed, got := eve.Ask(1, []string{"", "image", "pow", "none"}[i%4])
		if got.Code != "" {
			b.refused("more challenges than a minute has", seckill.CodeRateLimited, got)
			continue
		}
		asked++
		for _, guess := range []string{"ACDEF", "34679", ""} { // the first one decides, and solves no proof of work
			if got := eve.Redeem(1, posed.ID, guess); got.Code != seckill.CodeRateLimited {
				b.refused("a guess", seckill.CodeTokenInvalid, got)
			}
		}
	}
	if may := perMinute + int(clock.since(began).Minutes()*float64(perMinute)); asked > may {
		b.t.Errorf("%s was asked %d challenges, and may be asked %d", eve.Name, asked, may)
	}
}

// tooLittleWork answers with a proof that is one bit short, then does the work.
func tooLittleWork(b *book, eve Account) {
	posed, _ := eve.Ask(1, "pow")
	short := challenge.Solve(posed.ID, posed.Difficulty/2)
	if challenge.Solved(posed.ID, short, posed.Difficulty) {
		short = "x" // the short answer solves it by chance
	}
	b.refused("too little work", seckill.CodeTokenInvalid, eve.Redeem(1, posed.ID, short))
	b.refused("the work after a guess", seckill.CodeTokenInvalid, eve.Redeem(1, posed.ID, challenge.Solve(posed.ID, posed.Difficulty)))
	b.refused("a purchase without a token", seckill.CodeTokenInvalid, eve.Press(1, ""))
	b.refused("a challenge as a token", seckill.CodeTokenInvalid, eve.Press(1, posed.ID))
}

// alteredChallenges sets the kind of a challenge to none, its difficulty to
// zero, or its end to never, and then does the work that the altered challenge
// asks for.
func alteredChallenges(b *book, eve Account) {
	posed, _ := eve.Ask(1, "pow")
	raw, err := base64.RawURLEncoding.DecodeString(posed.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	// version (1) · kind (1) · id (16) · end (8) · difficulty (1) · tag (16) · signature (32)
	for what, edit := range map[string]func(raw []byte){
		"of kind none":      func(raw []byte) { raw[1] = 'n' },
		"of the shop":       func(raw []byte) { raw[1] = 's' },
		"with another id":   func(raw []byte) { raw[2] ^= 1 },
		"that never ends":   func(raw []byte) { raw[18] = 0x7f },
		"without work":      func(raw []byte) { raw[26] = 0 },
		"with another tag":  func(raw []byte) { raw[27] ^= 1 },
		"with another seal": func(raw []byte) { raw[len(raw)-1] ^= 1 },
	} {
		altered := append([]byte(nil), raw...)
		edit(altered)
		id := base64.RawURLEncoding.EncodeToString(altered)
		b.refused("a challenge "+what, seckill.CodeTokenInvalid, eve.Redeem(1, id, challenge.Solve(id, int(altered[26]))))
	}
}

// inventedChallenges answers challenges that are random, sealed with the
// robot's own secret, or expired.
func inventedChallenges(b *book, eve Account) {
	for what, id := range map[string]string{
		"of nothing":          strings.Repeat("A", 100),
		"of another length":   "AQ",
		"of its own sealing":  posedBy(b.t, "a secret of the robot's own, as long as any", eve.Name, time.Now()),
		"that has ended":      posedBy(b.t, engine.TokenSecret, eve.Name, time.Now().Add(-challenge.TTL-time.Second)),
		"of a purchase token": issued(b.t, eve.Name, 1, time.Now().Add(time.Hour)),
	} {
		b.refused("a challenge "+what, seckill.CodeTokenInvalid, eve.Redeem(1, id, challenge.Solve(id, 12)))
	}
}

// posedBy is a proof of work for product 1, sealed with this secret at this
// time.
func posedBy(t *testing.T, secret, buyer string, at time.Time) string {
	t.Helper()
	tokens, err := auth.NewMint([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := challenge.New(challenge.Options{
		Kind: challenge.Pow, PowBits: 12, Secrets: [][]byte{[]byte(secret)}, Tokens: tokens, Spent: onetimemem.New(time.Now), PerBuyerPerMinute: 1, Random: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	posed, err := issuer.Pose(t.Context(), challenge.Ask{Product: &seckill.Product{ID: 1, EndsAt: at.Add(time.Hour)}, Buyer: buyer}, at)
	if err != nil {
		t.Fatal(err)
	}
	return posed.ID
}

// issued is a purchase token as the engine makes it, with an expiry.
func issued(t *testing.T, buyer string, product uint32, end time.Time) string {
	t.Helper()
	mint, err := auth.NewMint([]byte(engine.TokenSecret))
	if err != nil {
		t.Fatal(err)
	}
	token, err := mint.Issue(auth.TokenID{1}, buyer, product, end)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
