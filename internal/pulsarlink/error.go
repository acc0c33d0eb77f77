package pulsarlink

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"
)

var (
	// ErrNoTopic says that the topic does not exist and that the broker does not
	// create it by itself.
	ErrNoTopic = errors.New("the topic or its namespace does not exist; create it, or have the broker create topics")
	// ErrTooLarge says that a message is larger than the broker takes. Nothing was
	// written.
	ErrTooLarge = errors.New("pulsar: message is larger than the broker takes")

	errSignIn = errors.New("sign-in was refused, check the token")
	errClosed = errors.New("pulsar: closed")
	errLost   = errors.New("pulsar: the connection was lost before the broker had stored the messages")
)

// settingError says that the options cannot be used.
type settingError struct{ error }

func (e settingError) Unwrap() error { return e.error }

// refusals are the server's errors that stay until somebody changes the settings
// or the broker. The library has them as parts of texts only.
var refusals = []struct {
	name string
	why  error
}{
	{"AuthenticationError", errSignIn},
	{"AuthorizationError", errors.New("the token's role has no rights")},
	{"TopicNotFound", ErrNoTopic},
	{"TopicTerminatedError", errors.New("the topic was terminated and takes no more messages")},
	{"ConsumerBusy", errors.New("the subscription is in use with another type")},
	{"InvalidTopicName", errors.New("the topic's name is not valid")},
	{"IncompatibleSchema", errors.New("the topic has a schema, messages have none")},
	{"UnsupportedVersionError", errors.New("the broker is too old")},
}

// refusal is the plain text of a server's error that stays.
func refusal(err error) error {
	for _, r := range refusals {
		if strings.Contains(err.Error(), r.name) {
			return r.why
		}
	}
	return nil
}

// Explain puts a plain text before an error of the client.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	var known *pulsar.Error
	why := refusal(err)
	switch {
	case strings.HasPrefix(err.Error(), "pulsar: "):
		return err
	case why != nil:
	case errors.As(err, &known) && known.Result() == pulsar.TimeoutError:
		why = errors.New("the broker did not store the messages in time")
	case errors.As(err, &known) && known.Result() == pulsar.ProducerClosed:
		return errLost
	default:
		return fmt.Errorf("pulsar: %w", err)
	}
	return fmt.Errorf("pulsar: %w: %w", why, err)
}

// IsSetup reports whether to try again would not help: somebody must change the
// settings or the broker.
func IsSetup(err error) bool {
	if err == nil {
		return false
	}
	var setting settingError
	return errors.As(err, &setting) || permanent(err) || refusal(err) != nil
}

// permanent is for errors of connections.
func permanent(err error) bool { return errors.Is(err, errSignIn) || untrusted(err) }

// untrusted reports whether one side does not believe the other's certificate.
func untrusted(err error) bool {
	var verify *tls.CertificateVerificationError
	if errors.As(err, &verify) {
		return true
	}
	for said := (*net.OpError)(nil); errors.As(err, &said); err = said.Err {
		if said.Op == "remote error" { // crypto/tls: the broker refused our certificate
			return true
		}
	}
	return false
}
