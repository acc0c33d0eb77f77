package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill/internal/auth"
	"seckill/internal/challenge"
	"seckill/internal/ledger"
)

// key is one row of the table: name, field, allowed values and description of one
// setting. Loading, checking, printing and the documentation use the same table.
type key struct {
	name  string
	field any // *string, *int, *bool, *time.Duration, *[]time.Duration, *[]string, *Secret, *[]Secret, *DSN or *PrivateURL
	rule  rule
	doc   string
}

// Bounds that several keys share.
const (
	day          = 24 * time.Hour
	maxPerSecond = 10_000_000
	maxPerMinute = 10_000
	// maxCutWait is below the operator API's deadline of two minutes, so that a
	// reconciliation can still answer "unknown".
	maxCutWait   = time.Minute
	maxNameBytes = 256
	// maxClaimBytes is the longest issuer or audience. They often are URLs.
	maxClaimBytes = 512
	maxReplicas   = 16
	// maxDrain is half of the 20 s of a stop. The other half is for everything else.
	maxDrain = 10 * time.Second
	// maxLeeway is more than synchronized clocks differ. A stolen token stays valid
	// that long after its end.
	maxLeeway = 10 * time.Minute
)

// keys returns the table in the order of the documentation.
func (c *Config) keys() []key {
	return append([]key{
		{"data_dir", &c.DataDir, directory(), "Directory of the embedded journal, the embedded store, the journal of promises and generated secrets."},

		{"shop.listen", &c.Shop.Listen, listenAddress(), "Address of the public shop API and page. Port 0 takes any free port."},
		{"shop.public_url", &c.Shop.PublicURL, optionalURL(), "Address at which shoppers reach the shop, for pay links. Empty: derived from shop.listen."},
		{"shop.trusted_proxies", &c.Shop.TrustedProxies, networks(), "Networks of your proxies, such as 10.0.0.0/8: X-Forwarded-For is trusted only from them, from its right end to the first address outside of these networks. Empty: never."},
		{"shop.tls_cert", &c.Shop.TLSCert, optionalFile(), "File with the shop's certificate chain (PEM), read again every five seconds. Empty: HTTP, for a proxy in front that has the certificate."},
		{"shop.tls_key", &c.Shop.TLSKey, optionalFile(), "File with the certificate's key (PEM)."},
		{"shop.max_conns", &c.Shop.MaxConns, between(16, 1_000_000), "Most connections to the shop at once, and at most nine tenths of the file handles that the process may have."},
		{"shop.max_conns_per_addr", &c.Shop.MaxConnsPerAddr, between(0, 1_000_000), "Most connections from one address (IPv6: one /64), this machine and shop.trusted_proxies aside; 0 is off."},
		{"shop.drain", &c.Shop.Drain, offOrLasting(100*time.Millisecond, maxDrain), "How long a stopping shop continues to serve, so that proxies move to other instances without an error. `/readyz` fails from the beginning. In the last 750 ms the port is closed, and kept-alive connections get their last answer. 0: stop at once."},
		{"shop.cors_origins", &c.Shop.CORSOrigins, origins(), "Origins of pages elsewhere that may use the API, such as that of an exported page on a CDN."},
		{"page.url", &c.Page.URL, optionalURL(), "Address of the shopper's page, where payments return to. Empty: shop.public_url."},
		{"page.login_url", &c.Page.LoginURL, optionalURL(), "The shop's own login, which sends the shopper back to the page with a one-time code. Empty: none."},
		{"page.pay_url", &c.Page.PayURL, optionalURL(), "The shop's own cashier. The page sends a shopper with an unpaid order there. `{order_no}` and `{return}` (the order's page) are filled in, or added as parameters of these names. Empty: none."},
		{"page.login_ttl", &c.Page.LoginTTL, lasting(time.Minute, 30*day), "Life of the buyer's token that a login code is exchanged for."},
		{"page.image_hosts", &c.Page.ImageHosts, hosts(), "Hosts of product pictures. The page loads pictures only from them and from its own host."},
		{"admin.listen", &c.Admin.Listen, listenAddress(), "Address of the operator API, metrics and health. Keep it off the public network."},
		{"admin.hosts", &c.Admin.Hosts, hostNames(), "Names by which the operator address may be called in a URL, such as those of a compose or Kubernetes service. IP addresses, `localhost` and the host of admin.listen always may. Any other `Host` gets 421."},
		{"admin.token", &c.Admin.Token, bearerSecret(), "Bearer token of the operator API."},
		{"admin.pprof", &c.Admin.Pprof, anything(), "Serve Go profiles under /debug/pprof on the operator address."},

		{"auth.jwt_secret", &c.Auth.JWTSecret, secret(), "Key of the buyers' JWTs (HS256, HS384, HS512); `sub` is the buyer. With auth.jwks_url and Redis or MySQL it may stay unset; tokens with these algorithms are then refused."},
		{"auth.jwt_previous_secrets", &c.Auth.JWTPreviousSecrets, secrets(auth.MaxSecrets - 1), "Keys that are still accepted but never sign, while auth.jwt_secret is rotated."},
		{"auth.jwks_url", &c.Auth.JWKSURL, keysURL(), "Where the shop publishes the public keys of the buyers' JWTs (RS256 to RS512, PS256 to PS512, ES256 to ES512, EdDSA). Empty: auth.jwt_secret alone."},
		{"auth.jwks_refresh", &c.Auth.JWKSRefresh, lasting(auth.KeysSpacing, day), "How often the public keys are fetched. A token with an unknown key has them fetched at once, at most every 10s."},
		{"auth.issuer", &c.Auth.Issuer, line(maxClaimBytes), "`iss` that every token must have. Empty: not checked."},
		{"auth.audience", &c.Auth.Audience, audience(), "`aud` that every buyer's token must have, alone or among others. Empty: not checked."},
		{"auth.leeway", &c.Auth.Leeway, offOrLasting(time.Second, maxLeeway), "Allowed difference between the clocks of your login and the instance: `nbf` and `iat` may be that far in the future, `exp` that far in the past. Fractions of a second are ignored."},
		{"token.secret", &c.Token.Secret, secret(), "Key that signs purchase tokens and challenges. The key of order links is derived from it."},
		{"token.previous_secrets", &c.Token.PreviousSecrets, secrets(auth.MaxSecrets - 1), "Keys that are accepted and do not sign, so that token.secret can be changed while tokens are in flight: first add the new one here on every instance, then swap the two, then drop the old."},
		{"token.required", &c.Token.Required, anything(), "Refuse a purchase without a purchase token."},
		{"token.lead", &c.Token.Lead, lasting(0, time.Hour), "How long before the start buyers can get challenges and tokens; earlier the answer is `not_started`."},
		{"challenge.kind", &c.Challenge.Kind, oneOf(challengeKinds()...), "What a buyer solves to get a purchase token: nothing, a proof of work, a picture (or, for those who cannot see it, a harder proof of work), or the challenge of the shop's own verifier. Pictures and proofs of work only raise the cost of a robot: for valuable sales use `shop`. All kinds but `none` need token.required."},
		{"challenge.pow_bits", &c.Challenge.PowBits, between(1, challenge.MaxPowBits), "Leading zero bits of a proof of work at a normal rate of challenges; each further bit doubles the work."},
		{"challenge.pow_calm_per_second", &c.Challenge.PowCalmPerSecond, between(1, maxPerSecond), fmt.Sprintf("Challenges a second on one instance up to which pow_bits apply; each doubling adds a bit, at most %d. Challenges beyond the normal rate of their own address or buyer do not count.", challenge.MaxRise)},
		{"challenge.pow_calm_per_ip_per_minute", &c.Challenge.PowCalmPerIPPerMinute, between(0, maxPerMinute), fmt.Sprintf("Challenges that one client address, IPv6 by its /64, may ask for in a minute, at all instances together, before its proofs of work get harder; each doubling adds a bit, at most %d; 0 is off.", challenge.MaxReputation)},
		{"challenge.per_buyer_per_minute", &c.Challenge.PerBuyerPerMinute, between(1, maxPerMinute), "Challenges that a buyer may ask for in a minute, on each instance."},
		{"challenge.verify_url", &c.Challenge.VerifyURL, privateURL(), "URL of the shop's own verifier, with challenge.kind `shop`. Printed only up to the host."},
		{"challenge.verify_secret", &c.Challenge.VerifySecret, sharedSecret(), "HMAC key that signs requests to the verifier (`X-Signature`)."},
		{"challenge.widget_url", &c.Challenge.WidgetURL, optionalURL(), "URL of the shop's own widget for the page, with challenge.kind `shop`."},

		{"limit.buyer_per_second", &c.Limit.BuyerPerSecond, between(0, maxPerSecond), "Purchase requests a second per buyer, at all instances together; 0 is off."},
		{"limit.ip_per_second", &c.Limit.IPPerSecond, between(0, maxPerSecond), "Purchase requests a second per client address, IPv6 by its /64; 0 is off."},
		{"limit.product_per_second", &c.Limit.ProductPerSecond, between(0, maxPerSecond), "Purchase requests a second per product, at all instances together. Only requests that pass all other gates count, with a valid purchase token if one is required; 0 is off."},
		{"limit.other_buyer_per_second", &c.Limit.OtherBuyerPerSecond, between(0, maxPerSecond), "All other requests a second per buyer: challenges, tokens, orders, event streams opened; 0 is off."},
		{"limit.other_ip_per_second", &c.Limit.OtherIPPerSecond, between(0, maxPerSecond), "All other requests a second per client address, with logins and product pages; health, time and payment callbacks are never limited; 0 is off."},

		{"purchase.queue_size", &c.Purchase.QueueSize, between(1, 1_000_000), "Most purchases that wait for the ledger; further ones are answered `too_hot`."},
		{"purchase.max_batch", &c.Purchase.MaxBatch, between(1, ledger.MaxClaims), "Most claims in one ledger step."},
		{"purchase.timeout", &c.Purchase.Timeout, offOrLasting(10*time.Millisecond, time.Minute), "Longest wait of a shopper for the ledger; then the answer is `busy`. 0: 2s, or 800ms with Redis, so that every answer comes within a second."},
		{"promise.journal", &c.Promise.Journal, anything(), "With ledger.kind `redis`: write each accepted order to a file in data_dir, and sync it, before the answer. A power cut of Redis and the instance together then loses no order, with any `appendfsync`. Each instance needs its own data_dir on a persistent disk."},

		{"ledger.kind", &c.Ledger.Kind, oneOf(LedgerMemory, LedgerRedis), "Which ledger decides purchases: `memory`, embedded, for one instance, or `redis`."},
		{"ledger.takeover_after", &c.Ledger.TakeoverAfter, lasting(time.Second, day), "If Redis has answered no instance for this long, the store takes over the products with `fallback` `store`."},
		{"ledger.return_after", &c.Ledger.ReturnAfter, offOrLasting(time.Second, day), "If Redis has answered every instance for this long, products that the store has taken over return to Redis. 0: only when an operator recovers them."},
		{"redis.addrs", &c.Redis.Addrs, addresses(redisPort), "Redis with ledger.kind `redis`: one address, some nodes of a Cluster, or the Sentinels."},
		{"redis.username", &c.Redis.Username, line(maxNameBytes), "User name at Redis, if it requires one."},
		{"redis.password", &c.Redis.Password, password(), "Password at Redis, if it requires one."},
		{"redis.sentinel_master", &c.Redis.SentinelMaster, line(maxNameBytes), "Name of the master; if set, redis.addrs are its Sentinels."},
		{"redis.sentinel_username", &c.Redis.SentinelUsername, line(maxNameBytes), "User name at the Sentinels, if they require one."},
		{"redis.sentinel_password", &c.Redis.SentinelPassword, password(), "Password at the Sentinels, if they require one."},
		{"redis.tls", &c.Redis.TLS, anything(), "Use TLS to Redis and its Sentinels. Each must have a certificate for the host name that the engine dials."},
		{"redis.tls_ca", &c.Redis.TLSCA, optionalFile(), "File with the authorities (PEM) that the certificates of Redis are checked against, read at start. Empty: the system's."},
		{"redis.tls_cert", &c.Redis.TLSCert, optionalFile(), "File with the engine's own certificate chain (PEM), for a Redis that asks for one (`tls-auth-clients`, its default). Read for each connection. Empty: none."},
		{"redis.tls_key", &c.Redis.TLSKey, optionalFile(), "File with that certificate's key (PEM)."},
		{"redis.prefix", &c.Redis.Prefix, keyPrefix(), "Prefix of every key of this engine. The first eight digits of the database's identity follow, so that engines with different databases use different keys."},
		{"redis.wait_replicas", &c.Redis.WaitReplicas, between(0, maxReplicas), "Replicas that must have a reservation before the shopper gets the answer; 0 is off."},
		{"redis.wait_timeout", &c.Redis.WaitTimeout, lasting(time.Millisecond, 5*time.Second), "Longest wait for replicas; after it, the engine asks Redis for the outcome, or answers `busy`."},
		{"queue.kind", &c.Queue.Kind, oneOf(QueueOutbox, QueueKafka, QueueRocketMQ, QueuePulsar), "How reservations travel to the workers: `outbox`, straight from the ledger's outbox, or by a broker. The outbox stays the record: no order is lost if a broker loses messages."},
		{"queue.topic", &c.Queue.Topic, topic(), "The broker's topic for reservations. In RocketMQ its type is NORMAL."},
		{"queue.expire_topic", &c.Queue.ExpireTopic, topic(), "Topic of the delayed messages that expire unpaid orders, with RocketMQ (type DELAY) and Pulsar."},
		{"queue.group", &c.Queue.Group, topic(), "Consumer group of the workers at Kafka and RocketMQ, subscription at Pulsar. Environments that share a broker need their own topics and groups."},
		{"kafka.brokers", &c.Kafka.Brokers, addresses(kafkaPort), "Some brokers of the Kafka cluster, for queue.kind `kafka` and sinks."},
		{"kafka.sasl", &c.Kafka.SASL, oneOf(SASLNone, SASLPlain, SASLSHA256, SASLSHA512), "How the engine signs in to Kafka."},
		{"kafka.username", &c.Kafka.Username, line(maxNameBytes), "User of Kafka, with kafka.sasl."},
		{"kafka.password", &c.Kafka.Password, password(), "Password of Kafka, with kafka.sasl."},
		{"kafka.tls", &c.Kafka.TLS, anything(), "Use TLS to Kafka."},
		{"kafka.tls_ca", &c.Kafka.TLSCA, optionalFile(), "File with the authorities (PEM) that the certificates of Kafka are checked against, read at start. Empty: the system's."},
		{"kafka.create_topic", &c.Kafka.Create, anything(), "Create missing topics with kafka.partitions and kafka.replicas. Off: refuse to start if a topic is missing."},
		{"kafka.partitions", &c.Kafka.Partitions, between(1, 10_000), "Partitions of a topic that the engine creates. Each is read by one instance at a time."},
		{"kafka.replicas", &c.Kafka.Replicas, between(1, 100), "Replicas of a topic that the engine creates."},
		{"rocketmq.endpoint", &c.RocketMQ.Endpoint, optionalAddress(), "Address of the RocketMQ 5 proxy (gRPC), for queue.kind `rocketmq` and sinks."},
		{"rocketmq.access_key", &c.RocketMQ.AccessKey, line(maxNameBytes), "Access key of RocketMQ, if it has an ACL."},
		{"rocketmq.secret_key", &c.RocketMQ.SecretKey, password(), "Secret key of RocketMQ, if it has an ACL."},
		{"rocketmq.tls", &c.RocketMQ.TLS, anything(), "Use TLS to the proxy."},
		{"rocketmq.tls_ca", &c.RocketMQ.TLSCA, optionalFile(), "File with the authorities (PEM) that the proxy's certificate is checked against, read at start. Empty: the system's."},
		{"pulsar.url", &c.Pulsar.URL, pulsarURL(), "Address of Pulsar, for queue.kind `pulsar` and sinks."},
		{"pulsar.token", &c.Pulsar.Token, password(), "Token (JWT) for Pulsar, if it requires one."},
		{"pulsar.tls_ca", &c.Pulsar.TLSCA, optionalFile(), "File with the authorities (PEM) that the certificate of Pulsar is checked against. Empty: the system's."},
		{"store.dsn", &c.Store.DSN, storeDSN(), "Address of the store. Empty: SQLite in `seckill.db` in data_dir. Printed without password and options."},
		{"store.tls_ca", &c.Store.TLSCA, optionalFile(), "File with the authorities (PEM) that the certificate of MySQL is checked against, read at start. If set, TLS is required. Empty: `tls=` in store.dsn decides."},
		{"store.migrate", &c.Store.Migrate, anything(), "Migrate the store's tables at start, one instance at a time. Off: refuse to start with older tables until you run `seckill migrate`."},
		{"store.max_conns", &c.Store.MaxConns, between(2, 10_000), "Most connections to MySQL of this instance."},

		{"worker.count", &c.Worker.Count, between(0, 64), "Workers of this instance. Each runs one transaction at a time. 0: 2 with MySQL; 1 with SQLite (it has one writer) or with worker.rate_per_second. With MySQL at most half of store.max_conns."},
		{"worker.rate_per_second", &c.Worker.RatePerSecond, between(0, maxPerSecond), "Most orders a second that the workers of all instances write together; 0: as fast as the store. Set the same value on all instances."},
		{"worker.batch_size", &c.Worker.BatchSize, between(1, 10_000), "Most orders in one store transaction."},
		{"worker.batch_wait", &c.Worker.BatchWait, lasting(0, 10*time.Second), "Longest wait of an order for others to join its batch."},
		{"worker.retry_delays", &c.Worker.RetryDelays, ladderOf(1, 64, 10*time.Millisecond, 7*day), "Delays between retries of an order that cannot be written; after the last it becomes a dead letter."},
		{"worker.discard_after", &c.Worker.DiscardAfter, lasting(100*time.Millisecond, 30*day), "Age at which a dead letter is discarded: the order fails and its unit returns."},

		{"order.expire_after", &c.Order.ExpireAfter, lasting(100*time.Millisecond, 30*day), "Time to pay, from the confirmation of the order."},
		{"payment.sandbox_page", &c.Payment.SandboxPage, anything(), "Serve the sandbox's pay page, where anybody can pay with imaginary money. Turn it off before real buyers come. Signed callbacks are accepted in any case."},
		{"payment.sandbox_secret", &c.Payment.SandboxSecret, secret(), "HMAC key of the sandbox payment provider's callbacks."},
		{"preheat.lead", &c.Preheat.Lead, lasting(0, 7*day), "How long before its start a sale is preheated automatically."},

		{"reconcile.every", &c.Reconcile.Every, offOrLasting(time.Second, 7*day), "Interval of the regular reconciliation; 0 is off."},
		{"reconcile.repair", &c.Reconcile.Repair, oneOf("off", RepairSafe), "`safe`: the regular reconciliation also repairs rows of the store that have one safe direction. A ledger that does not add up is always rebuilt."},
		{"reconcile.deadline", &c.Reconcile.Deadline, lasting(100*time.Millisecond, maxCutWait), "Longest wait of a reconciliation for the queue; after it, the result is unknown."},

		{"alert.webhook_url", &c.Alert.WebhookURL, privateURL(), "URL to which alerts are posted. Empty: only the log. Printed only up to the host."},
		{"log.format", &c.Log.Format, oneOf("text", "json"), "Format of the log."},
		{"log.level", &c.Log.Level, oneOf("debug", "info", "warn", "error"), "Lowest level that is logged."},
	}, c.sinkKeys()...)
}

