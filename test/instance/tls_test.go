package instance

import (
	"fmt"
	"strings"
	"testing"

	"seckill/test/certificate"
	"seckill/test/engine"
	"seckill/test/server"
)

// Both servers take TLS alone, of a private authority, and Redis asks for a
// certificate in turn, as it does unless it is told otherwise.
func TestInstancesSellOverTLSAlone(t *testing.T) {
	t.Parallel()
	authority := certificate.NewAuthority(t)
	own, speaks := authority.Issue("engine"), &server.TLS{Pair: authority.Issue("servers", "127.0.0.1")}
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always", TLS: speaks})
	dsn := server.MariaDB(t, server.MariaOptions{TLS: speaks}).NewDatabase(t)
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(dsn), map[string]string{
		"redis.tls": "true", "redis.tls_ca": authority.File(), "redis.tls_cert": own.CertFile, "redis.tls_key": own.KeyFile,
		"store.tls_ca": authority.File(),
	})
	a := engine.Start(t, engine.Options{Settings: settings})
	// This one finds the authority among those of the system, and needs no file.
	b := engine.Start(t, engine.Options{
		Settings: engine.Join(settings, map[string]string{"redis.tls_ca": "", "store.tls_ca": "", "store.dsn": dsn + "?tls=true"}),
		Shell:    "export SSL_CERT_FILE=" + authority.File(),
	})
	for _, client := range []string{"seckill", "seckill-spent", "seckill-bulletin"} {
		until(t, "both have the client "+client, func() bool {
			return strings.Count(redis.Must("CLIENT", "LIST"), " name="+client+" ") >= 2
		})
	}
	openSale(t, a, engine.Product{ID: 1, Stock: 8, PerUserLimit: 1})
	sees(t, b, 1)
	sells := func(when string) {
		t.Helper()
		for i, e := range []*engine.Engine{a, b, a, b} {
			buyer := fmt.Sprintf("%s-%d", when, i)
			await(t, b, buyer, buys(t, e, 1, buyer), "pending")
		}
		until(t, "the sale balances", func() bool {
			report, err := a.Operator().Reconcile(t.Context(), 1, false)
			return err == nil && report.Balanced != nil && *report.Balanced
		})
	}
	sells("early")
	redis.Kill()
	redis.Start()
	sells("late")
}
