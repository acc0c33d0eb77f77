// Package config is the engine's typed configuration: a YAML file, over it the
// environment, over it flags. It is strict: an unknown key, a value of the
// wrong type and a value out of range are errors, and all of them are reported
// at once, because a sale that starts in a minute leaves no time to find them
// one by one.
//
// A key exists only where it does something in this build.
package config

import (
	"net"
	"slices"
	"strings"
	"time"

	"seckill/internal/auth"
	"seckill/internal/challenge"
)

// Config is everything that can be set. Each field is one row of the table in
// key.go, which gives it its name, its range and its description.
type Config struct {
	DataDir   string
	Shop      Shop
	Page      Page
	Admin     Admin
	Auth      Auth
	Token     Token
	Challenge Challenge
	Limit     Limit
	Purchase  Purchase
	Promise   Promise
	Ledger    Ledger
	Redis     Redis
	Queue     Queue
	Kafka     Kafka
	RocketMQ  RocketMQ
	Pulsar    Pulsar
	Store     Store
	Worker    Worker
	Order     Order
	Payment   Payment
	Preheat   Preheat
	Reconcile Reconcile
	Alert     Alert
	Sinks     []Sink // any number, by name
	Log       Log

	unusedSecrets []string // a warning each
}

// Shop is the public side.
type Shop struct {
	Listen    string
	PublicURL string
	// TrustedProxies are networks whose X-Forwarded-For is believed.
	TrustedProxies []string
	// CORSOrigins are the origins whose pages may use the API.
	CORSOrigins []string
	// TLSCert and TLSKey are files; without them a proxy in front has the
	// certificate, or nobody.
	TLSCert, TLSKey string
	MaxConns        int
	MaxConnsPerAddr int // 0 is off
	// Drain is how long a stopping shop goes on serving; 0 is off.
	Drain time.Duration
}

// TLS reports whether the shop speaks TLS itself.
func (s Shop) TLS() bool { return s.TLSCert != "" }

// Page is the shopper's page and what it needs of the shop around it. Read URL
// through Address.
type Page struct {
	URL        string
	LoginURL   string
	PayURL     string
	LoginTTL   time.Duration
	ImageHosts []string
}

// Admin is the operator's side.
type Admin struct {
	Listen string
	// Hosts are names that a request's Host may have; see Names.
	Hosts []string
	Token Secret
	Pprof bool
}

// Names are the names by which the operator address may be called: Hosts, and
// the host of Listen where that is a name.
func (a Admin) Names() []string {
	host, _, err := net.SplitHostPort(a.Listen)
	if err != nil || host == "" || net.ParseIP(host) != nil {
		return a.Hosts
	}
	return append(slices.Clone(a.Hosts), host)
}

// Auth is how buyers prove who they are.
type Auth struct {
	JWTSecret Secret
	// JWTPreviousSecrets are accepted and never sign.
	JWTPreviousSecrets []Secret
	// JWKSURL is where the shop publishes its public keys; empty for none.
	JWKSURL     string
	JWKSRefresh time.Duration
	// Issuer and Audience must be the token's; empty ones are not asked for.
	Issuer   string
	Audience string
	// Leeway is how far the login's clock may differ from the instance's.
	Leeway time.Duration
}

// HMACSecrets are the secrets of HS256, HS384 and HS512; there are none where
// public keys alone count.
func (a Auth) HMACSecrets() [][]byte {
	var secrets [][]byte
	for _, s := range append([]Secret{a.JWTSecret}, a.JWTPreviousSecrets...) {
		if s.IsSet() {
			secrets = append(secrets, s.Bytes())
		}
	}
	return secrets
}

// Token is the purchase token.
type Token struct {
	Secret          Secret
	PreviousSecrets []Secret
	Required        bool
	Lead            time.Duration
}

// Secrets are those that tokens may be signed with; the first one signs.
func (t Token) Secrets() [][]byte {
	secrets := [][]byte{t.Secret.Bytes()}
	for _, previous := range t.PreviousSecrets {
		secrets = append(secrets, previous.Bytes())
	}
	return secrets
}

// Challenge is what a buyer solves for a purchase token.
type Challenge struct {
	Kind                  string
	PowBits               int
	PowCalmPerSecond      int
	PowCalmPerIPPerMinute int
	PerBuyerPerMinute     int
	VerifyURL             PrivateURL
	VerifySecret          Secret
	WidgetURL             string
}

// Limit is requests per second at all instances together; 0 is off. Other
// requests are those that are no purchases.
type Limit struct {
	BuyerPerSecond      int
	IPPerSecond         int
	ProductPerSecond    int
	OtherBuyerPerSecond int
	OtherIPPerSecond    int
}

// Purchase is stage ③: claims gather in a bounded queue and leave in batches.
// Read Timeout through Config.PurchaseTimeout.
type Purchase struct {
	QueueSize int
	MaxBatch  int
	Timeout   time.Duration // 0: what suits the ledger
}

// Promise is what an instance does to keep what it has answered.
type Promise struct {
	// Journal has each answer on disk before it is given, with a shared ledger.
	Journal bool
}