func challengeKinds() (names []string) {
	for _, kind := range challenge.Kinds {
		names = append(names, string(kind))
	}
	return names
}

// envPrefix is the prefix of every variable of the engine.
const envPrefix = "SECKILL_"

// env returns the key's variable. Dots become underscores, so a variable cannot be
// split into a key: look for the key whose variable it is.
func (k key) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(k.name, ".", "_"))
}

// private reports whether the value is a secret or may contain one: a key, a
// password, or an address with either.
func (k key) private() bool {
	switch k.field.(type) {
	case *Secret, *[]Secret, *DSN, *PrivateURL:
		return true
	}
	return false
}

// set parses a value of a YAML file, or the text of a variable or flag.
func (k key) set(value any) error {
	switch field := k.field.(type) {
	case *string:
		return assign(field, value, parseText[string])
	case *DSN:
		return assign(field, value, parseText[DSN])
	case *PrivateURL:
		return assign(field, value, parseText[PrivateURL])
	case *Secret:
		return assign(field, value, parseSecret)
	case *int:
		return assign(field, value, parseInt)
	case *bool:
		return assign(field, value, parseBool)
	case *time.Duration:
		return assign(field, value, parseDuration)
	case *[]string:
		return assign(field, value, parseList(parseText[string]))
	case *[]Secret:
		return assign(field, value, parseList(parseSecret))
	case *[]time.Duration:
		return assign(field, value, parseList(parseDuration))
	}
	panic(fmt.Sprintf("config: key %s has a field of type %T", k.name, k.field))
}

