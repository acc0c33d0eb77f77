package carry

import (
	"testing"

	"seckill/test/server"
)

// partitions of every topic: some for each of two or three instances.
const partitions = 6

// Kafka is a Kafka that tests share.
func Kafka(t testing.TB) Broker { return &kafka{Kafka: server.SharedKafka(t)} }

type kafka struct {
	*server.Kafka
	topics []string
}

func (k *kafka) Settings(t testing.TB) map[string]string {
	topic := name("seckill-topic")
	k.topics = append(k.topics, topic)
	k.CreateTopic(topic, partitions)
	return map[string]string{
		"queue.kind": "kafka", "kafka.brokers": k.Addr(), "queue.topic": topic, "queue.group": topic + "-group",
	}
}

func (k *kafka) EventTopic() string {
	topic := name("seckill-events")
	k.CreateTopic(topic, 1)
	return topic
}

func (k *kafka) Events(topic string, messages int) string { return k.ConsoleConsume(topic, messages) }

func (k *kafka) Empty() {
	k.Kill()
	k.Wipe()
	k.Start()
	for _, topic := range k.topics {
		k.CreateTopic(topic, partitions)
	}
}
