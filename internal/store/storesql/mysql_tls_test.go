package storesql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"seckill/internal/config"
	"seckill/internal/store"
	"seckill/test/certificate"
	"seckill/test/server"
)

// tlsOptions returns the Options for a CA file in store.tls_ca.
func tlsOptions(t *testing.T, file string) Options {
	t.Helper()
	spoken, err := config.Store{TLSCA: file}.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	return Options{TLS: spoken, Timeout: 10 * time.Second}
}

// The parts share a server, because it takes seconds to create one.
func TestMySQLOverTLS(t *testing.T) {
	t.Parallel()
	authority := certificate.NewAuthority(t)
	pair := authority.Issue("mysql", "127.0.0.1")
	m := server.MariaDB(t, server.MariaOptions{TLS: &server.TLS{Pair: pair}})
	t.Run("every connection uses TLS", func(t *testing.T) {
		everyConnectionSpeaksTLS(t, openAt(t, m.NewDatabase(t), tlsOptions(t, authority.File())))
	})
	t.Run("the wrong server is refused at once", func(t *testing.T) {
		wrongServersAreRefused(t, authority, m.NewDatabase(t))
	})
	t.Run("an expired certificate makes the store unavailable", func(t *testing.T) {
		s := openAt(t, m.NewDatabase(t), tlsOptions(t, authority.File()))
		renewed := func(end time.Time) error {
			m.Stop()
			authority.Replace(pair, end, "mysql", "127.0.0.1")
			m.Start()
			return s.Ping(t.Context())
		}
		// No order is lost: the store is unavailable, so claims are retried.
		if err := renewed(time.Now().Add(-time.Minute)); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "expired") {
			t.Errorf("expired certificate: %v", err)
		}
		if err := renewed(time.Now().Add(time.Hour)); err != nil {
			t.Errorf("new certificate: %v", err)
		}
	})
}

func everyConnectionSpeaksTLS(t *testing.T, s *Store) {
	db := s.db.(*mysqlDB)
	migrating, err := db.migrationPool()
	if err != nil {
		t.Fatal(err)
	}
	defer migrating.Close()
	for name, pool := range map[string]*sql.DB{"write": db.writePool, "read": db.readPool, "migrate": migrating} {
		var variable, version string
		if err := pool.QueryRow("SHOW SESSION STATUS LIKE 'Ssl_version'").Scan(&variable, &version); err != nil || !strings.HasPrefix(version, "TLSv1.") {
			t.Errorf("%s: %q, %v", name, version, err)
		}
	}
}

// wrongServersAreRefused uses a server whose certificate is for 127.0.0.1.
func wrongServersAreRefused(t *testing.T, authority *certificate.Authority, dsn string) {
	elsewhere := strings.Replace(dsn, "127.0.0.1", "localhost", 1)
	without := server.SharedMariaDB(t).NewDatabase(t)
	ours, another := tlsOptions(t, authority.File()), tlsOptions(t, certificate.NewAuthority(t).File())
	for name, c := range map[string]struct {
		dsn  string
		opt  Options
		want error // nil is success
		says string
	}{
		"the right server":                      {dsn, ours, nil, ""},
		"the right server, TLS in both options": {dsn + "?tls=true", ours, nil, ""},
		"skip-verify":                           {elsewhere + "?tls=skip-verify", Options{}, nil, ""},
		"another authority":                     {dsn, another, ErrUntrusted, "unknown authority"},
		"no store.tls_ca":                       {dsn + "?tls=true", Options{}, ErrUntrusted, "unknown authority: check store.tls_ca"},
		"another host":                          {elsewhere, ours, ErrUntrusted, "localhost"},
		"a client without TLS":                  {dsn, Options{}, ErrRefused, "tls=true"},
		"a server without TLS":                  {without, ours, ErrUntrusted, "does not support TLS"},
		"no fallback to plain text":             {without + "?tls=preferred", ours, ErrUntrusted, "does not support TLS"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		s, err := Open(ctx, c.dsn, c.opt)
		cancel()
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v %q", name, err, c.want, c.says)
		}
	}
}