// assign leaves a field as it is if the value cannot be parsed.
func assign[T any](field *T, value any, parse func(any) (T, error)) error {
	parsed, err := parse(value)
	if err == nil {
		*field = parsed
	}
	return err
}

// parseText refuses numbers, which would lose leading zeros. The error does not
// quote the value, which may be a secret.
func parseText[T ~string](value any) (T, error) {
	text, isText := value.(string)
	if !isText {
		return "", errors.New("must be text: put quotes around it")
	}
	return T(text), nil
}

func parseSecret(value any) (Secret, error) {
	text, err := parseText[string](value)
	return NewSecret(text), err
}

func parseInt(value any) (int, error) {
	n, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil {
		return 0, fmt.Errorf("must be a whole number, not %q", fmt.Sprint(value))
	}
	return n, nil
}

func parseBool(value any) (bool, error) {
	b, err := strconv.ParseBool(fmt.Sprint(value))
	if err != nil {
		return false, fmt.Errorf("must be true or false, not %q", fmt.Sprint(value))
	}
	return b, nil
}

func parseDuration(value any) (time.Duration, error) {
	d, err := time.ParseDuration(fmt.Sprint(value))
	if err != nil {
		return 0, fmt.Errorf("must be a duration with its unit, such as 500ms, 30s, 10m or 2h, not %q", fmt.Sprint(value))
	}
	return d, nil
}

