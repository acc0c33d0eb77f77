// Package config is the engine's typed configuration: a YAML file, overridden by
// the environment, overridden by flags. It is strict: an unknown key, a wrong type
// and a value out of range are errors. All errors are reported at once, because an
// operator has no time to find them one by one before a sale.
//
// key.go has the table of keys, rule.go what each may be, load.go and file.go the
// sources, secretfile.go generated secrets, print.go the output. Every key has an
// effect in this build.
package config

import (
	"net"
	"slices"
	"strings"
	"time"

	"seckill/internal/auth"
	"seckill/internal/challenge"
)

// Config has everything that can be set. Each field has one row in the table of
// key.go with its name, range and description.
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

	unusedSecrets []string // warnings
}

// Shop is the public HTTP server.
type Shop struct {
	Listen    string
	PublicURL string
	// TrustedProxies are the networks whose X-Forwarded-For is trusted.
	TrustedProxies []string
	// CORSOrigins are the origins of other pages that may use the API.
	CORSOrigins []string
	// TLSCert and TLSKey are files. Without them the shop serves plain HTTP.
	TLSCert, TLSKey string
	MaxConns        int
	MaxConnsPerAddr int // 0 is off
	// Drain is how long a stopping shop continues to serve; 0 is off.
	Drain time.Duration
}

// TLS reports whether the shop serves TLS itself.
func (s Shop) TLS() bool { return s.TLSCert != "" }

// Page is the shopper's page and its links to the shop's own site. Read URL through
// Address.
type Page struct {
	URL        string
	LoginURL   string
	PayURL     string
	LoginTTL   time.Duration
	ImageHosts []string
}

// Admin is the operator's HTTP server.
type Admin struct {
	Listen string
	// Hosts are allowed values of the Host header; see Names.
	Hosts []string
	Token Secret
	Pprof bool
}

// Names returns the allowed host names of the operator's server: Hosts, and the
// host of Listen if it is a name.
func (a Admin) Names() []string {
	host, _, err := net.SplitHostPort(a.Listen)
	if err != nil || host == "" || net.ParseIP(host) != nil {
		return a.Hosts
	}
	return append(slices.Clone(a.Hosts), host)
}

// Auth is how buyers are authenticated.
type Auth struct {
	JWTSecret Secret
	// JWTPreviousSecrets are accepted but never used to sign.
	JWTPreviousSecrets []Secret
	// JWKSURL is where the shop publishes its public keys, or empty.
	JWKSURL     string
	JWKSRefresh time.Duration
	// Issuer and Audience must match the token's, unless they are empty.
	Issuer   string
	Audience string
	// Leeway is the allowed difference between the clocks of the login and the instance.
	Leeway time.Duration
}

// HMACSecrets returns the secrets of HS256, HS384 and HS512. There are none if only
// public keys are accepted.
func (a Auth) HMACSecrets() [][]byte {
	var secrets [][]byte
	for _, s := range append([]Secret{a.JWTSecret}, a.JWTPreviousSecrets...) {
		if s.IsSet() {
			secrets = append(secrets, s.Bytes())
		}
	}
	return secrets
}

// Token configures purchase tokens.
type Token struct {
	Secret          Secret
	PreviousSecrets []Secret
	Required        bool
	Lead            time.Duration
}

// Secrets returns all accepted secrets. The first one signs.
func (t Token) Secrets() [][]byte {
	secrets := [][]byte{t.Secret.Bytes()}
	for _, previous := range t.PreviousSecrets {
		secrets = append(secrets, previous.Bytes())
	}
	return secrets
}

// Challenge configures the challenge that a buyer solves for a purchase token.
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

// Limit has requests per second at all instances together; 0 is off. Other
// requests are all except purchases.
type Limit struct {
	BuyerPerSecond      int
	IPPerSecond         int
	ProductPerSecond    int
	OtherBuyerPerSecond int
	OtherIPPerSecond    int
}

// Purchase configures stage ③, a bounded queue that sends claims in batches. Read
// Timeout through Config.PurchaseTimeout.
type Purchase struct {
	QueueSize int
	MaxBatch  int
	Timeout   time.Duration // 0: a default for the kind of ledger
}

