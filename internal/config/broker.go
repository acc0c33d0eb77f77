package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Queue chooses how reservations travel from the ledger's outbox to workers.
type Queue struct {
	Kind        string
	Topic       string // of a broker
	ExpireTopic string // of delayed messages, with RocketMQ and Pulsar
	Group       string // the workers' consumer group or subscription
}

// ExpireGroup is the workers' group for delayed messages: a group reads one
// topic.
func (q Queue) ExpireGroup() string { return q.Group + "-expire" }

// The kinds of queue. All but the outbox name a broker that carries copies of
// outbox entries.
const (
	QueueOutbox   = "outbox"
	QueueKafka    = "kafka"
	QueueRocketMQ = "rocketmq"
	QueuePulsar   = "pulsar"
)

// Kafka is how Kafka is reached.
type Kafka struct {
	Brokers    []string
	SASL       string
	Username   string
	Password   Secret
	TLS        bool
	TLSCA      string
	Create     bool // topics that are missing
	Partitions int
	Replicas   int
}

// The ways to sign in to Kafka.
const (
	SASLNone   = "none"
	SASLPlain  = "plain"
	SASLSHA256 = "scram-sha-256"
	SASLSHA512 = "scram-sha-512"
)

// RocketMQ is how a RocketMQ 5 proxy is reached.
type RocketMQ struct {
	Endpoint  string
	AccessKey string
	SecretKey Secret
	TLS       bool
	TLSCA     string
}

// Pulsar is how Pulsar is reached.
type Pulsar struct {
	URL   string
	Token Secret
	TLSCA string
}

// TLSConfig is nil without kafka.tls.
func (k Kafka) TLSConfig() (*tls.Config, error) {
	if !k.TLS {
		return nil, nil
	}
	return trusting("kafka.tls_ca", k.TLSCA)
}

// TLSConfig is nil without rocketmq.tls.
func (r RocketMQ) TLSConfig() (*tls.Config, error) {
	if !r.TLS {
		return nil, nil
	}
	return trusting("rocketmq.tls_ca", r.TLSCA)
}

// Carried reports whether a broker carries reservations to workers.
func (c *Config) Carried() bool { return c.Queue.Kind != QueueOutbox }

// Delays reports whether the broker has delayed messages.
func (c *Config) Delays() bool { return c.Queue.Kind == QueueRocketMQ || c.Queue.Kind == QueuePulsar }

// maxTopicBytes is the longest topic or group name that all brokers take.
const maxTopicBytes = 120

var topicWords = fmt.Sprintf("1 to %d letters, digits, . _ -", maxTopicBytes)

// topic allows names that all three brokers take.
func topic() rule { return ruled(topicWords, checkTopic) }

func optionalTopic() rule { return ruled(topicWords, orEmpty(checkTopic)) }

func checkTopic(name string) error {
	ok := func(r rune) bool {
		return r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if len(name) == 0 || len(name) > maxTopicBytes || strings.ContainsFunc(name, func(r rune) bool { return !ok(r) }) || name == "." || name == ".." {
		return fmt.Errorf("must have 1 to %d letters, digits, dots, underscores or hyphens", maxTopicBytes)
	}
	return nil
}

// The ports that servers usually have, for examples in errors.
const (
	redisPort  = 6379
	kafkaPort  = 9092
	rocketPort = 8081
	pulsarPort = 6650
)

// pulsarURL allows pulsar:// and pulsar+ssl:// with one or several addresses.
func pulsarURL() rule {
	return ruled("pulsar://HOST:PORT or pulsar+ssl://HOST:PORT, or empty", orEmpty(func(text string) error {
		rest, plain := strings.CutPrefix(text, "pulsar://")
		rest, overTLS := strings.CutPrefix(rest, pulsarTLS)
		if plain == overTLS {
			return errors.New("must begin with pulsar:// or pulsar+ssl://")
		}
		for address := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), ",") {
			if err := checkAddress(address, pulsarPort); err != nil {
				return err
			}
		}
		return nil
	}))
}

const pulsarTLS = "pulsar+ssl://"

// optionalAddress allows HOST:PORT of a RocketMQ proxy, or nothing.
func optionalAddress() rule {
	return ruled("HOST:PORT, or empty", orEmpty(func(text string) error { return checkAddress(text, rocketPort) }))
}

// checkBrokers checks what the brokers' keys mean together.
func (c *Config) checkBrokers() error {
	var errs []error
	need := func(kind, key string, set bool) {
		if c.Queue.Kind == kind && !set {
			errs = append(errs, wrong(key, "must be set with queue.kind %s", kind))
		}
	}
	need(QueueKafka, "kafka.brokers", len(c.Kafka.Brokers) > 0)
	need(QueueRocketMQ, "rocketmq.endpoint", c.RocketMQ.Endpoint != "")
	need(QueuePulsar, "pulsar.url", c.Pulsar.URL != "")
	if c.Queue.Topic == c.Queue.ExpireTopic {
		errs = append(errs, wrong("queue.expire_topic", "must not be queue.topic"))
	}
	signsIn := slices.Contains([]string{SASLPlain, SASLSHA256, SASLSHA512}, c.Kafka.SASL)
	if signsIn && (c.Kafka.Username == "" || !c.Kafka.Password.IsSet()) {
		errs = append(errs, wrong("kafka.sasl", "needs kafka.username and kafka.password"))
	}
	if !signsIn && c.Kafka.Username != "" {
		errs = append(errs, wrong("kafka.username", "is of no use without kafka.sasl"))
	}
	if !signsIn && c.Kafka.Password.IsSet() {
		errs = append(errs, wrong("kafka.password", "is of no use without kafka.sasl"))
	}
	if !c.Kafka.TLS && c.Kafka.TLSCA != "" {
		errs = append(errs, wrong("kafka.tls_ca", "is of no use without kafka.tls"))
	}
	if c.RocketMQ.AccessKey != "" && !c.RocketMQ.SecretKey.IsSet() {
		errs = append(errs, wrong("rocketmq.access_key", "must be set together with rocketmq.secret_key"))
	}
	if c.RocketMQ.AccessKey == "" && c.RocketMQ.SecretKey.IsSet() {
		errs = append(errs, wrong("rocketmq.secret_key", "must be set together with rocketmq.access_key"))
	}
	if !c.RocketMQ.TLS && c.RocketMQ.TLSCA != "" {
		errs = append(errs, wrong("rocketmq.tls_ca", "is of no use without rocketmq.tls"))
	}
	if c.Pulsar.TLSCA != "" && !strings.HasPrefix(c.Pulsar.URL, "pulsar+ssl://") {
		errs = append(errs, wrong("pulsar.tls_ca", "is of no use unless pulsar.url begins with pulsar+ssl://"))
	}
	return errors.Join(errs...)
}
