package pulsarclient

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// target is a broker: its own address, and the address to connect to. They
// differ behind a proxy.
type target struct{ broker, address string }

// timedConn records when bytes arrive.
type timedConn struct {
	net.Conn
	at atomic.Int64 // in Unix nanoseconds
}

func (t *timedConn) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if n > 0 {
		t.at.Store(time.Now().UnixNano())
	}
	return n, err
}

func (t *timedConn) silence() time.Duration { return time.Since(time.Unix(0, t.at.Load())) }

// dial connects and signs in.
func (c *Client) dial(ctx context.Context, at target) (*conn, error) {
	raw, err := c.reach(ctx, at.address)
	if err != nil {
		return nil, fmt.Errorf("pulsar: no broker is reachable: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	_ = raw.SetDeadline(time.Now().Add(greetTimeout)) // fails only on a closed connection
	wire := &timedConn{Conn: raw}
	reader := bufio.NewReaderSize(wire, readBuffer)
	most, err := c.greet(wire, reader, at)
	if err != nil {
		_ = raw.Close() // it is unusable
		return nil, err
	}
	_ = raw.SetDeadline(time.Time{})
	return newConn(c, at, wire, reader, most), nil
}

// reach opens a connection, with TLS if configured.
func (c *Client) reach(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	if len(c.opt.Addresses) > 1 {
		dialer.Timeout = tryTimeout
	}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil || c.opt.TLS == nil {
		return raw, err
	}
	config := c.opt.TLS.Clone()
	if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
		_ = raw.Close()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	secure := tls.Client(raw, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return secure, nil
}

// greet signs in, and returns the size of the broker's largest message.
func (c *Client) greet(wire net.Conn, reader *bufio.Reader, at target) (int, error) {
	behind := ""
	if at.broker != at.address {
		behind = at.broker
	}
	if _, err := wire.Write(encodeConnect(c.opt.Token, behind)); err != nil {
		return 0, silentBroker(err)
	}
	for {
		f, err := readFrame(reader, maxCommand)
		if err != nil {
			return 0, silentBroker(err)
		}
		a, err := readAnswer(f.command)
		if err != nil {
			return 0, silentBroker(err)
		}
		switch a.kind {
		case kindConnected:
			if a.size <= 0 || a.size > largestMaxMessage {
				a.size = defaultMaxMessage
			}
			return a.size, nil
		case kindError:
			return 0, a.err()
		case kindAuthChallenge:
			if _, err := wire.Write(encodeToken(c.opt.Token)); err != nil {
				return 0, silentBroker(err)
			}
		}
	}
}

func silentBroker(err error) error {
	return fmt.Errorf("pulsar: the broker did not answer, check the TLS settings: %w", err)
}
