//go:build !unix

package socket

import (
	"errors"
	"os"
	"time"
)

// shortly is how long a write may take where a socket cannot be asked whether it
// would wait.
const shortly = 20 * time.Millisecond

func (b *bare) writeNow(text []byte) (int, error) {
	if err := b.Conn.SetWriteDeadline(time.Now().Add(shortly)); err != nil {
		return 0, err
	}
	n, err := b.Conn.Write(text)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = ErrSlow
	}
	return n, err
}

// gone is not known here; the next write tells.
func (b *bare) gone() bool { return false }
