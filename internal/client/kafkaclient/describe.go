package kafkaclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"seckill/internal/background"
)

const (
	// tryTimeout bounds one attempt of Open, and tryPause is the pause between
	// attempts.
	tryTimeout = 4 * time.Second
	tryPause   = 250 * time.Millisecond
	// defaultMaxMessage is Kafka's default of max.message.bytes. It is used if
	// the user may not read the topic's configuration.
	defaultMaxMessage = 1_048_588
	// largestBatch bounds a batch if the topic allows more.
	largestBatch = 4 << 20
)

// The settings of a topic that this package reads.
const (
	maxMessage  = "max.message.bytes"
	compression = "compression.type"
)

// The values of compression.type for which a broker stores uncompressed records
// unchanged.
const (
	byProducer   = "producer"
	uncompressed = "uncompressed"
)

// description is the broker's description of a topic.
type description struct {
	// id changes when the topic is deleted and created again. It is zero with
	// brokers before version 2.8.
	id       [16]byte
	maxBatch int // size limit of a batch of records
}

// await describes the topic, and creates it if allowed. It retries until the
// context ends, unless the error is permanent.
func (t *Topic) await(ctx context.Context) (d description, err error) {
	err = background.Retry(ctx, tryPause, Permanent, func() (err error) {
		try, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		d, err = t.inspect(try)
		return err
	})
	return d, err
}

// inspect describes the topic once. If it is missing and may be created,
// inspect creates it.
func (t *Topic) inspect(ctx context.Context) (description, error) {
	d, err := t.metadata(ctx)
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

// metadata reads the topic's id. It returns an error if a partition has no
// leader.
func (t *Topic) metadata(ctx context.Context) (description, error) {
	// With authorized operations kadm asks a broker. Otherwise it may answer
	// from its cache.
	asking := kadm.WithAuthorizedOps(ctx)
	answer, err := ask(ctx, func() (kadm.Metadata, error) { return t.admin.Metadata(asking, t.opt.Name) })
	if forbidden(err) {
		return description{}, fmt.Errorf("topic %s: %w", t.opt.Name, err)
	}
	if err != nil {
		return description{}, err
	}
	topic := answer.Topics[t.opt.Name]
	if topic.Err != nil {
		return description{}, t.explain(topic.Err)
	}
	for _, p := range topic.Partitions {
		if p.Err != nil && p.Leader < 0 {
			return description{}, fmt.Errorf("topic %s, partition %d: %w", t.opt.Name, p.Partition, Explain(p.Err))
		}
	}
	if len(topic.Partitions) == 0 {
		return description{}, fmt.Errorf("topic %s: kafka: it has no partitions", t.opt.Name)
	}
	return description{id: topic.ID}, nil
}

// explain is Explain with the name of the topic.
func (t *Topic) explain(err error) error {
	if plain := Explain(err); !errors.Is(plain, ErrNoTopic) {
		return fmt.Errorf("topic %s: %w", t.opt.Name, plain)
	}
	return fmt.Errorf("kafka: topic %s %w", t.opt.Name, ErrNoTopic)
}

func (t *Topic) create(ctx context.Context) error {
	settings := make(map[string]*string)
	if t.opt.NoCompression {
		settings[compression] = kadm.StringPtr(byProducer)
	}
	_, err := ask(ctx, func() (kadm.CreateTopicResponse, error) {
		answer, err := t.admin.CreateTopic(ctx, int32(t.opt.Partitions), int16(t.opt.Replicas), settings, t.opt.Name)
		if err != nil && answer.ErrMessage != "" {
			err = fmt.Errorf("%w (%s)", err, answer.ErrMessage)
		}
		return answer, err
	})
	if err == nil || errors.Is(err, kerr.TopicAlreadyExists) { // another instance created it first
		return nil
	}
	return fmt.Errorf("create topic %s: %w", t.opt.Name, err)
}

// readSettings checks the topic's settings and returns max.message.bytes, which
// bounds a batch of records.
func (t *Topic) readSettings(ctx context.Context) (maxBatch int, err error) {
	found, err := ask(ctx, func() (kadm.ResourceConfig, error) {
		all, err := t.admin.DescribeTopicConfigs(ctx, t.opt.Name)
		if err != nil {
			return kadm.ResourceConfig{}, err
		}
		one, err := all.On(t.opt.Name, nil)
		return one, cmp.Or(err, one.Err)
	})
	if forbidden(err) {
		t.log.Debug("kafka: no rights to read the topic's configuration, the defaults are assumed", "topic", t.opt.Name)
		return defaultMaxMessage, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the settings of topic %s: %w", t.opt.Name, err)
	}
	settings := make(map[string]string)
	for _, config := range found.Configs {
		settings[config.Key] = config.MaybeValue()
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
