package api

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// lookEvery is the least time between two reads of the certificate's files.
const lookEvery = 5 * time.Second

// Certificate is a certificate that is read again when its files change, so that a
// renewal needs no restart.
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

// Config returns settings for TLS 1.2 or later with the certificate, and HTTP/1.1.
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

// load reads the files. If only one file of the pair is replaced so far, it fails,
// and the next call tries again.
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
