// Package challenge asks a buyer for something that robots are bad at, or that
// costs them, before a purchase token is made.
//
// A challenge is sealed: it carries its kind, its difficulty and a keyed tag of
// its answer under a signature that binds it to a buyer and a product, so that
// any instance can judge the answer to what another one asked and nothing is
// kept of a challenge that nobody answers. What is kept, by the register of
// things that may be used once, is how the first answer was: a wrong one ends
// the challenge for good, a right one may be repeated.
//
// The id of the token is made from the challenge's, under the secret that
// sealed it: whoever redeems a challenge twice, at two instances at once or in
// the middle of a rotation of secrets, gets the same id, which is the purchase's
// idempotency key. A replayed answer never brings a second purchase.
package challenge

import (
	"time"

	"seckill"
)

// Kind of a challenge, as the wire and the configuration say it.
type Kind string

// The kinds.
const (
	// None asks for nothing.
	None Kind = "none"
	// Pow asks for a proof of work: digits with which the challenge's id has a
	// hash that begins with some zero bits.
	Pow Kind = "pow"
	// Image asks for the symbols of a picture.
	Image Kind = "image"
	// Shop asks for whatever the shop's own verifier accepts.
	Shop Kind = "shop"
)

// Kinds lists all of them.
var Kinds = []Kind{None, Pow, Image, Shop}

const (
	// TTL leaves a person time to solve a challenge, and to wait for the start.
	TTL = 5 * time.Minute
	// TokenTTL is how long a token lives, from the start of the sale if it was
	// made before: long enough to press the button after a challenge that was
	// solved early, and short enough that hoarded tokens are worth little.
	TokenTTL = 2 * time.Minute
	// MaxAnswerBytes has room for the response tokens of known verifiers.
	MaxAnswerBytes = 4 << 10
)

// Challenge is what a buyer has to answer.
type Challenge struct {
	ID        string
	Kind      Kind
	ExpiresAt time.Time
	// Difficulty is how many zero bits a proof of work begins with.
	Difficulty int
	// Picture is a PNG file.
	Picture []byte
	// Alternatives are kinds that may be asked for instead.
	Alternatives []Kind
	// WidgetURL is where the shop's own widget is, if it has one.
	WidgetURL string
}

// The refusals. Each says something else in the log; on the wire they are all
// token_invalid.
var (
	ErrMalformed = unusable("not a challenge of ours")
	ErrForeign   = unusable("the challenge is not of this buyer and product")
	ErrExpired   = unusable("the challenge has expired")
	ErrWrong     = seckill.Errorf(seckill.CodeTokenInvalid, "the answer is wrong, or another one was before it: ask for a new challenge").
			Titled("The answer is wrong, please take a new challenge.", "答案不正确，请重新验证")
)

func unusable(detail string) *seckill.Error {
	return seckill.Errorf(seckill.CodeTokenInvalid, "%s", detail).
		Titled("The challenge is not valid or has run out, please take a new one.", "验证无效或已过期，请重新验证")
}
