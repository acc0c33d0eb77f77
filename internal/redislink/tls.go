package redislink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
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
	if err == nil || errors.As(err, &dial) && dial.Op == "dial" {
		return conn, err
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("TLS with %s: %w", address, err)}
}

// Untrusted reports whether a server, or this client, showed a certificate that
// the other does not believe: to try again would not change it.
func Untrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return true
	}
	for said := (*net.OpError)(nil); errors.As(err, &said); err = said.Err {
		if said.Op == "remote error" { // so says crypto/tls what the server does not like about us
			return true
		}
	}
	return false
}

// HungUp reports whether a connection was made and then left without an answer,
// as by a server that speaks TLS to a client that does not, or the other way round.
func HungUp(err error) bool {
	for _, sign := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, sign) {
			return true
		}
	}
	var greeting tls.RecordHeaderError
	return errors.As(err, &greeting)
}
