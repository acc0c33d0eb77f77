package app

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"seckill/test/certificate"
	"seckill/test/rig"
	"seckill/test/server"
)

// overTLS is how servers at 127.0.0.1 speak TLS, and the settings of an engine
// that they believe and that believes them.
func overTLS(t *testing.T) (speaks *server.TLS, settings map[string]string) {
	t.Helper()
	authority := certificate.NewAuthority(t)
	own := authority.Issue("engine")
	return &server.TLS{Pair: authority.Issue("servers", "127.0.0.1")}, map[string]string{
		"REDIS_TLS": "true", "REDIS_TLS_CA": authority.File(), "REDIS_TLS_CERT": own.CertFile, "REDIS_TLS_KEY": own.KeyFile,
		"STORE_TLS_CA": authority.File(),
	}
}

// A certificate that is not believed does not become so by waiting.
func TestACertificateThatIsNotBelievedEndsAStartAtOnce(t *testing.T) {
	t.Parallel()
	speaks, settings := overTLS(t)
	redis, dsn := server.Redis(t, server.RedisOptions{TLS: speaks}), server.MariaDB(t, server.MariaOptions{TLS: speaks}).NewDatabase(t)
	localhost := func(address string) string { return strings.Replace(address, "127.0.0.1", "localhost", 1) }
	stranger := certificate.NewAuthority(t)
	for what, c := range map[string]struct {
		redis, dsn string
		change     map[string]string
		says       []string // nothing is a start
	}{
		"none":                     {redis.Addr(), dsn, nil, nil},
		"another CA of Redis":      {redis.Addr(), dsn, map[string]string{"REDIS_TLS_CA": stranger.File()}, []string{"unknown authority", "check redis.tls_ca", redis.Addr()}},
		"another name of Redis":    {localhost(redis.Addr()), dsn, nil, []string{"localhost", "check redis.tls_ca", "for that host"}},
		"no certificate for Redis": {redis.Addr(), dsn, map[string]string{"REDIS_TLS_CERT": "", "REDIS_TLS_KEY": ""}, []string{"certificate required", "check redis.tls_cert"}},
		"another CA of MySQL":      {redis.Addr(), dsn, map[string]string{"STORE_TLS_CA": stranger.File()}, []string{"unknown authority", "check store.tls_ca"}},
		"another name of MySQL":    {redis.Addr(), localhost(dsn), nil, []string{"localhost", "check store.tls_ca"}},
		"MySQL without TLS":        {redis.Addr(), dsn, map[string]string{"STORE_TLS_CA": ""}, []string{"1045", "wants TLS", "tls=true"}},
		"a file that is missing":   {redis.Addr(), dsn, map[string]string{"REDIS_TLS_CA": stranger.File() + ".none"}, []string{"redis.tls_ca: open "}},
	} {
		t.Run(what, func(t *testing.T) {
			changed := maps.Clone(settings)
			maps.Copy(changed, c.change)
			began := time.Now()
			a, err := New(sharedSettings(t, c.redis, c.dsn, changed), Options{})
			if err == nil {
				rig.Must(t, a.close())
			}
			if (err == nil) != (len(c.says) == 0) {
				t.Fatalf("got %v", err)
			}
			for _, says := range c.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %s", err, says)
				}
			}
			if took := time.Since(began); took > reachDeadline/2 {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// Where one side speaks TLS and the other does not, a connection ends without a
// word, as it does while a server starts: it is tried for a while, and what to
// look at is said.
func TestARedisThatHangsUpIsSaidWithWhatMayBeMeant(t *testing.T) {
	t.Parallel()
	speaks, settings := overTLS(t)
	redis, plain := server.Redis(t, server.RedisOptions{TLS: speaks}), server.Redis(t, server.RedisOptions{})
	const dsn = "mysql:nobody@tcp(127.0.0.1:1)/asks"
	for what, c := range map[string]struct {
		redis  string
		change map[string]string
		says   string
	}{
		"a plain client":       {redis.Addr(), map[string]string{"REDIS_TLS": "", "REDIS_TLS_CA": "", "REDIS_TLS_CERT": "", "REDIS_TLS_KEY": ""}, "set redis.tls"},
		"a server without TLS": {plain.Addr(), nil, "TLS with " + plain.Addr()},
	} {
		t.Run(what, func(t *testing.T) {
			changed := maps.Clone(settings)
			maps.Copy(changed, c.change)
			p := &parts{cfg: sharedSettings(t, c.redis, dsn, changed), log: slog.New(slog.DiscardHandler), patience: reachDeadline}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := p.openRedis(ctx); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %s", err, c.says)
			}
		})
	}
}
