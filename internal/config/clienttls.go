package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
)

// TLSConfig is how Redis is spoken to; nil is plain. A connection is checked
// against the host that was dialled, so that of a node that a Cluster or a
// Sentinel named it is that node's.
func (r Redis) TLSConfig() (*tls.Config, error) {
	if !r.TLS {
		return nil, nil
	}
	config, err := trusting("redis.tls_ca", r.TLSCA)
	if r.TLSCert == "" || r.TLSKey == "" {
		return config, err
	}
	own := func() (*tls.Certificate, error) {
		return readPair("redis.tls_cert", r.TLSCert, "redis.tls_key", r.TLSKey)
	}
	if _, ownErr := own(); err != nil || ownErr != nil {
		return nil, errors.Join(err, ownErr)
	}
	// Read for each connection, of which there are few: a certificate that was
	// renewed is used without a restart.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own() }
	return config, nil
}

// TLSConfig is how MySQL is spoken to where a file of authorities says it; nil
// is as the address says.
func (s Store) TLSConfig() (*tls.Config, error) {
	if s.TLSCA == "" {
		return nil, nil
	}
	return trusting("store.tls_ca", s.TLSCA)
}

// trusting believes the authorities of a file; without one, the system's.
func trusting(key, path string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if path == "" {
		return config, nil
	}
	text, err := readFile(key, path)
	if err != nil {
		return nil, err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, wrong(key, "%s has no certificate in PEM", path)
	}
	return config, nil
}

// readPair reads a certificate and its key, and holds that they belong together.
func readPair(certKey, certPath, keyKey, keyPath string) (*tls.Certificate, error) {
	cert, certErr := readFile(certKey, certPath)
	key, keyErr := readFile(keyKey, keyPath)
	if certErr != nil || keyErr != nil {
		return nil, errors.Join(certErr, keyErr)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, wrong(certKey, "does not go with %s: %w", keyKey, err)
	}
	return &pair, nil
}

// checkClientTLS holds that files for TLS are read by somebody: one that is
// ignored would leave its owner in the belief that the server is checked.
func (c *Config) checkClientTLS() error {
	var found findings
	r := &c.Redis
	found.when(r.TLSCA != "" && !r.TLS, "redis.tls_ca", "is of no use without redis.tls")
	found.when(r.TLSCert != "" && !r.TLS, "redis.tls_cert", "is of no use without redis.tls")
	found.when(r.TLSKey != "" && !r.TLS, "redis.tls_key", "is of no use without redis.tls")
	found.apart("redis.tls_cert", r.TLSCert != "", "redis.tls_key", r.TLSKey != "")
	found.when(c.Kafka.TLSCA != "" && !c.Kafka.TLS, "kafka.tls_ca", "is of no use without kafka.tls")
	found.when(c.RocketMQ.TLSCA != "" && !c.RocketMQ.TLS, "rocketmq.tls_ca", "is of no use without rocketmq.tls")
	found.when(c.Pulsar.TLSCA != "" && !strings.HasPrefix(c.Pulsar.URL, pulsarTLS), "pulsar.tls_ca", "is of no use unless pulsar.url begins with pulsar+ssl://")
	if c.Store.TLSCA == "" {
		return found.err()
	}
	found.when(!strings.HasPrefix(string(c.Store.DSN), mysqlScheme), "store.tls_ca", "is of no use without MySQL in store.dsn")
	if address, err := c.Store.DSN.mysql(); err == nil { // else it is said of store.dsn
		mode := address.TLSConfig
		found.when(address.Net == "unix", "store.tls_ca", "is of no use with a unix socket in store.dsn")
		found.when(mode != "" && mode != "true", "store.tls_ca", "contradicts tls=%s in store.dsn, which checks nobody: take one of them away", mode)
	}
	return found.err()
}

// uncheckedStore is the tls= of a MySQL address that encrypts and believes
// anybody; "" for any other address.
func (c *Config) uncheckedStore() string {
	address, err := c.Store.DSN.mysql()
	if err == nil && (address.TLSConfig == "skip-verify" || address.TLSConfig == "preferred") {
		return address.TLSConfig
	}
	return ""
}
