package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"seckill/test/broker"
)

// The account of a Kafka with SASL. It may do everything.
const (
	KafkaUser     = "seckill"
	KafkaPassword = "seckill-secret"
)

// kafkaCluster is the cluster id of every Kafka, also after a wipe.
const kafkaCluster = "c2Vja2lsbC10ZXN0LWthZg"

// kafkaRequestTimeout bounds one request of a test's own.
const kafkaRequestTimeout = 20 * time.Second

// KafkaOptions change the defaults of a test's Kafka.
type KafkaOptions struct {
	// SASL is the mechanism with which clients log in as KafkaUser: PLAIN,
	// SCRAM-SHA-256 or SCRAM-SHA-512.
	SASL bool
	// TLS makes the server use TLS with clients; nil means plain.
	TLS *TLS
	// Settings are further lines of server.properties, such as
	// "message.max.bytes=20000".
	Settings []string
}

// Kafka is one broker in KRaft mode that is its own controller. It does not
// create topics automatically.
type Kafka struct {
	Broker
	address, inner string
}

type kafkaMachine struct {
	*javaBroker
	address string // for clients, with the SASL and TLS of the options
	inner   string // plain, for the broker and the tools of tests
}

// NewKafka starts a plain Kafka with empty data for the time of the test. It
// waits until no other broker of any test process runs.
func NewKafka(t testing.TB) *Kafka {
	t.Helper()
	return NewKafkaWith(t, KafkaOptions{})
}

// NewKafkaWith is NewKafka with options.
func NewKafkaWith(t testing.TB, opt KafkaOptions) *Kafka {
	t.Helper()
	jars := needJars(t, broker.Kafka)
	slot.take(t)
	m, err := newKafka(needJava(t), jars, opt)
	if err != nil {
		t.Fatal(err)
	}
	return &Kafka{newBroker(t, m.javaBroker), m.address, m.inner}
}

// SharedKafka is one plain Kafka for all tests of the test binary. It starts at
// its first use and ends with the process, or earlier if a test needs another
// broker. Tests use their own topics and groups. A test that does not run in
// parallel may kill, pause or wipe it; the next test gets it running again.
func SharedKafka(t testing.TB) *Kafka {
	t.Helper()
	java := needJava(t)
	m := slot.share(t, broker.Kafka, func(jars string) (brokerMachine, error) {
		return newKafka(java, jars, KafkaOptions{})
	}).(*kafkaMachine)
	return &Kafka{sharedBroker(t, m.javaBroker), m.address, m.inner}
}

// newKafka formats the data of a broker that has not been started.
func newKafka(java, jars string, opt KafkaOptions) (*kafkaMachine, error) {
	m := &kafkaMachine{}
	var controller string
	var err error
	if m.javaBroker, err = newJavaBroker(broker.Kafka, jars, &m.address, &m.inner, &controller); err != nil {
		return nil, err
	}
	properties, logging := filepath.Join(m.dir, "server.properties"), filepath.Join(m.dir, "log4j.properties")
	settings, err := kafkaSettings(m, controller, opt)
	if err == nil {
		err = os.WriteFile(properties, []byte(strings.Join(settings, "\n")+"\n"), 0o600)
	}
	if err == nil {
		err = os.WriteFile(logging, []byte(kafkaLogging), 0o600)
	}
	if err == nil {
		err = m.format(properties)
	}
	if err != nil {
		m.end()
		return nil, fmt.Errorf("make a Kafka: %w", err)
	}
	m.main = &child{
		name: "kafka " + m.address, dir: m.dir, path: java, patience: brokerPatience,
		args: javaArgs(jars, m.dir, "-Xms128m", "-Xmx256m", "-Dlog4j.configuration=file:"+logging, "kafka.Kafka", properties),
		ready: func() error {
			if err := dialOnce(m.address); err != nil {
				return err
			}
			return kafkaReady(m.inner)
		},
	}
	return m, nil
}

// kafkaLogging sends the log to the same place as other servers' logs.
const kafkaLogging = `log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss.SSS} %p %m (%c)%n
log4j.logger.org.apache.kafka=WARN
log4j.logger.kafka=WARN
log4j.logger.state.change.logger=WARN
log4j.logger.kafka.server.KafkaRaftServer=INFO
`

