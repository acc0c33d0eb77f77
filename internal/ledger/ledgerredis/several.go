package ledgerredis

import (
	"errors"
	"fmt"
)

// several joins the failures of many buckets. A Redis that is away fails all
// 64 in the same words, so the text is the first one's, and how many more.
func several(failures []error) error {
	joined := errors.Join(failures...)
	all, ok := joined.(interface{ Unwrap() []error })
	if !ok || len(all.Unwrap()) < 2 {
		return joined
	}
	return &manyFailed{all.Unwrap()}
}

type manyFailed struct{ all []error }

func (m *manyFailed) Error() string {
	return fmt.Sprintf("%v (and %d more like this)", m.all[0], len(m.all)-1)
}

func (m *manyFailed) Unwrap() []error { return m.all }
