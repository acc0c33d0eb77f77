package api

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// lookEvery is how often the files of a certificate are read again, at most.
const lookEvery = 5 * time.Second

// Certificate is read from files, and again when they change: certificates are
// renewed every few weeks, and no sale has to be interrupted for it.
type Certificate struct {
	certFile, keyFile string
	now               func() time.Time
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	looked  time.Time
}

// LoadCertificate reads a certificate chain and its key, in PEM.
func LoadCertificate(certFile, keyFile string, now func() time.Time, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, now: now, log: log}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// Config speaks TLS 1.2 or later with the certificate, and HTTP/1.1 in it.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
}

func (c *Certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		if err := c.load(); err != nil {
			c.log.Warn("the new certificate cannot be used; the one before is", "error", err)
		}
	}
	return c.current, nil
}

// load reads the files. Of a pair that is being replaced one may be new already:
// it is tried again later.
func (c *Certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	if c.current != nil && !bytes.Equal(pair.Certificate[0], c.current.Certificate[0]) {
		c.log.Info("certificate renewed", "until", pair.Leaf.NotAfter)
	}
	c.current = &pair
	return nil
}