func kafkaSettings(m *kafkaMachine, controller string, opt KafkaOptions) ([]string, error) {
	protocol := "PLAINTEXT"
	switch {
	case opt.SASL && opt.TLS != nil:
		protocol = "SASL_SSL"
	case opt.SASL:
		protocol = "SASL_PLAINTEXT"
	case opt.TLS != nil:
		protocol = "SSL"
	}
	settings := []string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@" + controller,
		"listeners=CLIENT://" + m.address + ",INNER://" + m.inner + ",CONTROLLER://" + controller,
		"advertised.listeners=CLIENT://" + m.address + ",INNER://" + m.inner,
		"listener.security.protocol.map=CLIENT:" + protocol + ",INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"controller.listener.names=CONTROLLER", "inter.broker.listener.name=INNER",
		"log.dirs=" + filepath.Join(m.dir, dataName),
		"auto.create.topics.enable=false",
		// One broker means one replica.
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=4",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		// A group member does not wait for other members to join.
		"group.initial.rebalance.delay.ms=0",
		// The controller refuses a restarted broker until the old session ends, 9 s
		// by default.
		"broker.session.timeout.ms=2000", "broker.heartbeat.interval.ms=250",
		"log.cleaner.dedupe.buffer.size=2097152", "num.network.threads=2", "num.io.threads=4",
	}
	if opt.SASL {
		const login = "listener.name.client."
		settings = append(settings,
			"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
			login+`plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_`+KafkaUser+`="`+KafkaPassword+`";`,
			login+"scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
			login+"scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;")
	}
	tls, err := opt.TLS.kafkaSettings(m.dir)
	if err != nil {
		return nil, err
	}
	return append(append(settings, tls...), opt.Settings...), nil
}

// format makes the data of a broker that has never run, and a copy for wipes. The
// accounts for SCRAM are part of it.
func (m *kafkaMachine) format(properties string) error {
	args := []string{"format", "-t", kafkaCluster, "-c", properties}
	for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
		args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, KafkaUser, KafkaPassword))
	}
	if _, err := m.run(nil, "kafka.tools.StorageTool", args...); err != nil {
		return err
	}
	m.blank = filepath.Join(m.dir, "blank")
	return os.CopyFS(m.blank, os.DirFS(filepath.Join(m.dir, dataName)))
}

// kafkaReady asks a broker for its brokers.
func kafkaReady(address string) error {
	if err := dialOnce(address); err != nil {
		return err
	}
	return kafkaDo(address, brokerAskTimeout, func(ctx context.Context, client *kgo.Client) error {
		request := kmsg.NewPtrMetadataRequest()
		answer, err := request.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		if len(answer.Brokers) == 0 {
			return fmt.Errorf("%s is not registered yet", address)
		}
		return nil
	})
}

// kafkaDo calls a function with a new client.
func kafkaDo(address string, within time.Duration, do func(context.Context, *kgo.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return do(ctx, client)
}

// dialOnce returns an error if no server listens.
func dialOnce(address string) error {
	conn, err := net.DialTimeout("tcp", address, brokerAskTimeout)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Addr is the broker's address for clients, host:port.
func (k *Kafka) Addr() string { return k.address }

// CreateTopic creates a topic and waits until its partitions have a leader.
// Settings are such as "retention.ms=1000".
func (k *Kafka) CreateTopic(topic string, partitions int, settings ...string) {
	k.t.Helper()
	create := kmsg.NewPtrCreateTopicsRequest()
	create.TimeoutMillis = int32(kafkaRequestTimeout.Milliseconds())
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = topic, int32(partitions), 1
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = name, &value
		wanted.Configs = append(wanted.Configs, config)
	}
	create.Topics = append(create.Topics, wanted)
	// On a busy machine a broker with a late heartbeat has no controller for a
	// moment. An earlier attempt with a late answer may have created the topic.
	poll(k.t, "create topic "+topic, func() error {
		return kafkaDo(k.inner, kafkaRequestTimeout, func(ctx context.Context, client *kgo.Client) error {
			answer, err := create.RequestWith(ctx, client)
			if err != nil {
				return err
			}
			if err = kerr.ErrorForCode(answer.Topics[0].ErrorCode); errors.Is(err, kerr.TopicAlreadyExists) {
				return nil
			}
			return err
		})
	})
	poll(k.t, "leaders of "+topic, func() error { return k.led(topic) })
}

// led returns nil if every partition of a topic has a leader.
func (k *Kafka) led(topic string) error {
	return kafkaDo(k.inner, brokerAskTimeout, func(ctx context.Context, client *kgo.Client) error {
		ask := kmsg.NewPtrMetadataRequest()
		one := kmsg.NewMetadataRequestTopic()
		one.Topic = &topic
		ask.Topics = append(ask.Topics, one)
		answer, err := ask.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(answer.Topics[0].ErrorCode); err != nil {
			return err
		}
		for _, partition := range answer.Topics[0].Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return fmt.Errorf("partition %d: %w", partition.Partition, err)
			}
		}
		return nil
	})
}

// ConsoleConsume reads a topic from its beginning with Kafka's own Java console
// consumer until it has seen count records. A record is one line: its headers
// (name:value, separated by commas), its key and its value, separated by tabs.
func (k *Kafka) ConsoleConsume(topic string, count int) string {
	k.t.Helper()
	return k.tool("org.apache.kafka.tools.consumer.ConsoleConsumer",
		"--bootstrap-server", k.inner, "--topic", topic, "--from-beginning",
		"--max-messages", strconv.Itoa(count), "--timeout-ms", strconv.FormatInt(kafkaRequestTimeout.Milliseconds(), 10),
		"--property", "print.headers=true", "--property", "print.key=true")
}