// Ledger chooses the ledger.
type Ledger struct {
	Kind string
	// TakeoverAfter is how long the ledger has answered no instance when the store
	// takes a product over that is to fall back on it. ReturnAfter is how long it
	// has answered all of them when such a product returns.
	TakeoverAfter, ReturnAfter time.Duration
}

// The kinds of ledger.
const (
	LedgerMemory = "memory"
	LedgerRedis  = "redis"
)

// Store chooses the store. Read DSN through Config.StoreDSN, and the file TLSCA
// through TLSConfig.
type Store struct {
	DSN      DSN
	TLSCA    string
	Migrate  bool
	MaxConns int
}

// Worker is stage ⑦.
type Worker struct {
	Count         int
	RatePerSecond int
	BatchSize     int
	BatchWait     time.Duration
	RetryDelays   []time.Duration
	DiscardAfter  time.Duration
}

// Order is the life of an order.
type Order struct {
	ExpireAfter time.Duration
}

// Payment is money.
type Payment struct {
	SandboxPage   bool
	SandboxSecret Secret
}

// Preheat is when stock goes to the ledger by itself.
type Preheat struct {
	Lead time.Duration
}

// Reconcile is the regular count.
type Reconcile struct {
	Every    time.Duration // 0 is off
	Repair   string
	Deadline time.Duration
}

// RepairSafe is the reconcile.repair that mends what has one safe direction.
const RepairSafe = "safe"

// Alert is whom to tell.
type Alert struct {
	WebhookURL PrivateURL
}

// Log is how the log looks.
type Log struct {
	Format string
	Level  string
}

// Default is the embedded engine, alone on loopback.
func Default() *Config {
	return &Config{
		DataDir: "./data",
		// A household or an office shares an address, and a mobile network's
		// gateway is thousands of people: robots are bounded, not stopped, here.
		Shop:  Shop{Listen: "127.0.0.1:8080", MaxConns: 100_000, MaxConnsPerAddr: 2_000, Drain: time.Second},
		Page:  Page{LoginTTL: 12 * time.Hour},
		Admin: Admin{Listen: "127.0.0.1:8081"},
		Auth:  Auth{JWKSRefresh: 5 * time.Minute, Leeway: auth.DefaultLeeway},
		Token: Token{Lead: time.Minute},
		Challenge: Challenge{
			Kind: string(challenge.None), PowBits: challenge.DefaultPowBits, PowCalmPerSecond: 500,
			PowCalmPerIPPerMinute: challenge.DefaultCalmPerAddr, PerBuyerPerMinute: challenge.DefaultPerBuyerPerMinute,
		},
		// A batch leaves when the one before it is committed, so the queue is a
		// few commits deep: beyond that a claim waits longer than its shopper.
		Purchase:  Purchase{QueueSize: 8192, MaxBatch: 512},
		Ledger:    Ledger{Kind: LedgerMemory, TakeoverAfter: 5 * time.Second, ReturnAfter: time.Minute},
		Redis:     Redis{Prefix: "seckill:", WaitTimeout: 200 * time.Millisecond},
		Queue:     Queue{Kind: QueueOutbox, Topic: "seckill-topic", ExpireTopic: "seckill-expire", Group: "seckill"},
		Kafka:     Kafka{SASL: SASLNone, Partitions: 16, Replicas: 3},
		Store:     Store{Migrate: true, MaxConns: 32},
		Worker:    Worker{BatchSize: 500, BatchWait: 10 * time.Millisecond, RetryDelays: ladder(), DiscardAfter: 24 * time.Hour},
		Payment:   Payment{SandboxPage: true},
		Order:     Order{ExpireAfter: 30 * time.Minute},
		Preheat:   Preheat{Lead: 10 * time.Minute},
		Reconcile: Reconcile{Every: 5 * time.Minute, Repair: "off", Deadline: 30 * time.Second},
		Log:       Log{Format: "text", Level: "info"},
	}
}

// ladder is the designed retry ladder: 10 s, 30 s, every minute from 1 to 10,
// 20 min, 30 min, 1 h, 2 h; 16 tries.
func ladder() []time.Duration {
	delays := []time.Duration{10 * time.Second, 30 * time.Second}
	for minutes := range 10 {
		delays = append(delays, time.Duration(minutes+1)*time.Minute)
	}
	return append(delays, 20*time.Minute, 30*time.Minute, time.Hour, 2*time.Hour)
}

// URL is the shop's address for links that shoppers follow, without a slash at
// the end. Unset, it is derived from the address that the listener really got.
func (s Shop) URL(bound string) string {
	if s.PublicURL != "" {
		return strings.TrimRight(s.PublicURL, "/")
	}
	if s.TLS() {
		return localURL("https", bound)
	}
	return localURL("http", bound)
}

// Address is the page's, without a slash at the end: that of the shop, unless it
// is elsewhere.
func (p Page) Address(shop string) string {
	if p.URL != "" {
		return strings.TrimRight(p.URL, "/")
	}
	return shop
}

// URL is the operator API's address as this machine reaches it.
func (a Admin) URL(bound string) string { return localURL("http", bound) }

// localURL turns a listen address into one that can be dialled: a listener on
// every interface is reached over loopback.
func localURL(scheme, bound string) string {
	host, port, err := net.SplitHostPort(bound)
	if err != nil {
		return scheme + "://" + bound
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
