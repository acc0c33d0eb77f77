package ledgerredis

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"seckill/internal/client/redisclient"
	"seckill/test/server"
)

// Connection errors that no real server produces on demand.
func TestCall_BrokenConnectionIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want meaning
	}{
		"answered":             {nil, executed},
		"refused connection":   {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, refusedForNow},
		"reset":                {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, unknown},
		"broken in writing":    {&net.OpError{Op: "write", Err: syscall.EPIPE}, unknown},
		"closed by the server": {io.EOF, unknown},
		"deadline":             {context.DeadlineExceeded, unknown},
		"too few replicas":     {errReplicas, unknown},
		"an unknown error":     {errors.New("?"), unknown},
	} {
		if got := meaningOf(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// An error that a script itself raises may come in its middle, so it never means "not
// executed".
func TestCall_ErrorInsideAScriptIsUnknown(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	l := opened(t, Options{Place: redisclient.Place{Addrs: []string{s.Addr()}}})
	broken := &script{body: "#!lua\nredis.call('SET', KEYS[1], 1) error('broken')", sha: "0"}
	_, err := l.call.runReplicated(t.Context(), broken, []string{"k"}, nil)
	if err == nil || meaningOf(err) != unknown {
		t.Errorf("%v means %d", err, meaningOf(err))
	}
}
