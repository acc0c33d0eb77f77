// Package certificate makes authorities and certificates for tests, in files as
// servers and the engine read them.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Certificates are valid for longer than any test, on clocks that differ a bit.
const (
	validBefore = time.Hour
	validFor    = 24 * time.Hour
)

// Authority signs certificates.
type Authority struct {
	t      testing.TB
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	issued int64
}

// Pair is a certificate and its key.
type Pair struct {
	// CAFile has the certificate of the authority that signed it.
	CAFile            string
	CertFile, KeyFile string
}

// NewAuthority makes an authority of its own. The test removes its files at the
// end.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir(), key: newKey(t)}
	template := a.template("test authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	writePEM(t, a.File(), "CERTIFICATE", der)
	return a
}

// File has the authority's own certificate.
func (a *Authority) File() string { return filepath.Join(a.dir, "ca.pem") }

// Issue makes a certificate for hosts, by name or address. It is valid for
// servers and for clients: the nodes of a Cluster are both. Clients need no
// host.
func (a *Authority) Issue(name string, hosts ...string) Pair {
	a.t.Helper()
	base := filepath.Join(a.dir, strconv.FormatInt(a.issued, 10))
	pair := Pair{CAFile: a.File(), CertFile: base + "-cert.pem", KeyFile: base + "-key.pem"}
	a.Replace(pair, time.Now().Add(validFor), name, hosts...)
	return pair
}

// Replace puts another certificate and key into the files of a pair, as a renewal
// does. Its end may have passed.
func (a *Authority) Replace(pair Pair, end time.Time, name string, hosts ...string) {
	a.t.Helper()
	key := newKey(a.t)
	template := a.template(name)
	template.NotBefore, template.NotAfter = end.Add(-validFor-validBefore), end
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	writePEM(a.t, pair.CertFile, "CERTIFICATE", der)
	writePEM(a.t, pair.KeyFile, "PRIVATE KEY", keyDER)
}

// template has what all certificates of an authority have, and a number of its own.
func (a *Authority) template(name string) *x509.Certificate {
	a.issued++
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.issued), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-validBefore), NotAfter: now.Add(validFor),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
