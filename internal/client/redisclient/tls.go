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

// dialTLS dials and completes the handshake within the dialer's timeout. The
// certificate must be for the host of the node's own address, from Addrs, a
// Sentinel or a Cluster.
//
// A failed handshake counts as a failed dial: nothing of a call was written.
// From this, callers know that their call was not executed.
func dialTLS(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	over := tls.Dialer{NetDialer: dialer, Config: config}
	conn, err := over.DialContext(ctx, "tcp", address)
	var dial *net.OpError
	switch {
	case err == nil:
		return &firstWriteConn{Conn: conn}, nil
	case errors.As(err, &dial) && dial.Op == "dial":
		return nil, err
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("TLS with %s: %w", address, err)}
}

// alertWithin bounds the wait for an alert of a server that closed the
// connection. If there is one, it has already arrived.
const alertWithin = 50 * time.Millisecond

// firstWriteConn is a connection before its first write. With TLS 1.3 the
// handshake of the client ends before the server has checked the client's
// certificate. If the server refuses it, the first write fails, and the reason
// is in an unread alert.
type firstWriteConn struct {
	net.Conn
	wrote atomic.Bool // a write has ended
}

func (c *firstWriteConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if first := !c.wrote.Swap(true); !first || err == nil {
		return n, err
	}
	if c.Conn.SetReadDeadline(time.Now().Add(alertWithin)) == nil {
		if _, word := c.Conn.Read(make([]byte, 1)); background.CertificateRefused(word) {
			err = word
		}
	}
	return n, err
}

// HungUp reports whether the server closed the connection without an answer, as
// if only one side uses TLS.
func HungUp(err error) bool {
	for _, sign := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, sign) {
			return true
		}
	}
	var header tls.RecordHeaderError
	return errors.As(err, &header)
}
