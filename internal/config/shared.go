package config

import (
	"strings"
	"time"
)

// Redis has the connection settings of the Redis ledger.
type Redis struct {
	Addrs    []string
	Username string
	Password Secret
	// SentinelMaster is the name of the master. If it is set, Addrs are Sentinels.
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

// shared reports whether other instances may run beside this one.
func (c *Config) shared() bool { return c.SharedLedger() || c.SharedStore() }

// Default timeouts. The embedded ledger answers after its next commit, which a slow
// disk may delay. With Redis every answer comes within a second, and the rest of the
// request needs a part of that second.
const (
	embeddedTimeout = 2 * time.Second
	redisTimeout    = 800 * time.Millisecond

	embeddedCall = 5 * time.Second
	redisCall    = 400 * time.Millisecond
)

// Workers returns the number of workers. While one waits for MySQL, a second reads,
// decodes and acknowledges. SQLite has one writer, and a limited rate needs only one
// worker.
func (c *Config) Workers() int {
	switch {
	case c.Worker.Count > 0:
		return c.Worker.Count
	case c.SharedStore() && c.Worker.RatePerSecond == 0:
		return min(2, c.Store.writers())
	}
	return 1
}

// writers returns the number of connections that write to MySQL. The other half
// reads.
func (s *Store) writers() int { return max(1, s.MaxConns/2) }

// PurchaseTimeout returns the longest wait of a shopper for the ledger.
func (c *Config) PurchaseTimeout() time.Duration {
	switch {
	case c.Purchase.Timeout > 0:
		return c.Purchase.Timeout
	case c.SharedLedger():
		return redisTimeout
	}
	return embeddedTimeout
}

// CallTimeout returns the longest wait for one reply of the ledger. After it, the
// lane asks for the outcome of the call. It contains the wait for replicas.
func (c *Config) CallTimeout() time.Duration {
	if !c.SharedLedger() {
		return embeddedCall
	}
	if c.Redis.WaitReplicas > 0 {
		return redisCall + c.Redis.WaitTimeout
	}
	return redisCall
}

// checkShared checks the settings that several instances need to work together.
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
	found.when(r.SentinelMaster == "" && r.SentinelUsername != "", "redis.sentinel_username", "has no effect without redis.sentinel_master")
	found.when(r.SentinelMaster == "" && r.SentinelPassword.IsSet(), "redis.sentinel_password", "has no effect without redis.sentinel_master")
	writers := c.Store.writers()
	found.when(c.SharedStore() && c.Worker.Count > writers, "worker.count", "is more than %d, the number of connections that can write (half of store.max_conns)", writers)
	return found.err()
}

// Warnings returns combinations that work, but may not be intended.
func (c *Config) Warnings() (all []string) {
	switch {
	case c.SharedLedger() && !c.SharedStore():
		all = append(all, "ledger.kind redis with a SQLite store serves one instance: a second one would not see its orders; set store.dsn to mysql:… for more")
	case !c.SharedLedger() && c.SharedStore():
		all = append(all, "ledger.kind memory with a MySQL store serves one instance: a second one is refused, because it would sell the stock again; set ledger.kind to redis for more")
	}
	if c.Promise.Journal && !c.SharedLedger() {
		all = append(all, "promise.journal has no effect with ledger.kind memory, which syncs its own journal before each answer")
	}
	if mode := c.uncheckedStore(); mode != "" {
		all = append(all, "store.dsn has tls="+mode+", which accepts any certificate: an attacker in the network can act as MySQL; use tls=true, or store.tls_ca")
	}
	if c.Auth.JWKSURL != "" && c.Auth.Audience == "" {
		all = append(all, "auth.jwks_url without auth.audience accepts every token of that login, also tokens for other applications; set auth.audience unless the login serves only this shop")
	}
	if c.shared() && c.Payment.SandboxPage {
		all = append(all, "payment.sandbox_page is true: anybody can pay there with imaginary money, and the order counts as paid; set it to false before real buyers come")
	}
	return append(all, c.unusedSecrets...)
}
