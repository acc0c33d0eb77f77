package kafka_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"seckill/internal/carrier/carrierkafka"
	"seckill/internal/client/kafkaclient"
	"seckill/test/certificate"
	"seckill/test/server"
)

// trusting is the TLS of a client that believes one authority.
func trusting(t *testing.T, authority *certificate.Authority) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(authority.File())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: roots}
}

// The guest may sign in and has no rights.
const (
	guest         = "guest"
	guestPassword = "guest-secret"
)

func TestAccess(t *testing.T) {
	authority := certificate.NewAuthority(t)
	k := server.NewKafkaWith(t, server.KafkaOptions{
		SASL: true, TLS: &server.TLS{Pair: authority.Issue("kafka", "127.0.0.1"), Anyone: true},
		Settings: []string{
			"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
			"super.users=User:ANONYMOUS;User:" + server.KafkaUser,
			"listener.name.client.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_" +
				server.KafkaUser + `="` + server.KafkaPassword + `" user_` + guest + `="` + guestPassword + `";`,
		},
	})
	good := options(k, newName(t))
	k.CreateTopic(good.Topic, 2)
	good.Link = kafkaclient.Options{
		Brokers: []string{k.Addr()}, TLS: trusting(t, authority), SASL: kafkaclient.SASLPlain,
		Username: server.KafkaUser, Password: server.KafkaPassword,
	}
	const short, long = 3 * time.Second, 30 * time.Second
	t.Run("all", func(t *testing.T) {
		for _, mechanism := range []string{kafkaclient.SASLPlain, kafkaclient.SASLSHA256, kafkaclient.SASLSHA512} {
			t.Run("SignIn_"+mechanism, func(t *testing.T) {
				t.Parallel()
				opt := good
				opt.Link.SASL, opt.Group = mechanism, newName(t)
				c := open(t, opt)
				want := numbered(mechanism, 3)
				publish(t, c, want)
				settle(t, c, collect(t, c, want))
			})
		}
		for _, c := range []struct {
			name     string
			change   func(*carrierkafka.Options)
			deadline time.Duration
			text     string
		}{
			{"Open_WrongPassword", func(o *carrierkafka.Options) { o.Link.Password = "wrong" }, long, "sign-in was refused"},
			{"Open_WrongPasswordSCRAM", func(o *carrierkafka.Options) { o.Link.Password, o.Link.SASL = "wrong", kafkaclient.SASLSHA512 }, long, "sign-in was refused"},
			{"Open_UnknownAuthority", func(o *carrierkafka.Options) { o.Link.TLS = &tls.Config{RootCAs: x509.NewCertPool()} }, long, "certificate is not trusted"},
			{"Open_PlainToTLS", func(o *carrierkafka.Options) { o.Link.TLS = nil }, short, "is this a plaintext connection speaking to a tls endpoint?"},
			{"Open_WithoutSignIn", func(o *carrierkafka.Options) { o.Link.SASL = kafkaclient.SASLNone }, short, "check kafka.tls and kafka.sasl"},
			{"Open_NoRights", func(o *carrierkafka.Options) { o.Link.Username, o.Link.Password = guest, guestPassword }, long, "no rights"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				opt := good
				c.change(&opt)
				mustFail(t, opt, c.deadline, c.text)
			})
		}
	})
}
