package pulsarlink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func TestFullName(t *testing.T) {
	for name, want := range map[string]string{
		"orders":                       "persistent://public/default/orders",
		"shop/sales/orders":            "persistent://shop/sales/orders",
		"persistent://shop/sales/cart": "persistent://shop/sales/cart",
		"non-persistent://shop/s/o":    "",
	} {
		got, err := FullName(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err != nil && !IsSetup(err) {
			t.Errorf("%s: %v is a wrong setting", name, err)
		}
	}
}

func TestIsSetup(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("connection error"), false},
		{context.DeadlineExceeded, false},
		{errors.New("server error: ServiceNotReady: not now"), false},
		{errors.New("server error: AuthorizationError: no"), true},
		{fmt.Errorf("open: %w", Explain(errors.New("TopicNotFound"))), true},
		{fmt.Errorf("no broker is reachable: %w", &tls.CertificateVerificationError{Err: errors.New("unknown authority")}), true},
		{fmt.Errorf("pulsar: %w: no", errSignIn), true},
	} {
		if IsSetup(c.err) != c.want {
			t.Errorf("%v: want %v", c.err, c.want)
		}
	}
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{pulsar.ErrSendTimeout, "did not store the messages in time"},
		{pulsar.ErrProducerClosed, "connection was lost"},
		{errors.New("server error: ConsumerBusy: different type"), "pulsar: the subscription is in use with another type"},
		{errors.New("other"), "pulsar: other"},
	} {
		if got := Explain(c.err); !strings.Contains(got.Error(), c.want) {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

func TestClientLog_TellsWhatTheClientDoesNot(t *testing.T) {
	n := newNews()
	log := clientLog{log: slog.New(slog.DiscardHandler), news: n}.SubLogger(map[string]any{"remote_addr": "x"})
	refused := func() bool {
		select {
		case <-n.refused():
			return true
		default:
			return false
		}
	}
	log.WithError(errors.New("connection refused")).Warn(logNoDial)
	if n.trouble == nil || refused() {
		t.Errorf("trouble %v, refused %v", n.trouble, refused())
	}
	log.Warnf(logRefused, "Unable to authenticate")
	if !errors.Is(n.trouble, errSignIn) || !refused() {
		t.Errorf("trouble %v, refused %v", n.trouble, refused())
	}
	log.Debug(logMaxMessage, int32(4096))
	if n.maxMessage != 4096 || n.trouble != nil || refused() {
		t.Errorf("max message %d, trouble %v, refused %v", n.maxMessage, n.trouble, refused())
	}
	for range 2 {
		log.WithField("cnx", "a -> b").Warn(logLost)
	}
	select {
	case <-n.lost:
	default:
		t.Error("a lost connection is not noticed")
	}
}

func TestBackoff(t *testing.T) {
	b := Backoff()
	var last time.Duration
	for range 10 {
		next := b.Next()
		if next < last || next < minBackoff || next > maxBackoff {
			t.Errorf("%s after %s", next, last)
		}
		last = next
	}
	if !b.IsMaxBackoffReached() {
		t.Errorf("the last wait is %s", last)
	}
	if b.Reset(); b.Next() != minBackoff {
		t.Error("a reset does not begin again")
	}
}

func TestCall_GivesLateResultsAway(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	hold, late := make(chan struct{}), make(chan int, 1)
	_, err := Call(ctx, func() (int, error) { <-hold; return 7, nil }, func(n int) { late <- n })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	close(hold)
	if n := <-late; n != 7 {
		t.Errorf("late result %d", n)
	}
}
