package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
)

// TLSConfig returns the TLS settings for Redis, or nil without redis.tls. The
// certificate is checked against the dialled host. For a node that a Cluster or a
// Sentinel named, that is the node's host.
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
	// The certificate is read for each connection (there are few), so that a renewed
	// one is used without a restart.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own() }
	return config, nil
}

// TLSConfig returns the TLS settings for MySQL with store.tls_ca, or nil. With nil,
// tls= in store.dsn decides.
func (s Store) TLSConfig() (*tls.Config, error) {
	if s.TLSCA == "" {
		return nil, nil
	}
	return trusting("store.tls_ca", s.TLSCA)
}

// trusting returns a configuration that trusts the authorities in a file, or the
// system's without a file.
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

// readPair reads a certificate and its key, and checks that they belong together.
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

// checkClientTLS refuses TLS files that would be ignored. With one, an operator
// would believe that the server's certificate is checked.
func (c *Config) checkClientTLS() error {
	var found findings
	r := &c.Redis
	found.when(r.TLSCA != "" && !r.TLS, "redis.tls_ca", "has no effect without redis.tls")
	found.when(r.TLSCert != "" && !r.TLS, "redis.tls_cert", "has no effect without redis.tls")
	found.when(r.TLSKey != "" && !r.TLS, "redis.tls_key", "has no effect without redis.tls")
	found.apart("redis.tls_cert", r.TLSCert != "", "redis.tls_key", r.TLSKey != "")
	found.when(c.Kafka.TLSCA != "" && !c.Kafka.TLS, "kafka.tls_ca", "has no effect without kafka.tls")
	found.when(c.RocketMQ.TLSCA != "" && !c.RocketMQ.TLS, "rocketmq.tls_ca", "has no effect without rocketmq.tls")
	found.when(c.Pulsar.TLSCA != "" && !strings.HasPrefix(c.Pulsar.URL, pulsarTLS), "pulsar.tls_ca", "has no effect unless pulsar.url begins with pulsar+ssl://")
	if c.Store.TLSCA == "" {
		return found.err()
	}
	found.when(!strings.HasPrefix(string(c.Store.DSN), mysqlScheme), "store.tls_ca", "has no effect without MySQL in store.dsn")
	if address, err := c.Store.DSN.mysql(); err == nil { // otherwise store.dsn has its own error
		mode := address.TLSConfig
		found.when(address.Net == "unix", "store.tls_ca", "has no effect with a unix socket in store.dsn")
		found.when(mode != "" && mode != "true", "store.tls_ca", "contradicts tls=%s in store.dsn, which checks no certificate: remove one of them", mode)
	}
	return found.err()
}

// uncheckedStore returns the tls= of a MySQL address that encrypts without checking
// the certificate, or "".
func (c *Config) uncheckedStore() string {
	address, err := c.Store.DSN.mysql()
	if err == nil && (address.TLSConfig == "skip-verify" || address.TLSConfig == "preferred") {
		return address.TLSConfig
	}
	return ""
}