// Promise configures how an instance keeps its answers.
type Promise struct {
	// Journal writes each answer to disk before it is sent, with a shared ledger.
	Journal bool
}

// Ledger chooses the ledger.
type Ledger struct {
	Kind string
	// If the ledger has answered no instance for TakeoverAfter, the store takes over
	// the products with fallback "store". If it has answered all instances for
	// ReturnAfter, these products return to it.
	TakeoverAfter, ReturnAfter time.Duration
}

// The kinds of ledger.
const (
	LedgerMemory = "memory"
	LedgerRedis  = "redis"
)

// Store chooses the store. Read DSN through Config.StoreDSN, and TLSCA through
// TLSConfig.
type Store struct {
	DSN      DSN
	TLSCA    string
	Migrate  bool
	MaxConns int
}

// Worker configures stage ⑦.
type Worker struct {
	Count         int
	RatePerSecond int
	BatchSize     int
	BatchWait     time.Duration
	RetryDelays   []time.Duration
	DiscardAfter  time.Duration
}

// Order configures how long an order lives unpaid.
type Order struct {
	ExpireAfter time.Duration
}

// Payment configures payment providers.
type Payment struct {
	SandboxPage   bool
	SandboxSecret Secret
}

// Preheat configures the automatic preheat.
type Preheat struct {
	Lead time.Duration
}

// Reconcile configures the regular reconciliation.
type Reconcile struct {
	Every    time.Duration // 0 is off
	Repair   string
	Deadline time.Duration
}

// RepairSafe is the value of reconcile.repair that repairs rows with one safe direction.
const RepairSafe = "safe"

// Alert configures where alerts are sent.
type Alert struct {
	WebhookURL PrivateURL
}

// Log configures the log.
type Log struct {
	Format string
	Level  string
}

// Default returns the settings of the embedded engine on loopback.
func Default() *Config {
	return &Config{
		DataDir: "./data",
		// MaxConnsPerAddr is high, because an office shares an address and the gateway
		// of a mobile network serves thousands of people. It bounds robots, it does not
		// stop them.
		Shop:  Shop{Listen: "127.0.0.1:8080", MaxConns: 100_000, MaxConnsPerAddr: 2_000, Drain: time.Second},
		Page:  Page{LoginTTL: 12 * time.Hour},
		Admin: Admin{Listen: "127.0.0.1:8081"},
		Auth:  Auth{JWKSRefresh: 5 * time.Minute, Leeway: auth.DefaultLeeway},
		Token: Token{Lead: time.Minute},
		Challenge: Challenge{
			Kind: string(challenge.None), PowBits: challenge.DefaultPowBits, PowCalmPerSecond: 500,
			PowCalmPerIPPerMinute: challenge.DefaultCalmPerAddr, PerBuyerPerMinute: challenge.DefaultPerBuyerPerMinute,
		},
		// A batch is sent when the previous one is committed, so the queue holds a few
		// commits. Claims of a longer queue would wait longer than their shoppers.
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

// ladder returns the default retry delays: 10 s, 30 s, every minute from 1 to 10,
// 20 min, 30 min, 1 h, 2 h; 16 retries.
func ladder() []time.Duration {
	delays := []time.Duration{10 * time.Second, 30 * time.Second}
	for minutes := range 10 {
		delays = append(delays, time.Duration(minutes+1)*time.Minute)
	}
	return append(delays, 20*time.Minute, 30*time.Minute, time.Hour, 2*time.Hour)
}

// URL returns the shop's address for links, without a slash at the end. If it is not
// set, it is derived from the address of the listener.
func (s Shop) URL(bound string) string {
	if s.PublicURL != "" {
		return strings.TrimRight(s.PublicURL, "/")
	}
	if s.TLS() {
		return localURL("https", bound)
	}
	return localURL("http", bound)
}

// Address returns the page's address, without a slash at the end. The default is
// the shop's address.
func (p Page) Address(shop string) string {
	if p.URL != "" {
		return strings.TrimRight(p.URL, "/")
	}
	return shop
}

// URL returns the operator API's address for clients on this machine.
func (a Admin) URL(bound string) string { return localURL("http", bound) }

// localURL turns a listen address into one that can be dialled. A listener on all
// interfaces is dialled over loopback.
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
