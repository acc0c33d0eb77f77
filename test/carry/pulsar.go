package carry

import (
	"strings"
	"testing"

	"seckill/test/server"
)

// Pulsar is a Pulsar that tests share.
func Pulsar(t testing.TB) Broker { return &pulsar{Pulsar: server.SharedPulsar(t)} }

type pulsar struct {
	*server.Pulsar
	topics []string
}

func (p *pulsar) Settings(t testing.TB) map[string]string {
	topic := name("seckill-topic")
	p.topics = append(p.topics, topic)
	p.create(topic)
	return map[string]string{
		"queue.kind": "pulsar", "pulsar.url": p.URL(), "queue.topic": topic, "queue.expire_topic": topic + "-expire", "queue.group": topic + "-group",
	}
}

func (p *pulsar) create(topic string) {
	p.CreateTopic(topic, partitions)
	p.CreateTopic(topic+"-expire", partitions)
}

func (p *pulsar) EventTopic() string {
	topic := name("seckill-events")
	p.CreateTopic(topic, 1)
	return topic
}

func (p *pulsar) Events(topic string, messages int) string {
	var all strings.Builder
	for _, m := range p.ReadTopic(topic, messages) {
		all.Write(m.Payload)
	}
	return all.String()
}

func (p *pulsar) Empty() {
	p.Kill()
	p.Wipe()
	p.Start()
	for _, topic := range p.topics {
		p.create(topic)
	}
}
