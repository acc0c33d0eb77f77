// Package kafkaclient connects to Kafka for the carrier and for sinks. It signs
// in, and checks, watches and writes one topic.
//
//   - link.go: connection; topic.go: writes; describe.go: checks of the topic
//   - ask.go: requests with a deadline; error.go: errors in plain words
package kafkaclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// The supported SASL mechanisms.
const (
	SASLNone   = "none"
	SASLPlain  = "plain"
	SASLSHA256 = "scram-sha-256"
	SASLSHA512 = "scram-sha-512"
)

// Bounds of every client.
const (
	dialTimeout = 3 * time.Second
	// answerTimeout is the time for a broker's answer, in addition to the wait
	// that the request contains. After it the connection is closed.
	answerTimeout = 5 * time.Second
	minBackoff    = 100 * time.Millisecond
	maxBackoff    = time.Second
	// metadataMinAge is short, so that a client finds a new leader soon.
	metadataMinAge = 500 * time.Millisecond
	metadataMaxAge = 30 * time.Second
	clientID       = "seckill"
)

// Options say where Kafka is and how to sign in.
type Options struct {
	Brokers []string // one or more brokers of the cluster, HOST:PORT
	// TLS is nil for plain text. It has no server name: the certificate of each
	// broker is checked for its own host.
	TLS      *tls.Config
	SASL     string // one of the SASL constants; "" means SASLNone
	Username string
	Password string
}

// NewClient makes a client. It connects when it is used, and retries by itself.
// Its log lines have level debug, because callers report the important errors.
func (o Options) NewClient(log *slog.Logger, options ...kgo.Opt) (*kgo.Client, error) {
	all := []kgo.Opt{
		kgo.SeedBrokers(o.Brokers...), kgo.ClientID(clientID), kgo.WithLogger(quietLogger{log}),
		kgo.DialTimeout(dialTimeout), kgo.RequestTimeoutOverhead(answerTimeout), kgo.RetryBackoffFn(backoff),
		kgo.MetadataMinAge(metadataMinAge), kgo.MetadataMaxAge(metadataMaxAge), kgo.DisableClientMetrics(),
		// A broker that starts or stops closes connections at once. Open
		// reports this as a possible mistake in the settings; later it is an
		// outage.
		kgo.AlwaysRetryEOF(),
	}
	if o.TLS != nil {
		all = append(all, kgo.DialTLSConfig(o.TLS))
	}
	mechanism, err := o.mechanism()
	if err != nil {
		return nil, err
	}
	if mechanism != nil {
		all = append(all, kgo.SASL(mechanism))
	}
	client, err := kgo.NewClient(append(all, options...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: make a client: %w", err)
	}
	return client, nil
}

func (o Options) mechanism() (sasl.Mechanism, error) {
	switch o.SASL {
	case "", SASLNone:
		return nil, nil
	case SASLPlain:
		return plain.Auth{User: o.Username, Pass: o.Password}.AsMechanism(), nil
	case SASLSHA256:
		return scram.Auth{User: o.Username, Pass: o.Password}.AsSha256Mechanism(), nil
	case SASLSHA512:
		return scram.Auth{User: o.Username, Pass: o.Password}.AsSha512Mechanism(), nil
	}
	return nil, fmt.Errorf("kafka: SASL mechanism %q is not known", o.SASL)
}

// backoff doubles from minBackoff to maxBackoff.
func backoff(fails int) time.Duration {
	const doublings = 4 // 100 ms to more than 1 s
	return min(minBackoff<<max(0, min(fails-1, doublings)), maxBackoff)
}

// quietLogger logs the client's lines with level debug.
type quietLogger struct{ log *slog.Logger }

func (q quietLogger) Level() kgo.LogLevel {
	if q.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelNone
}

func (q quietLogger) Log(_ kgo.LogLevel, text string, pairs ...any) {
	q.log.Debug("kafka client: "+text, pairs...)
}
