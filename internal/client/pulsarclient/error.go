package pulsarclient

import (
	"errors"
	"fmt"

	"seckill/internal/background"
)

var (
	// ErrNoTopic says that the topic does not exist, and that the broker does
	// not create it by itself.
	ErrNoTopic = errors.New("the topic or its namespace does not exist; create it, or have the broker create topics")
	// ErrTooLarge says that a message is larger than the broker accepts.
	// Nothing was written.
	ErrTooLarge = errors.New("pulsar: message is larger than the broker takes")

	errPartitions = errors.New("it has too many partitions")

	errSignIn          = errors.New("sign-in was refused, check the token")
	errClosed          = errors.New("pulsar: closed")
	errLost            = errors.New("pulsar: the connection was lost")
	errSlow            = errors.New("pulsar: the broker did not store the messages in time")
	errSilent          = errors.New("pulsar: the broker is silent")
	errOtherPartitions = errors.New("pulsar: the topic has other partitions now")
	errClosedByBroker  = errors.New("pulsar: the broker closed it; another broker may own the topic now")
	errPermitsUnknown  = errors.New("pulsar: the batch size of a message makes the number of permits unknown")
	errNoRoom          = errors.New("pulsar: received more messages than there is room for")
)

// code is a ServerError code of the protocol.
type code uint64

const (
	codeAuthentication code = 3
	codeAuthorization  code = 4
	codeConsumerBusy   code = 5
	codeVersion        code = 10
	codeTopicNotFound  code = 11
	codeTerminated     code = 15
	codeTopicName      code = 17
	codeSchema         code = 18
)

// refusals are the server errors that remain until an operator changes the
// settings or the broker.
var refusals = map[code]error{
	codeAuthentication: errSignIn,
	codeAuthorization:  errors.New("the token's role has no rights"),
	codeTopicNotFound:  ErrNoTopic,
	codeTerminated:     errors.New("the topic was terminated and takes no more messages"),
	codeConsumerBusy:   errors.New("the subscription is in use with another type"),
	codeTopicName:      errors.New("the topic's name is not valid"),
	codeSchema:         errors.New("the topic has a schema, messages have none"),
	codeVersion:        errors.New("the broker is too old"),
}

// serverError is an error answer of a broker.
type serverError struct {
	code code
	text string
}

func (e serverError) Error() string {
	said := fmt.Sprintf("the broker refused with error %d", e.code)
	if why := refusals[e.code]; why != nil {
		said = why.Error()
	}
	if e.text == "" { // brokers send no text with some codes
		return "pulsar: " + said
	}
	return "pulsar: " + said + ": " + e.text
}

func (e serverError) Unwrap() error { return refusals[e.code] }

// IsSetup reports whether a retry would not help, because an operator must
// change the settings or the broker.
func IsSetup(err error) bool {
	var server serverError
	return errors.Is(err, errPartitions) || background.CertificateRefused(err) || errors.As(err, &server) && refusals[server.code] != nil
}

// isRefusedHere reports whether every other address would refuse too.
func isRefusedHere(err error) bool {
	return errors.Is(err, errSignIn) || background.CertificateRefused(err)
}
