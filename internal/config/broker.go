package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
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

// ExpireGroup is the workers' group for delayed messages. It differs from Group
// because one group reads one topic.
func (q Queue) ExpireGroup() string { return q.Group + "-expire" }

// The kinds of queue. All but QueueOutbox name a broker, which transports copies
// of outbox entries.
const (
	QueueOutbox   = "outbox"
	QueueKafka    = "kafka"
	QueueRocketMQ = "rocketmq"
	QueuePulsar   = "pulsar"
)

// Kafka has the connection settings of Kafka.
type Kafka struct {
	Brokers    []string
	SASL       string
	Username   string
	Password   Secret
	TLS        bool
	TLSCA      string
	Create     bool // create missing topics
	Partitions int
	Replicas   int
}

// The SASL mechanisms of Kafka.
const (
	SASLNone   = "none"
	SASLPlain  = "plain"
	SASLSHA256 = "scram-sha-256"
	SASLSHA512 = "scram-sha-512"
)

// RocketMQ has the connection settings of a RocketMQ 5 proxy.
type RocketMQ struct {
	Endpoint  string
	AccessKey string
	SecretKey Secret
	TLS       bool
	TLSCA     string
}

// Pulsar has the connection settings of Pulsar.
type Pulsar struct {
	URL   string
	Token Secret
	TLSCA string
}

// TLSConfig returns nil without kafka.tls.
func (k Kafka) TLSConfig() (*tls.Config, error) {
	if !k.TLS {
		return nil, nil
	}
	return trusting("kafka.tls_ca", k.TLSCA)
}

// Addresses returns the addresses in the URL.
func (p Pulsar) Addresses() []string {
	_, list, _ := strings.Cut(p.URL, "://")
	return strings.Split(strings.TrimSuffix(list, "/"), ",")
}

// TLSConfig returns nil unless the URL begins with pulsar+ssl://.
func (p Pulsar) TLSConfig() (*tls.Config, error) {
	if !strings.HasPrefix(p.URL, pulsarTLS) {
		return nil, nil
	}
	return trusting("pulsar.tls_ca", p.TLSCA)
}

// TLSConfig returns nil without rocketmq.tls.
func (r RocketMQ) TLSConfig() (*tls.Config, error) {
	if !r.TLS {
		return nil, nil
	}
	return trusting("rocketmq.tls_ca", r.TLSCA)
}

// Carried reports whether a broker transports reservations to the workers.
func (c *Config) Carried() bool { return c.Queue.Kind != QueueOutbox }

// Delays reports whether the broker supports delayed messages.
func (c *Config) Delays() bool { return c.Queue.Kind == QueueRocketMQ || c.Queue.Kind == QueuePulsar }

// maxTopicBytes is the longest topic or group name that all three brokers accept.
const maxTopicBytes = 120

var topicWords = fmt.Sprintf("1 to %d letters, digits, . _ -", maxTopicBytes)

// topic allows names that all three brokers accept.
func topic() rule { return ruled(topicWords, checkTopic) }

func optionalTopic() rule { return ruled(topicWords, orEmpty(checkTopic)) }

var topicPattern = regexp.MustCompile(fmt.Sprintf("^[A-Za-z0-9._-]{1,%d}$", maxTopicBytes))

func checkTopic(name string) error {
	if !topicPattern.MatchString(name) || name == "." || name == ".." {
		return fmt.Errorf("must have 1 to %d letters, digits, dots, underscores or hyphens", maxTopicBytes)
	}
	return nil
}

// The usual ports of servers, for examples in error texts.
const (
	redisPort  = 6379
	kafkaPort  = 9092
	rocketPort = 8081
	pulsarPort = 6650
)

// pulsarURL allows pulsar:// and pulsar+ssl:// with one or several addresses.
func pulsarURL() rule {
	return ruled("pulsar://HOST:PORT or pulsar+ssl://HOST:PORT, or empty", orEmpty(func(text string) error {
		if !strings.HasPrefix(text, "pulsar://") && !strings.HasPrefix(text, pulsarTLS) {
			return errors.New("must begin with pulsar:// or pulsar+ssl://")
		}
		for _, address := range (Pulsar{URL: text}).Addresses() {
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

// brokerAddress returns the key of a broker's address, and whether it is set.
func (c *Config) brokerAddress(kind string) (key string, set bool) {
	switch kind {
	case QueueKafka:
		return "kafka.brokers", len(c.Kafka.Brokers) > 0
	case QueueRocketMQ:
		return "rocketmq.endpoint", c.RocketMQ.Endpoint != ""
	}
	return "pulsar.url", c.Pulsar.URL != ""
}

// checkBrokers checks the broker keys against each other.
func (c *Config) checkBrokers() error {
	var found findings
	if slices.Contains([]string{QueueKafka, QueueRocketMQ, QueuePulsar}, c.Queue.Kind) {
		key, set := c.brokerAddress(c.Queue.Kind)
		found.when(!set, key, "must be set with queue.kind %s", c.Queue.Kind)
	}
	found.when(c.Queue.Topic == c.Queue.ExpireTopic, "queue.expire_topic", "must not be queue.topic")
	user, password := c.Kafka.Username != "", c.Kafka.Password.IsSet()
	if slices.Contains([]string{SASLPlain, SASLSHA256, SASLSHA512}, c.Kafka.SASL) {
		found.when(!user || !password, "kafka.sasl", "needs kafka.username and kafka.password")
	} else {
		found.when(user, "kafka.username", "has no effect without kafka.sasl")
		found.when(password, "kafka.password", "has no effect without kafka.sasl")
	}
	found.apart("rocketmq.access_key", c.RocketMQ.AccessKey != "", "rocketmq.secret_key", c.RocketMQ.SecretKey.IsSet())
	return found.err()
}
