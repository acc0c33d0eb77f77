package api

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate writes a new self-signed pair under a name.
func writeCertificate(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"shop.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeFile(t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	writeFile(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	return certFile, keyFile
}

func writeFile(t *testing.T, name string, body []byte) {
	t.Helper()
	if err := os.WriteFile(name, body, 0o600); err != nil {
		t.Fatal(err)
	}
}

// greet shakes hands and returns whose certificate it was shown.
func greet(t *testing.T, l *Listener, change func(*tls.Config)) (string, error) {
	t.Helper()
	cfg := &tls.Config{InsecureSkipVerify: true}
	if change != nil {
		change(cfg)
	}
	conn := tls.Client(dial(t, l), cfg)
	defer conn.Close()
	if err := conn.Handshake(); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("x")); err != nil {
		return "", err
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return "", err
	}
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func TestCertificate_IsReloadedWithoutRestart(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	var log bytes.Buffer
	certFile, keyFile := writeCertificate(t, dir, "first")
	certificate, err := LoadCertificate(certFile, keyFile, func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l, accepted := open(t, ListenOptions{TLS: certificate.Config()})
	go func() {
		for conn := range accepted {
			_, _ = io.CopyN(conn, conn, 1) // the other side reports what fails
			conn.Close()
		}
	}()
	want := func(name string) {
		t.Helper()
		if got, err := greet(t, l, nil); got != name {
			t.Errorf("shown %q (%v), want %q", got, err, name)
		}
	}
	want("first")
	writeCertificate(t, dir, "second, with a longer name")
	want("first") // looked at a moment ago
	now = now.Add(lookEvery)
	want("second, with a longer name")
	writeFile(t, certFile, []byte("half a certifi"))
	now = now.Add(lookEvery)
	want("second, with a longer name")
	if !strings.Contains(log.String(), "cannot be used") {
		t.Errorf("the log says %q", log.String())
	}
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	now = now.Add(lookEvery)
	want("second, with a longer name")
	writeCertificate(t, dir, "third")
	now = now.Add(lookEvery)
	want("third")
	if _, err := greet(t, l, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11; c.MinVersion = tls.VersionTLS10 }); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
}

func TestCertificate_MissingFileIsAnError(t *testing.T) {
	dir := t.TempDir()
	certFile, _ := writeCertificate(t, dir, "one")
	_, otherKey := writeCertificate(t, t.TempDir(), "another")
	for name, files := range map[string][2]string{"missing": {filepath.Join(dir, "no"), otherKey}, "of another key": {certFile, otherKey}} {
		if _, err := LoadCertificate(files[0], files[1], time.Now, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestConn_NeverWaitHoldsWithTLS.
func TestConn_NeverWaitHoldsWithTLS(t *testing.T) {
	certFile, keyFile := writeCertificate(t, t.TempDir(), "one")
	certificate, err := LoadCertificate(certFile, keyFile, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, accepted := open(t, ListenOptions{TLS: certificate.Config()})
	client := tls.Client(dial(t, l), &tls.Config{InsecureSkipVerify: true})
	shaken := make(chan error, 1)
	go func() {
		_, err := client.Write([]byte("x"))
		shaken <- err
	}()
	conn := next(t, accepted)
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	conn.NeverWait()
	for range 1 << 20 {
		if _, err = conn.Write(make([]byte, 1000)); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("writing ends with %v", err)
	}
}
