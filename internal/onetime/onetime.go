// Package onetime is the port of the register of ids that may be used once:
// challenges and login codes. It remembers a use for as long as the id is
// valid, and nothing else.
package onetime

import (
	"context"
	"time"
)

// Outcome is the result of a use. Its meaning belongs to the caller.
type Outcome byte

// MinLife is the least time for which a use is remembered, because the clocks
// of instances differ.
const MinLife = time.Second

// Register remembers uses by an id, which may be any text. Kinds of ids share
// one register and begin with the kind ("login:", "challenge:"). An id is
// either spent or settled, always by the same method.
//
// After an error the use may or may not be remembered. The caller must refuse
// the request, with the code of the error or with busy. All instances that
// share a register agree. A register in memory forgets with its process.
type Register interface {
	// Spend uses an id until an instant. Of all calls until then, exactly one
	// is first.
	Spend(ctx context.Context, id string, until time.Time) (first bool, err error)
	// Settle uses an id with an outcome. The outcome of the first call is valid
	// until its instant, and every call returns it.
	Settle(ctx context.Context, id string, outcome Outcome, until time.Time) (standing Outcome, err error)
}
