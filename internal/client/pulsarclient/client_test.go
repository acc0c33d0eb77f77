package pulsarclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

func TestIsSetup(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("connection error"), false},
		{context.DeadlineExceeded, false},
		{serverError{6, "not now"}, false},
		{serverError{codeAuthorization, "no"}, true},
		{fmt.Errorf("open: %w", serverError{codeTopicNotFound, ""}), true},
		{fmt.Errorf("no broker is reachable: %w", &tls.CertificateVerificationError{Err: errors.New("unknown authority")}), true},
		{fmt.Errorf("no broker is reachable: %w", &net.OpError{Op: "remote error", Err: errors.New("bad certificate")}), true},
	} {
		if IsSetup(c.err) != c.want {
			t.Errorf("%v: want %v", c.err, c.want)
		}
	}
	missing := error(serverError{codeTopicNotFound, "x"})
	if !errors.Is(missing, ErrNoTopic) || !strings.Contains(missing.Error(), "does not exist") {
		t.Errorf("a missing topic is %v", missing)
	}
}

func TestOpenTopic_NamesAMissingTopicOnce(t *testing.T) {
	for text, end := range map[string]string{"": ErrNoTopic.Error(), "gone": ErrNoTopic.Error() + ": gone"} {
		fake := newFake(t, func(c *fakeConn, s command) bool {
			if s.kind == kindPartitions {
				c.say(kindPartitionsReply, fields(nil).number(2, s.number(2)).number(3, lookupFailed).number(4, uint64(codeTopicNotFound)).text(5, text))
			}
			return s.kind == kindPartitions
		})
		_, err := newTestClient(t, Options{Addresses: []string{fake.address}}).OpenTopic(within(t), "topic")
		if want := "open topic persistent://public/default/topic: pulsar: " + end; err == nil || err.Error() != want {
			t.Errorf("error: %v\nwant: %s", err, want)
		}
	}
}

func TestOwner_FollowsRedirects(t *testing.T) {
	last := newFake(t, nil)
	first := newFake(t, func(c *fakeConn, s command) bool {
		if s.kind == kindLookup {
			c.say(kindLookupReply, fields(nil).text(1, "pulsar://"+last.address).number(3, lookupRedirect).number(4, s.number(2)).flag(5, true))
		}
		return s.kind == kindLookup
	})
	topic := openTestTopic(t, newTestClient(t, Options{Addresses: []string{first.address}}))
	if err := topic.Write(within(t), []Outgoing{{Key: "k", Body: []byte("b")}}); err != nil {
		t.Fatal(err)
	}
	if asked := last.await(kindLookup, 1); asked.number(3) != 1 {
		t.Error("the lookup at the second broker is not authoritative")
	}
	last.await(kindSend, 1)
}

func TestOwner_StopsARedirectLoop(t *testing.T) {
	b := newFake(t, func(c *fakeConn, s command) bool {
		if s.kind == kindLookup {
			c.say(kindLookupReply, fields(nil).text(1, "pulsar://"+c.of.address).number(3, lookupRedirect).number(4, s.number(2)))
		}
		return s.kind == kindLookup
	})
	c := newTestClient(t, Options{Addresses: []string{b.address}})
	if _, err := c.owner(within(t), "topic"); err == nil || !strings.Contains(err.Error(), "redirect the lookup") {
		t.Errorf("%v", err)
	}
}

func TestOwner_ConnectsThroughTheProxy(t *testing.T) {
	const hidden = "10.0.0.1:6650"
	proxy := newFake(t, func(c *fakeConn, s command) bool {
		if s.kind == kindLookup {
			c.say(kindLookupReply, fields(nil).text(1, "pulsar://"+hidden).number(3, lookupConnect).number(4, s.number(2)).flag(8, true))
		}
		return s.kind == kindLookup
	})
	openTestTopic(t, newTestClient(t, Options{Addresses: []string{proxy.address}}))
	if first := proxy.await(kindConnect, 1).text(6); first != "" {
		t.Errorf("the first connection wants %q", first)
	}
	if second := proxy.await(kindConnect, 2).text(6); second != hidden {
		t.Errorf("the second connection wants %q", second)
	}
}

func TestGreet_AnswersChallenges(t *testing.T) {
	b := newFake(t, func(c *fakeConn, s command) bool {
		switch s.kind {
		case kindConnect: // another challenge comes after sign-in, when the token is old
			c.say(kindAuthChallenge, fields(nil).text(1, "fake"))
		case kindAuthResponse:
			c.defaultAnswer(command{kind: kindConnect})
		case kindPartitions:
			c.say(kindAuthChallenge, fields(nil).text(1, "fake"))
			return false
		default:
			return false
		}
		return true
	})
	c := newTestClient(t, Options{Addresses: []string{b.address}, Token: "secret"})
	if _, err := c.partitions(within(t), "topic"); err != nil {
		t.Fatal(err)
	}
	if connect := b.await(kindConnect, 1); connect.text(3) != "secret" || connect.text(5) != "token" {
		t.Errorf("signed in with %q by %q", connect.text(3), connect.text(5))
	}
	for i := range 2 {
		if data := b.await(kindAuthResponse, i+1).text(2); !strings.Contains(data, "secret") {
			t.Errorf("answer %d is %q", i+1, data)
		}
	}
}

func TestConn_SilentBrokerIsGivenUp(t *testing.T) {
	b := newFake(t, func(_ *fakeConn, s command) bool { return s.kind == kindPing || s.kind == kindPartitions })
	c := newTestClient(t, Options{Addresses: []string{b.address}})
	c.keepAlive = 20 * time.Millisecond
	n, err := c.anyBroker(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.partitions(within(t), "topic"); !errors.Is(err, errSilent) {
		t.Errorf("a request to a silent broker: %v", err)
	}
	select {
	case <-n.done:
	case <-within(t).Done():
		t.Error("the connection is still open")
	}
}
