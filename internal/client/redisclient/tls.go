package redisclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"seckill/internal/background"
)

// dialTLS dials, and shakes hands within the dialer's time. The certificate must
// be for the host of the address, which is that of the very node: one that was
// named in Addrs, or that a Sentinel or a Cluster named.
//
// A failed handshake is a failed dial: there was no connection, and nothing of a
// call was written. Callers tell by it what was not executed.
func dialTLS(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	over := tls.Dialer{NetDialer: dialer, Config: config}
	conn, err := over.DialContext(ctx, "tcp", address)
	var dial *net.OpError
	switch {
	case err == nil:
		return &greeting{Conn: conn}, nil
	case errors.As(err, &dial) && dial.Op == "dial":
		return nil, err
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("TLS with %s: %w", address, err)}
}

// lastWordWithin bounds the wait for what a server said before it hung up. It is
// here already, if it is anything.
const lastWordWithin = 50 * time.Millisecond

// greeting is a connection on which nothing was said yet. With TLS 1.3 the client
// has shaken hands before the server has looked at its certificate: the refusal
// lies unread while the first write already fails, and is what explains it.
type greeting struct {
	net.Conn
	said atomic.Bool // a write has ended
}

func (g *greeting) Write(b []byte) (int, error) {
	n, err := g.Conn.Write(b)
	if first := !g.said.Swap(true); !first || err == nil {
		return n, err
	}
	if g.Conn.SetReadDeadline(time.Now().Add(lastWordWithin)) == nil {
		if _, word := g.Conn.Read(make([]byte, 1)); background.CertificateRefused(word) {
			err = word
		}
	}
	return n, err
}

// HungUp reports whether a connection was made and then left without an answer,
// as by a server that speaks TLS to a client that does not, or the other way round.
func HungUp(err error) bool {
	for _, sign := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, sign) {
			return true
		}
	}
	var header tls.RecordHeaderError
	return errors.As(err, &header)
}
