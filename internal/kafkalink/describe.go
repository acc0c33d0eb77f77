package kafkalink

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"seckill/internal/grace"
)

const (
	// tryTimeout bounds one attempt of Open, and tryPause is the time between two.
	tryTimeout = 4 * time.Second
	tryPause   = 250 * time.Millisecond
	// defaultMaxMessage is Kafka's default of max.message.bytes. It is taken where
	// the user may not read the topic's configuration.
	defaultMaxMessage = 1_048_588
	// largestBatch bounds what is sent at once where a topic allows more.
	largestBatch = 4 << 20
)

// The settings of a topic that are read.
const (
	maxMessage  = "max.message.bytes"
	compression = "compression.type"
)

// The values of compression.type with which a broker leaves records as they
// were written uncompressed.
const (
	byProducer   = "producer"
	uncompressed = "uncompressed"
)

// description is what the broker tells about a topic.
type description struct {
	// id changes when the topic is deleted and created again. It is zero with
	// brokers before 2.8.
	id         [16]byte
	partitions []int32
	maxBatch   int // bytes of one batch of records
}

// await describes the topic, and creates it where that is allowed. It tries
// again until the context ends, unless the error is one that stays.
func (t *Topic) await(ctx context.Context) (d description, err error) {
	err = grace.Retry(ctx, tryPause, Permanent, func() (err error) {
		try, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		d, err = t.inspect(try)
		return err
	})
	return d, err
}

// inspect describes the topic once, and creates it if it is missing and that is
// allowed.
func (t *Topic) inspect(ctx context.Context) (description, error) {
	d, err := t.look(ctx)
	if errors.Is(err, ErrNoTopic) && t.opt.Create {
		if err := t.create(ctx); err != nil {
			return d, err
		}
		t.log.Info("kafka: created the topic", "topic", t.opt.Name, "partitions", t.opt.Partitions, "replicas", t.opt.Replicas)
		// A broker may not know its own new topic for a moment.
		return d, fmt.Errorf("kafka: topic %s was created and is not ready yet", t.opt.Name)
	}
	if err != nil {
		return d, err
	}
	d.maxBatch, err = t.readSettings(ctx)
	return d, err
}

// look asks for the topic's id and partitions. It is an error if a partition has
// no leader.
func (t *Topic) look(ctx context.Context) (description, error) {
	ask := kmsg.NewPtrMetadataRequest()
	one := kmsg.NewMetadataRequestTopic()
	one.Topic = &t.opt.Name
	ask.Topics = append(ask.Topics, one)
	answer, err := ask.RequestWith(ctx, t)
	if err != nil {
		return description{}, Explain(err)
	}
	if len(answer.Topics) != 1 {
		return description{}, fmt.Errorf("kafka: asked for one topic, got %d", len(answer.Topics))
	}
	topic := &answer.Topics[0]
	if err := kerr.ErrorForCode(topic.ErrorCode); err != nil {
		return description{}, t.explain(err)
	}
	d := description{id: topic.TopicID}
	for i := range topic.Partitions {
		p := &topic.Partitions[i]
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil && p.Leader < 0 {
			return description{}, fmt.Errorf("topic %s, partition %d: %w", t.opt.Name, p.Partition, Explain(err))
		}
		d.partitions = append(d.partitions, p.Partition)
	}
	if len(d.partitions) == 0 {
		return description{}, fmt.Errorf("topic %s: kafka: it has no partitions", t.opt.Name)
	}
	return d, nil
}

// explain is Explain with the topic's name.
func (t *Topic) explain(err error) error {
	if plain := Explain(err); !errors.Is(plain, ErrNoTopic) {
		return fmt.Errorf("topic %s: %w", t.opt.Name, plain)
	}
	return noTopic(t.opt.Name)
}

func (t *Topic) create(ctx context.Context) error {
	ask := kmsg.NewPtrCreateTopicsRequest()
	ask.TimeoutMillis = int32(tryTimeout.Milliseconds())
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = t.opt.Name, int32(t.opt.Partitions), int16(t.opt.Replicas)
	if t.opt.NoCompression {
		setting := kmsg.NewCreateTopicsRequestTopicConfig()
		setting.Name, setting.Value = compression, kmsg.StringPtr(byProducer)
		topic.Configs = append(topic.Configs, setting)
	}
	ask.Topics = append(ask.Topics, topic)
	answer, err := ask.RequestWith(ctx, t)
	if err == nil && len(answer.Topics) == 1 {
		err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
		if text := answer.Topics[0].ErrorMessage; err != nil && text != nil {
			err = fmt.Errorf("%w (%s)", err, *text)
		}
	}
	if err == nil || errors.Is(err, kerr.TopicAlreadyExists) { // another instance was faster
		return nil
	}
	return fmt.Errorf("create topic %s: %w", t.opt.Name, Explain(err))
}

// readSettings checks the topic's settings and returns its max.message.bytes,
// which bounds a batch of records.
func (t *Topic) readSettings(ctx context.Context) (maxBatch int, err error) {
	ask := kmsg.NewPtrDescribeConfigsRequest()
	topic := kmsg.NewDescribeConfigsRequestResource()
	topic.ResourceType, topic.ResourceName, topic.ConfigNames = kmsg.ConfigResourceTypeTopic, t.opt.Name, []string{maxMessage, compression}
	ask.Resources = append(ask.Resources, topic)
	answer, err := ask.RequestWith(ctx, t)
	if err == nil && len(answer.Resources) == 1 {
		err = kerr.ErrorForCode(answer.Resources[0].ErrorCode)
	}
	if forbidden(err) {
		t.log.Debug("kafka: no rights to read the topic's configuration, the defaults are assumed", "topic", t.opt.Name)
		return defaultMaxMessage, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the settings of topic %s: %w", t.opt.Name, Explain(err))
	}
	settings := make(map[string]string)
	for _, resource := range answer.Resources {
		for _, config := range resource.Configs {
			if config.Value != nil {
				settings[config.Name] = *config.Value
			}
		}
	}
	if kind := settings[compression]; t.opt.NoCompression && kind != "" && kind != byProducer && kind != uncompressed {
		return 0, fmt.Errorf("kafka: topic %s has %s=%s: %w", t.opt.Name, compression, kind, ErrCompressed)
	}
	if settings[maxMessage] == "" {
		return defaultMaxMessage, nil
	}
	n, err := strconv.Atoi(settings[maxMessage])
	if err != nil {
		return 0, fmt.Errorf("kafka: %s of topic %s: %w", maxMessage, t.opt.Name, err)
	}
	return min(n, largestBatch), nil
}
