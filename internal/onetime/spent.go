// Package onetime is the port of the register of things that may be used once:
// guesses at a challenge, login codes. It holds what was used, for as long as
// it could be used again, and nothing else.
package onetime

import (
	"context"
	"time"
)

// Outcome is what became of a thing, in the words of whoever used it.
type Outcome byte

// MinLife is how long a use is remembered at least, however soon its end: what
// is at its end on one instance's clock may not be on another's.
const MinLife = time.Second

// Register remembers uses by an id, any text. Kinds of things share one
// register, and begin their ids with what they are ("login:", "challenge:").
// An id is either spent or settled, always by the same method.
//
// An error means that the use may or may not be remembered: what was asked for
// must be refused, as busy or, where the error carries a code, with that. All
// instances that share a register agree; one that keeps it in memory forgets
// with its process.
type Register interface {
	// Spend uses id up until an instant. Of all calls until then exactly one is
	// first.
	Spend(ctx context.Context, id string, until time.Time) (first bool, err error)
	// Settle uses id up with an outcome. The outcome of the first call stands
	// until its instant, and is what every call is told.
	Settle(ctx context.Context, id string, outcome Outcome, until time.Time) (standing Outcome, err error)
}
