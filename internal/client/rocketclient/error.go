package rocketclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var (
	// ErrSetup says that an operator has to change the settings or the broker.
	ErrSetup = errors.New("rocketmq: setup")
	// ErrTooLarge says that a message is larger than the broker accepts.
	ErrTooLarge = errors.New("rocketmq: message is larger than the broker takes")
	// ErrExpired says that a receipt is no longer valid: the message is
	// settled, or the broker has given it to another receiver.
	ErrExpired = errors.New("rocketmq: receipt has expired")

	errClosed = errors.New("rocketmq: closed")
	// errNothing says that a poll ended without a message.
	errNothing = errors.New("rocketmq: no message")
)

// refusal is an answer of a proxy other than OK.
type refusal struct {
	code v2.Code
	text string
}

func (r *refusal) Error() string { return fmt.Sprintf("%s (%s)", r.text, r.code) }

// Refused reports whether a proxy has answered with a refusal. Other errors are
// an outage.
func Refused(err error) bool {
	var r *refusal
	return errors.As(err, &r)
}

// explained maps codes to errors that callers check.
var explained = map[v2.Code]struct {
	is   error
	text string
}{
	v2.Code_TOPIC_NOT_FOUND:                     {ErrSetup, "the topic does not exist: create it"},
	v2.Code_ILLEGAL_TOPIC:                       {ErrSetup, "the topic's name is not allowed"},
	v2.Code_CONSUMER_GROUP_NOT_FOUND:            {ErrSetup, "the group does not exist: create it"},
	v2.Code_ILLEGAL_CONSUMER_GROUP:              {ErrSetup, "the group's name is not allowed"},
	v2.Code_UNAUTHORIZED:                        {ErrSetup, "sign-in was refused, check access key and secret key"},
	v2.Code_FORBIDDEN:                           {ErrSetup, "the account has no rights"},
	v2.Code_MESSAGE_PROPERTY_CONFLICT_WITH_TYPE: {ErrSetup, "the topic is of another message type"},
	v2.Code_MESSAGE_BODY_TOO_LARGE:              {ErrTooLarge, ""},
	v2.Code_MESSAGE_PROPERTIES_TOO_LARGE:        {ErrTooLarge, ""},
	v2.Code_INVALID_RECEIPT_HANDLE:              {ErrExpired, ""},
	v2.Code_MESSAGE_NOT_FOUND:                   {errNothing, ""},
}

// noGroup begins a broker's error text for an unknown group. Proxies pass it on
// without a code.
const noGroup = "subscription group ["

// refused returns nil for OK.
func refused(s *v2.Status) error {
	if s.GetCode() == v2.Code_OK {
		return nil
	}
	text, _, _ := strings.Cut(s.GetMessage(), "\n") // further lines are hints for Java programmers
	err := &refusal{s.GetCode(), text}
	if err.code == v2.Code_INTERNAL_SERVER_ERROR && strings.Contains(text, noGroup) {
		err.code = v2.Code_CONSUMER_GROUP_NOT_FOUND
	}
	known, ok := explained[err.code]
	switch {
	case !ok:
		return fmt.Errorf("rocketmq: %w", err)
	case known.text == "":
		return fmt.Errorf("%w: %w", known.is, err)
	}
	return fmt.Errorf("%w: %s: %w", known.is, known.text, err)
}

// explain adds plain words to a gRPC error. If the caller's context has ended,
// it returns the error of the context.
func explain(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("rocketmq: wait for the broker: %w", ctx.Err())
	}
	switch status.Code(err) {
	case codes.Unavailable:
		return fmt.Errorf("rocketmq: no proxy is reachable: %w", err)
	case codes.DeadlineExceeded:
		return fmt.Errorf("rocketmq: the broker does not answer: %w", err)
	case codes.Unauthenticated:
		return fmt.Errorf("%w: sign-in was refused, check access key and secret key: %w", ErrSetup, err)
	case codes.PermissionDenied:
		return fmt.Errorf("%w: the account has no rights: %w", ErrSetup, err)
	}
	return fmt.Errorf("rocketmq: %w", err)
}

// outage reports whether another broker might accept the message.
func outage(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}
