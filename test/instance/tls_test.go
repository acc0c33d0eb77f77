package instance

import (
	"fmt"
	"strings"
	"testing"

	"seckill"
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
	maria := server.MariaDB(t, server.MariaOptions{TLS: speaks})
	a, b := pair(t, engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(maria.NewDatabase(t)), map[string]string{
		"redis.tls": "true", "redis.tls_ca": authority.File(), "redis.tls_cert": own.CertFile, "redis.tls_key": own.KeyFile,
		"store.tls_ca": authority.File(),
	}))
	openSale(t, a, engine.Product{ID: 1, Stock: 6, PerUserLimit: 1})
	sees(t, b, 1)
	sells(t, a, b, "early")
	// What connects again does so with what the files hold then.
	redis.Kill()
	redis.Start()
	sells(t, a, b, "late")
	until(t, "all is sold", func() bool { _, code := buy(t.Context(), b, 1, "nobody"); return code == seckill.CodeSoldOut })
	for _, name := range []string{"seckill", "seckill-spent", "seckill-bulletin", "seckill-presence"} {
		until(t, "the client "+name+" is there", func() bool { return strings.Contains(redis.Must("CLIENT", "LIST"), " name="+name+" ") })
	}
}

// sells sells three units, at both instances, and reconciles.
func sells(t *testing.T, a, b *engine.Engine, when string) {
	t.Helper()
	for i, e := range []*engine.Engine{a, b, a} {
		buyer := fmt.Sprintf("%s-%d", when, i)
		await(t, b, buyer, buys(t, e, 1, buyer), "pending")
	}
	until(t, "the sale balances", func() bool {
		report, err := a.Operator().Reconcile(t.Context(), 1, false)
		return err == nil && report.Balanced != nil && *report.Balanced
	})
}

// A server that has a certificate of an authority which everybody knows needs no
// file here: the system's authorities count.
func TestAnInstanceBelievesTheSystemsAuthorities(t *testing.T) {
	t.Parallel()
	authority := certificate.NewAuthority(t)
	speaks := &server.TLS{Pair: authority.Issue("servers", "127.0.0.1"), Anyone: true}
	redis := server.Redis(t, server.RedisOptions{TLS: speaks})
	maria := server.MariaDB(t, server.MariaOptions{TLS: speaks})
	e := engine.Start(t, engine.Options{
		Settings: engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(maria.NewDatabase(t)+"?tls=true"), map[string]string{"redis.tls": "true"}),
		Shell:    "export SSL_CERT_FILE=" + authority.File(),
	})
	openSale(t, e, engine.Product{ID: 1, Stock: 1})
	await(t, e, "ann", buys(t, e, 1, "ann"), "pending")
}
