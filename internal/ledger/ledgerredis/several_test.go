package ledgerredis

import (
	"errors"
	"io"
	"testing"
)

func TestManyFailuresAreOneLineAndAllAreFound(t *testing.T) {
	if err := several([]error{nil, nil}); err != nil {
		t.Errorf("no failure is %v", err)
	}
	if err := several([]error{nil, io.EOF}); err.Error() != "EOF" {
		t.Errorf("one failure is %q", err)
	}
	err := several([]error{io.EOF, nil, io.ErrUnexpectedEOF, io.ErrNoProgress})
	if err.Error() != "EOF (and 2 more like this)" || !errors.Is(err, io.ErrNoProgress) || !errors.Is(err, io.EOF) {
		t.Errorf("three failures are %q", err)
	}
}
