// Package challenge makes a buyer solve a task that is hard or costly for robots.
// The reward is a purchase token.
//
// A challenge is sealed: its id carries its kind, its difficulty and a keyed tag
// of its answer, signed for one buyer and one product. So any instance can check
// the answer, and an unanswered challenge takes no memory. Only the outcome of
// the first answer is kept, in a register (package onetime). If the first answer
// was wrong, the challenge is used up. If it was right, it may be repeated.
//
// The token's id is derived from the challenge's id under the secret that sealed
// it. A repeated answer, also at another instance or during a rotation of
// secrets, gives the same id. The id is the idempotency key of the purchase, so a
// repeated answer never leads to a second purchase.
//
//   - issuer.go, gate.go, meter.go: Issuer, its bounds and its load
//   - pow.go, reputation.go: the proof of work and its difficulty
//   - symbol.go, picture*.go: the image challenge
//   - seal.go: the signed form; register.go: the first answer
package challenge

import (
	"time"

	"seckill"
)

// Kind of a challenge, as in the API and the configuration.
type Kind string

// The kinds.
const (
	// None: no task.
	None Kind = "none"
	// Pow is a proof of work: find digits that, hashed with the challenge's
	// id, give a hash with a number of leading zero bits.
	Pow Kind = "pow"
	// Image: type the symbols of a picture.
	Image Kind = "image"
	// Shop: the shop's own verifier checks the answer.
	Shop Kind = "shop"
)

// Kinds lists all kinds.
var Kinds = []Kind{None, Pow, Image, Shop}

const (
	// TTL leaves a person time to solve a challenge, and to wait for the start.
	TTL = 5 * time.Minute
	// TokenTTL is the lifetime of a token. It counts from the start of the sale if
	// the token was made before. It leaves time to press the button after an early
	// challenge, but makes hoarded tokens nearly worthless.
	TokenTTL = 2 * time.Minute
	// MaxAnswerBytes has room for the response tokens of known verifiers.
	MaxAnswerBytes = 4 << 10
)

// Challenge is the task of a buyer.
type Challenge struct {
	ID        string
	Kind      Kind
	ExpiresAt time.Time
	// Difficulty is the number of leading zero bits of a proof of work.
	Difficulty int
	// Picture is a PNG file.
	Picture []byte
	// Alternatives are the kinds that the buyer may request instead.
	Alternatives []Kind
	// WidgetURL is the address of the shop's own widget, if it has one.
	WidgetURL string
}

// The log shows which of these errors it was. Clients get `token_invalid` for
// all of them.
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