// parseList reads a YAML list, or text with commas; empty text is an empty list.
func parseList[T any](parse func(any) (T, error)) func(value any) ([]T, error) {
	return func(value any) ([]T, error) {
		if value == "" {
			return nil, nil
		}
		items, ok := items(value)
		if !ok {
			return nil, errors.New("must be a list, such as a,b,c")
		}
		return mapEach(items, parse)
	}
}

// items returns the entries of a YAML list, or of text with commas.
func items(value any) (list []any, ok bool) {
	switch value := value.(type) {
	case []any:
		return value, true
	case string:
		for item := range strings.SplitSeq(value, ",") {
			list = append(list, strings.TrimSpace(item))
		}
		return list, true
	}
	return nil, false
}

// value returns the field for printing as YAML, with secrets masked.
func (k key) value() any {
	switch field := k.field.(type) {
	case *string:
		return PrintableURL(*field)
	case *int:
		return *field
	case *bool:
		return *field
	case *Secret, *DSN, *PrivateURL:
		return fmt.Sprint(field) // masked
	case *[]Secret:
		return texts(*field, Secret.String)
	case *[]string:
		return *field
	case *time.Duration:
		return shortDuration(*field)
	case *[]time.Duration:
		return texts(*field, shortDuration)
	}
	panic(fmt.Sprintf("config: key %s has a field of type %T", k.name, k.field))
}

// texts returns the printed entries of a list.
func texts[T any](list []T, text func(T) string) []string {
	printed := make([]string, len(list))
	for i, entry := range list {
		printed[i] = text(entry)
	}
	return printed
}

// shortDuration drops the zero units that time.Duration prints: 30m, not 30m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
