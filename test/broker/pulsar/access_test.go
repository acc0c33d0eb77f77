package pulsar_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"testing"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierpulsar"
	"seckill/internal/client/pulsarclient"
	"seckill/test/certificate"
	"seckill/test/server"
)

// The guest may sign in and has no rights.
const (
	worker = "worker"
	guest  = "guest"
)

// trusting believes the authorities of a file.
func trusting(t *testing.T, file string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate in " + file)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// The broker asks for tokens, speaks TLS, creates no topics and takes small
// messages only.
func TestAccess(t *testing.T) {
	authority := certificate.NewAuthority(t)
	p := server.NewPulsarWith(t, server.PulsarOptions{
		Tokens: true, TLS: &server.TLS{Pair: authority.Issue("pulsar", "127.0.0.1"), Anyone: true},
		Settings: []string{"allowAutoTopicCreation=false", "maxMessageSize=1048576"},
	})
	p.Grant(worker, "produce", "consume")
	good := options(p, newName(t))
	p.CreateTopic(good.Topic, 2)
	good.Link = pulsarclient.Options{Addresses: []string{p.SecureAddr()}, Token: server.PulsarToken(worker), TLS: trusting(t, authority.File())}
	plain := good
	plain.Link = pulsarclient.Options{Addresses: []string{p.Addr()}, Token: server.PulsarToken(worker)}
	const short, long = 3 * time.Second, 30 * time.Second
	t.Run("all", func(t *testing.T) {
		for name, opt := range map[string]carrierpulsar.Options{"TLS": good, "Plain": plain} {
			t.Run("SignIn_"+name, func(t *testing.T) {
				t.Parallel()
				opt.Group = newName(t)
				c := open(t, opt)
				if most := c.MaxBytes(); most < 1_000_000 || most >= 1<<20 {
					t.Errorf("the largest body is %d bytes", most)
				}
				want := numbered(name, 3)
				publish(t, c, want)
				settle(t, c, collect(t, c, want))
			})
		}
		t.Run("TopicDeletedAndCreatedAgain", func(t *testing.T) {
			t.Parallel()
			again := good
			again.Topic, again.Group = newName(t), newName(t)
			p.CreateTopic(again.Topic, 2)
			testDeleted(t, p, again)
		})
		stranger := trusting(t, certificate.NewAuthority(t).File())
		for _, c := range []struct {
			name     string
			change   func(*carrierpulsar.Options)
			deadline time.Duration
			setup    bool
			text     string
		}{
			{"Open_WrongToken", func(o *carrierpulsar.Options) { o.Link.Token += "x" }, long, true, "sign-in was refused"},
			{"Open_WithoutToken", func(o *carrierpulsar.Options) { o.Link.Token = "" }, long, true, "sign-in was refused"},
			{"Open_NoRights", func(o *carrierpulsar.Options) { o.Link.Token = server.PulsarToken(guest) }, long, true, "has no rights"},
			{"Open_UnknownAuthority", func(o *carrierpulsar.Options) { o.Link.TLS = stranger }, long, true, "certificate"},
			{"Open_UnknownTopic", func(o *carrierpulsar.Options) { o.Topic = "unknown" }, long, true, "the topic or its namespace does not exist"},
			{"Open_PlainToTLS", func(o *carrierpulsar.Options) { o.Link.TLS = nil }, short, false, "check the TLS settings"},
			{"Open_TLSToPlain", func(o *carrierpulsar.Options) { o.Link.Addresses = []string{p.Addr()} }, short, false, "no broker is reachable"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				opt := good
				c.change(&opt)
				if err := mustFail(t, opt, c.deadline, c.text); errors.Is(err, carrier.ErrSetup) != c.setup {
					t.Errorf("wrong setup should be %v: %v", c.setup, err)
				}
			})
		}
	})
}

// The library gives up producers and consumers of a topic that is missing for a
// moment.
func testDeleted(t *testing.T, p *server.Pulsar, opt carrierpulsar.Options) {
	c := open(t, opt)
	working(t, c, "before")
	p.DeleteTopic(opt.Topic)
	eventually(t, "the missing topic is reported", func() error {
		if err := c.Ping(within(t, 5*time.Second)); !errors.Is(err, pulsarclient.ErrNoTopic) {
			return errors.Join(errors.New("ping"), err)
		}
		return nil
	})
	eventually(t, "publishing fails", func() error {
		if err := c.Publish(within(t, 2*time.Second), numbered("lost", 1)); err == nil {
			return errors.New("it does not")
		}
		return nil
	})
	p.CreateTopic(opt.Topic, 3)
	working(t, c, "after")
}
