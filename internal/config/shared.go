package config

import (
	"strings"
	"time"
)

// Redis is where the Redis ledger is, and how it is reached.
type Redis struct {
	Addrs    []string
	Username string
	Password Secret
	// SentinelMaster is the name of the master that Addrs, which then are
	// Sentinels, look after.
	SentinelMaster   string
	SentinelUsername string
	SentinelPassword Secret
	TLS              bool
	// TLSCA, TLSCert and TLSKey are files. Read them through TLSConfig.
	TLSCA           string
	TLSCert, TLSKey string
	Prefix          string
	WaitReplicas    int
	WaitTimeout     time.Duration
}

// SharedLedger reports whether several instances can share the ledger.
func (c *Config) SharedLedger() bool { return c.Ledger.Kind == LedgerRedis }

// SharedStore reports whether several instances can share the store.
func (c *Config) SharedStore() bool { return strings.HasPrefix(c.StoreDSN(), mysqlScheme) }

// shared reports whether this instance may have others beside it.
func (c *Config) shared() bool { return c.SharedLedger() || c.SharedStore() }

// How long a shopper waits. The embedded ledger answers with its next commit,
// which a slow disk may hold up; with Redis every answer comes within a second,
// whatever Redis does, and the rest of the request needs a part of it.
const (
	embeddedTimeout = 2 * time.Second
	redisTimeout    = 800 * time.Millisecond

	embeddedCall = 5 * time.Second
	redisCall    = 400 * time.Millisecond
)

// Workers is how many workers the instance has. While one waits for MySQL, a
// second reads, decodes and acknowledges; SQLite has one writer, and a flow that
// is held to a rate has no use for a second.
func (c *Config) Workers() int {
	switch {
	case c.Worker.Count > 0:
		return c.Worker.Count
	case c.SharedStore() && c.Worker.RatePerSecond == 0:
		return min(2, c.Store.writers())
	}
	return 1
}

// writers is how many can write to MySQL at once: half of the connections read.
func (s *Store) writers() int { return max(1, s.MaxConns/2) }

// PurchaseTimeout is the longest that a shopper waits for the ledger.
func (c *Config) PurchaseTimeout() time.Duration {
	switch {
	case c.Purchase.Timeout > 0:
		return c.Purchase.Timeout
	case c.SharedLedger():
		return redisTimeout
	}
	return embeddedTimeout
}

// CallTimeout is how long one reply of the ledger is waited for before its
// lane asks what became of the call. Replicas that are waited for have their
// own share of it.
func (c *Config) CallTimeout() time.Duration {
	if !c.SharedLedger() {
		return embeddedCall
	}
	if c.Redis.WaitReplicas > 0 {
		return redisCall + c.Redis.WaitTimeout
	}
	return redisCall
}

// checkShared holds what several instances need to know each other.
func (c *Config) checkShared() error {
	var found findings
	if c.shared() {
		for _, k := range c.unsetSecrets() {
			found.when(true, k.name, "must be set with Redis or MySQL, as instances that share them must share their secrets: set %s in the environment of this process, or the key in the file", k.env())
		}
	}
	r := &c.Redis
	found.when(c.SharedLedger() && len(r.Addrs) == 0, "redis.addrs", "must be set with ledger.kind redis")
	found.when(c.Ledger.Kind == LedgerMemory && len(r.Addrs) > 0, "redis.addrs", "is set, but ledger.kind is memory: set ledger.kind to redis, or remove it")
	found.when(r.SentinelMaster == "" && r.SentinelUsername != "", "redis.sentinel_username", "is of no use without redis.sentinel_master")
	found.when(r.SentinelMaster == "" && r.SentinelPassword.IsSet(), "redis.sentinel_password", "is of no use without redis.sentinel_master")
	writers := c.Store.writers()
	found.when(c.SharedStore() && c.Worker.Count > writers, "worker.count", "is more than the %d that can write at once, which is half of store.max_conns", writers)
	return found.err()
}

// Warnings are combinations that work, in a way that may not be meant.
func (c *Config) Warnings() (all []string) {
	switch {
	case c.SharedLedger() && !c.SharedStore():
		all = append(all, "ledger.kind redis with a SQLite store serves one instance: a second one would not see its orders; set store.dsn to mysql:… for more")
	case !c.SharedLedger() && c.SharedStore():
		all = append(all, "ledger.kind memory with a MySQL store serves one instance: a second one is refused, as it would sell the stock again; set ledger.kind to redis for more")
	}
	if c.Promise.Journal && !c.SharedLedger() {
		all = append(all, "promise.journal has no effect with ledger.kind memory, which syncs its own journal before each answer")
	}
	if mode := c.uncheckedStore(); mode != "" {
		all = append(all, "store.dsn has tls="+mode+", which believes any certificate: whoever is on the way to MySQL can answer in its place; use tls=true, or store.tls_ca")
	}
	if c.Auth.JWKSURL != "" && c.Auth.Audience == "" {
		all = append(all, "auth.jwks_url without auth.audience takes every token of that login for a buyer's, also those it signs for other applications; set auth.audience unless it serves this shop alone")
	}
	if c.shared() && c.Payment.SandboxPage {
		all = append(all, "payment.sandbox_page is true: on that page anybody can pay imaginary money, and the order counts as paid; set it to false before real buyers come")
	}
	return append(all, c.unusedSecrets...)
}
