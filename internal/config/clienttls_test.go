package config_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seckill/internal/config"
	"seckill/test/certificate"
)

func TestClientTLS_UnusedFilesAreRefused(t *testing.T) {
	mysql := func(rest string) config.Setting { return set("store.dsn", "mysql:u@"+rest) }
	onTLS := append([]config.Setting{set("redis.tls", "true")}, sharing["redis"]...)
	ca := set("store.tls_ca", "/ca.pem")
	for name, c := range map[string]struct {
		settings []config.Setting
		want     string // "" is accepted
	}{
		"a CA for plain Redis":             {append([]config.Setting{set("redis.tls_ca", "/ca.pem")}, sharing["redis"]...), "redis.tls_ca: has no effect without redis.tls"},
		"a certificate without its key":    {append([]config.Setting{set("redis.tls_cert", "/c.pem")}, onTLS...), "redis.tls_cert: must be set together with redis.tls_key"},
		"a key without its certificate":    {append([]config.Setting{set("redis.tls_key", "/k.pem")}, onTLS...), "redis.tls_key: must be set together with redis.tls_cert"},
		"a CA for Redis":                   {append([]config.Setting{set("redis.tls_ca", "/ca.pem")}, onTLS...), ""},
		"a CA for SQLite":                  {[]config.Setting{ca}, "store.tls_ca: has no effect without MySQL"},
		"a CA for a socket":                {[]config.Setting{ca, mysql("unix(/s)/d")}, "store.tls_ca: has no effect with a unix socket"},
		"a CA for MySQL that is unchecked": {[]config.Setting{ca, mysql("tcp(h:1)/d?tls=skip-verify")}, "store.tls_ca: contradicts tls=skip-verify"},
		"a CA for MySQL in plain":          {[]config.Setting{ca, mysql("tcp(h:1)/d?tls=false")}, "store.tls_ca: contradicts tls=false"},
		"a CA for MySQL":                   {[]config.Setting{ca, mysql("tcp(h:1)/d")}, ""},
		"a CA for MySQL, said twice":       {[]config.Setting{ca, mysql("tcp(h:1)/d?timeout=5s&tls=true")}, ""},
	} {
		_, err := config.Load(sources(append(secretsSet(), c.settings...)))
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestClientTLS_FilesAreCheckedAtLoad(t *testing.T) {
	authority := certificate.NewAuthority(t)
	own, other := authority.Issue("engine"), authority.Issue("other")
	none, junk := filepath.Join(t.TempDir(), "none.pem"), filepath.Join(t.TempDir(), "junk.pem")
	if err := os.WriteFile(junk, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		redisCA, cert, key, storeCA string
		want                        string
	}{
		"all there":                  {authority.File(), own.CertFile, own.KeyFile, authority.File(), ""},
		"no CA of Redis":             {none, own.CertFile, own.KeyFile, authority.File(), "redis.tls_ca: open " + none},
		"a CA of Redis without any":  {junk, own.CertFile, own.KeyFile, authority.File(), "redis.tls_ca: " + junk + " has no certificate"},
		"neither CA nor certificate": {none, none, own.KeyFile, authority.File(), "redis.tls_cert: open " + none},
		"no certificate":             {authority.File(), none, own.KeyFile, authority.File(), "redis.tls_cert: open " + none},
		"no key":                     {authority.File(), own.CertFile, none, authority.File(), "redis.tls_key: open " + none},
		"another's key":              {authority.File(), own.CertFile, other.KeyFile, authority.File(), "redis.tls_cert: does not go with redis.tls_key: "},
		"no CA of MySQL":             {authority.File(), own.CertFile, own.KeyFile, none, "store.tls_ca: open " + none},
		"a CA of MySQL without any":  {authority.File(), own.CertFile, own.KeyFile, junk, "store.tls_ca: " + junk + " has no certificate"},
	} {
		flags := append(append(secretsSet(), sharing["redis"]...), sharing["mysql"]...)
		flags = append(flags, set("redis.tls", "true"), set("redis.tls_ca", c.redisCA), set("redis.tls_cert", c.cert), set("redis.tls_key", c.key), set("store.tls_ca", c.storeCA))
		if _, err := config.Load(sources(flags)); err != nil {
			t.Errorf("%s, not asked for: %v", name, err)
		}
		from := sources(flags)
		from.Files = true
		_, err := config.Load(from)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Certificates are renewed every few weeks, and Redis is dialled again at any time.
func TestClientTLS_OwnCertificateIsReadForEachConnection(t *testing.T) {
	authority := certificate.NewAuthority(t)
	first, second := authority.Issue("first"), authority.Issue("second")
	spoken, err := config.Redis{TLS: true, TLSCert: first.CertFile, TLSKey: first.KeyFile}.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	name := func() string {
		t.Helper()
		shown, err := spoken.GetClientCertificate(&tls.CertificateRequestInfo{})
		if err != nil {
			t.Fatal(err)
		}
		return shown.Leaf.Subject.CommonName
	}
	before := name()
	for _, file := range [][2]string{{second.CertFile, first.CertFile}, {second.KeyFile, first.KeyFile}} {
		if err := os.Rename(file[0], file[1]); err != nil {
			t.Fatal(err)
		}
	}
	if after := name(); before != "first" || after != "second" {
		t.Errorf("shown was %s, then %s", before, after)
	}
}

func TestWarnings_StoreAcceptsAnyCertificate(t *testing.T) {
	for mode, warned := range map[string]bool{"skip-verify": true, "preferred": true, "true": false, "false": false} {
		cfg, err := config.Load(sources(append(secretsSet(), set("store.dsn", "mysql:u:hunter2@tcp(h:1)/d?tls="+mode))))
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(cfg.Warnings(), "\n")
		if strings.Contains(said, "tls="+mode) != warned || strings.Contains(said, "hunter2") {
			t.Errorf("tls=%s: %q", mode, said)
		}
	}
}
