package rocketclient

import (
	"errors"
	"strings"
	"testing"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

func TestOptions_Endpoints(t *testing.T) {
	for _, c := range []struct {
		text, want string
		scheme     v2.AddressScheme
	}{
		{"10.0.0.1:8081", "10.0.0.1:8081", v2.AddressScheme_IPv4},
		{"[::1]:8081", "[::1]:8081", v2.AddressScheme_IPv6},
		{"mq-1:8081", "mq-1:8081", v2.AddressScheme_DOMAIN_NAME},
	} {
		link := Options{Endpoint: c.text}
		if got := link.endpoints(); nameOf(got) != c.want || got.GetScheme() != c.scheme {
			t.Errorf("%q: %q, %s", c.text, nameOf(got), got.GetScheme())
		}
	}
}

func TestRefused_ReturnsErrorsThatCallersCheck(t *testing.T) {
	if err := refused(&v2.Status{Code: v2.Code_OK}); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		code v2.Code
		text string
		want error
	}{
		{v2.Code_TOPIC_NOT_FOUND, "", ErrSetup},
		{v2.Code_UNAUTHORIZED, "", ErrSetup},
		{v2.Code_INTERNAL_SERVER_ERROR, "ProxyException: subscription group [g] does not exist,\nSee https://example.com", ErrSetup},
		{v2.Code_MESSAGE_BODY_TOO_LARGE, "", ErrTooLarge},
		{v2.Code_INVALID_RECEIPT_HANDLE, "", ErrExpired},
	} {
		err := refused(&v2.Status{Code: c.code, Message: c.text})
		if !errors.Is(err, c.want) || !Refused(err) || strings.Contains(err.Error(), "example.com") {
			t.Errorf("%s: %v", c.code, err)
		}
	}
	err := refused(&v2.Status{Code: v2.Code_INTERNAL_SERVER_ERROR, Message: "out of luck"})
	if errors.Is(err, ErrSetup) || !Refused(err) {
		t.Errorf("an unknown refusal: %v", err)
	}
}

func TestRole_FindsTheTypeOfATopic(t *testing.T) {
	sink := Role{Types: []Type{FIFO, Normal}}
	for _, c := range []struct {
		accepted []v2.MessageType
		want     Type
		fits     bool
	}{
		{[]v2.MessageType{v2.MessageType_NORMAL}, Normal, true},
		{[]v2.MessageType{v2.MessageType_NORMAL, v2.MessageType_FIFO}, FIFO, true},
		{[]v2.MessageType{v2.MessageType_DELAY}, "", false},
		{nil, FIFO, true},
	} {
		if got, fits := sink.fits(c.accepted); fits != c.fits || fits && got != c.want {
			t.Errorf("%v: %s, %v", c.accepted, got, fits)
		}
	}
}
