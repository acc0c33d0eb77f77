package kafkaclient

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"seckill/internal/background"
)

// ErrNoTopic says that the topic does not exist.
var ErrNoTopic = errors.New("does not exist: create it, or set kafka.create_topic")

// ErrCompressed says that the broker would compress records that must stay
// uncompressed.
var ErrCompressed = errors.New("the engine does not read compressed messages: set compression.type=producer on the topic")

// errClosed is the error of calls after Close.
var errClosed = errors.New("kafka: closed")

// Explain adds a plain text to a known error of the client.
func Explain(err error) error {
	text := ""
	var dial *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		return fmt.Errorf("kafka: the topic %w: %w", ErrNoTopic, err)
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		text = "sign-in was refused: check kafka.username and kafka.password"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		text = "the broker does not offer this mechanism: check kafka.sasl"
	case errors.Is(err, kerr.IllegalSaslState):
		text = "the broker asks for no sign-in at this address: check kafka.sasl and kafka.brokers"
	case errors.Is(err, kerr.InvalidReplicationFactor):
		text = "the cluster has fewer brokers than the topic would have replicas: check kafka.replicas"
	case forbidden(err):
		text = "the user has no rights"
	case background.CertificateRefused(err):
		text = "the broker's certificate is not trusted"
	case isFirstEOF(err):
		text = "the broker closed the connection at once: check kafka.tls and kafka.sasl"
	case errors.As(err, &dial) && dial.Op == "dial":
		text = "no broker is reachable"
	case errors.Is(err, kgo.ErrRecordTimeout):
		text = "the broker did not store the records in time"
	case errors.Is(err, context.DeadlineExceeded):
		text = "the broker does not answer"
	case errors.Is(err, kgo.ErrClientClosed):
		return errClosed
	default:
		return fmt.Errorf("kafka: %w", err)
	}
	return fmt.Errorf("kafka: %s: %w", text, err)
}

// Permanent reports whether a retry would not help, because an operator must
// change the settings or the broker.
func Permanent(err error) bool {
	for _, p := range []error{
		ErrNoTopic, ErrCompressed, kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState,
		kerr.InvalidTopicException, kerr.InvalidPartitions, kerr.InvalidReplicationFactor, kerr.PolicyViolation, kgo.ErrClientClosed,
	} {
		if errors.Is(err, p) {
			return true
		}
	}
	return forbidden(err) || background.CertificateRefused(err)
}

func forbidden(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.GroupAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}

func isFirstEOF(err error) bool {
	var eof *kgo.ErrFirstReadEOF
	return errors.As(err, &eof)
}

// isEnded reports whether an error comes from a context.
func isEnded(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
