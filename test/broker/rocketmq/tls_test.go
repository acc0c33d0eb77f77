package rocketmq_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierrocket"
	"seckill/internal/client/rocketclient"
	"seckill/test/certificate"
	"seckill/test/server"
)

// trusting trusts the authority of a file.
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

func TestOpen_SignInAndTLS(t *testing.T) {
	pair := certificate.NewAuthority(t).Issue("rocketmq", "127.0.0.1")
	r := server.NewRocketMQWith(t, server.RocketMQOptions{SignIn: true, TLS: &pair})
	opt := create(t, r, server.RocketMQNormal)
	good := rocketclient.Options{
		Endpoint: r.Addr(), TLS: trusting(t, pair.CAFile), AccessKey: server.RocketMQAccessKey, SecretKey: server.RocketMQSecretKey,
	}

	t.Run("GoodAccountCarriesMessages", func(t *testing.T) {
		opt := opt
		opt.Link = good
		c := open(t, opt)
		defer c.Close(within(t, openWithin))
		roundTrip(t, c, "signed-in")
	})
	for name, test := range map[string]struct {
		change func(*rocketclient.Options)
		text   string
	}{
		"WrongSecretIsRefused":        {func(o *rocketclient.Options) { o.SecretKey = "wrong" }, "sign-in was refused"},
		"UnknownAccountIsRefused":     {func(o *rocketclient.Options) { o.AccessKey = "nobody" }, "sign-in was refused"},
		"MissingAccountIsRefused":     {func(o *rocketclient.Options) { o.AccessKey = "" }, "sign-in was refused"},
		"UnknownAuthorityIsRefused":   {func(o *rocketclient.Options) { o.TLS = &tls.Config{} }, "certificate is not trusted"},
		"CertificateOfAnotherIsNamed": {func(o *rocketclient.Options) { o.TLS.ServerName = "other.example" }, "certificate is not trusted"},
	} {
		t.Run(name, func(t *testing.T) {
			opt := opt
			opt.Link = good
			opt.Link.TLS = good.TLS.Clone()
			test.change(&opt.Link)
			began := time.Now()
			_, err := carrierrocket.Open(within(t, openWithin), opt)
			if !errors.Is(err, carrier.ErrSetup) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("opened with %v", err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}
