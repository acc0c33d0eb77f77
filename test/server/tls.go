package server

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"

	"seckill/test/certificate"
)

// TLS has the TLS settings of a server that accepts only TLS; nil means plain.
// Clients need a certificate of the same authority unless Anyone is set.
type TLS struct {
	certificate.Pair
	Anyone bool
}

// redisSettings makes a redis-server or redis-sentinel listen with TLS only,
// and use TLS to its peers.
func (o *TLS) redisSettings(port string) []string {
	if o == nil {
		return []string{"--port", port}
	}
	clients := "yes"
	if o.Anyone {
		clients = "no"
	}
	return []string{
		"--port", "0", "--tls-port", port, "--tls-replication", "yes", "--tls-cluster", "yes",
		"--tls-ca-cert-file", o.CAFile, "--tls-cert-file", o.CertFile, "--tls-key-file", o.KeyFile, "--tls-auth-clients", clients,
	}
}

// mariaSettings makes mariadbd refuse plain connections. Client certificates
// are a setting of each account.
func (o *TLS) mariaSettings() []string {
	if o == nil {
		return nil
	}
	return []string{"--ssl-ca=" + o.CAFile, "--ssl-cert=" + o.CertFile, "--ssl-key=" + o.KeyFile, "--require-secure-transport=ON"}
}

// mariaOption is the DSN option of the tests' own connections. They do not
// verify the server's certificate, because the engine's verification is tested.
func (o *TLS) mariaOption() string {
	if o == nil {
		return ""
	}
	return "?tls=skip-verify"
}

// dial connects for a test, with the server's certificate as its own, and does
// not verify the server.
func (o *TLS) dial(ctx context.Context, address string) (net.Conn, error) {
	if o == nil {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", address)
	}
	own, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{own}}}
	return dialer.DialContext(ctx, "tcp", address)
}

// kafkaSettings makes a Kafka use TLS on its TLS listeners. Kafka reads the key
// and its certificate from one file, which kafkaSettings writes to dir.
func (o *TLS) kafkaSettings(dir string) ([]string, error) {
	if o == nil {
		return nil, nil
	}
	key, err := os.ReadFile(o.KeyFile)
	if err != nil {
		return nil, err
	}
	cert, err := os.ReadFile(o.CertFile)
	if err != nil {
		return nil, err
	}
	own := filepath.Join(dir, "kafka.pem")
	if err := os.WriteFile(own, append(key, cert...), 0o600); err != nil {
		return nil, err
	}
	clients := "required"
	if o.Anyone {
		clients = "none"
	}
	return []string{
		"ssl.keystore.type=PEM", "ssl.keystore.location=" + own,
		"ssl.truststore.type=PEM", "ssl.truststore.location=" + o.CAFile, "ssl.client.auth=" + clients,
	}, nil
}
