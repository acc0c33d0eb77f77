package socket

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookEvery is how often the files of a certificate are looked at, at most.
const lookEvery = time.Second

// Certificate is read from files, and again when they change: certificates are
// renewed every few weeks, and no sale has to be interrupted for it.
type Certificate struct {
	certFile, keyFile string
	now               func() time.Time
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	seen    stamp // of the files that current, or the last failure, is from
	looked  time.Time
}

// stamp tells one version of the files from another.
type stamp [2]struct {
	at   time.Time
	size int64
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

// load reads the files if they are not those read before. Of a pair that is
// being replaced one may be new already: it is tried again when the other is.
func (c *Certificate) load() error {
	present, err := c.stamp()
	if err != nil || present == c.seen {
		return err
	}
	c.seen = present
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	if c.current != nil {
		c.log.Info("certificate renewed", "until", pair.Leaf.NotAfter)
	}
	c.current = &pair
	return nil
}

func (c *Certificate) stamp() (s stamp, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return s, fmt.Errorf("read the certificate: %w", err)
		}
		s[i].at, s[i].size = info.ModTime(), info.Size()
	}
	return s, nil
}
