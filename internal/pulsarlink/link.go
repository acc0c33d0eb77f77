// Package pulsarlink reaches Pulsar for the carrier and for sinks: connection,
// sign-in, and one topic that is checked, watched and written.
//
// The client library ignores contexts in most calls, and keeps some facts to
// its log. Call bounds the calls; news reads the log.
package pulsarlink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"
	"github.com/prometheus/client_golang/prometheus"
)

// Bounds of every client.
const (
	dialTimeout = 3 * time.Second
	// tryTimeout bounds the look for an address that takes connections.
	tryTimeout = time.Second
	// operationTimeout bounds one request of the client, with the tries to connect
	// that it may take. A broker that creates a topic takes seconds.
	operationTimeout = 6 * time.Second
	// keepAlive is how often the client pings. A broker that is silent for two to
	// three times as long has its connection closed.
	keepAlive  = 5 * time.Second
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Second
	// NeverDiscover stops the client from looking for new partitions by itself. It
	// leaks consumers when there are fewer; Topic looks instead.
	NeverDiscover = 1000 * time.Hour
	// defaultMaxMessage is Pulsar's own default of maxMessageSize.
	defaultMaxMessage = 5 << 20
)

// Options say where Pulsar is and how to sign in.
type Options struct {
	URL   string // pulsar://HOST:PORT or pulsar+ssl://HOST:PORT, or several HOST:PORT with commas
	Token string // a JWT; "" if the broker asks for none
	// CAFile has the authorities that certificates are checked against; "" is the
	// system's. Each broker is checked by its own host.
	CAFile string
}

// Client is a connection to Pulsar that is made when it is used, and again when
// it was lost.
type Client struct {
	pulsar.Client
	news *news
}

// NewClient makes a client.
func (o Options) NewClient(log *slog.Logger) (*Client, error) {
	spoken, err := o.tls()
	if err != nil {
		return nil, settingError{err}
	}
	heard := newNews()
	options := pulsar.ClientOptions{
		URL: o.URL, TLSConfig: spoken,
		ConnectionTimeout: dialTimeout, OperationTimeout: operationTimeout, KeepAliveInterval: keepAlive,
		Logger: clientLog{log: log, news: heard},
		// The engine has metrics of its own.
		MetricsRegisterer: prometheus.NewRegistry(), MetricsCardinality: pulsar.MetricsCardinalityNone,
		MemoryLimitBytes: -1, // Topic bounds what is on the way
	}
	if o.Token != "" {
		options.Authentication = pulsar.NewAuthenticationToken(o.Token)
	}
	inner, err := pulsar.NewClient(options)
	if err != nil {
		return nil, settingError{fmt.Errorf("pulsar: make a client: %w", err)}
	}
	return &Client{inner, heard}, nil
}

// Abandon closes the client and does not wait for it. The library may take some
// seconds.
func (c *Client) Abandon() { go c.Client.Close() }

// Explain is the function Explain with the reason for which the client has no connection, as
// far as its log tells. The error may be nil.
func (c *Client) Explain(err error) error {
	c.news.mu.Lock()
	trouble := c.news.trouble
	c.news.mu.Unlock()
	switch {
	case trouble == nil:
		return Explain(err)
	case err == nil:
		return fmt.Errorf("pulsar: %w", trouble)
	}
	return fmt.Errorf("pulsar: %w (%w)", trouble, err)
}

// maxMessage is the broker's limit.
func (c *Client) maxMessage() int {
	c.news.mu.Lock()
	defer c.news.mu.Unlock()
	if c.news.maxMessage == 0 {
		return defaultMaxMessage
	}
	return c.news.maxMessage
}

// Reachable are the options with one address that takes connections. With more
// than one, the library may go to one that is down each time: it asks one
// address for the topic, and connects through the next if Pulsar has proxies.
func (o Options) Reachable(ctx context.Context) Options {
	scheme, rest, _ := strings.Cut(o.URL, "://")
	addresses := strings.Split(strings.TrimSuffix(rest, "/"), ",")
	if len(addresses) == 1 {
		return o
	}
	dialer := net.Dialer{Timeout: tryTimeout}
	for _, i := range rand.Perm(len(addresses)) {
		conn, err := dialer.DialContext(ctx, "tcp", addresses[i])
		if err == nil {
			_ = conn.Close() // it was only a try
			o.URL = scheme + "://" + addresses[i]
			break
		}
	}
	return o
}

// tls is nil for plain.
func (o Options) tls() (*tls.Config, error) {
	if !strings.HasPrefix(o.URL, "pulsar+ssl://") {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("pulsar: read the authorities: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("pulsar: %s has no certificate", o.CAFile)
	}
	return config, nil
}

// FullName is a topic's name with its namespace. A name without a slash is one
// of public/default.
func FullName(topic string) (string, error) {
	const scheme = "persistent://"
	switch {
	case strings.HasPrefix(topic, scheme):
		return topic, nil
	case strings.Contains(topic, "://"):
		return "", settingError{fmt.Errorf("pulsar: topic %s is not persistent, it would lose messages", topic)}
	case strings.Contains(topic, "/"):
		return scheme + topic, nil
	}
	return scheme + "public/default/" + topic, nil
}

// Backoff is how long clients wait before they connect again: from minBackoff to
// maxBackoff. The library's own goes up to a minute.
func Backoff() backoff.Policy { return &steps{} }

type steps struct{ last time.Duration }

func (s *steps) Next() time.Duration {
	s.last = min(max(2*s.last, minBackoff), maxBackoff)
	return s.last
}

func (s *steps) IsMaxBackoffReached() bool { return s.last == maxBackoff }

func (s *steps) Reset() { s.last = 0 }

// Call runs a call that ignores contexts, and returns when it is done or ctx
// ends. A result that comes after that goes to late, which may be nil.
func Call[T any](ctx context.Context, call func() (T, error), late func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		value, err := call()
		results <- result{value, err}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		if late != nil {
			go func() {
				if r := <-results; r.err == nil {
					late(r.value)
				}
			}()
		}
		var none T
		return none, ctx.Err()
	}
}

// Do is Call for a call without a result.
func Do(ctx context.Context, call func()) error {
	_, err := Call(ctx, func() (struct{}, error) {
		call()
		return struct{}{}, nil
	}, nil)
	return err
}
