package carry

import (
	"testing"

	"seckill/test/server"
)

// RocketMQ is a RocketMQ that tests share.
func RocketMQ(t testing.TB) Broker { return &rocketmq{RocketMQ: server.SharedRocketMQ(t)} }

type rocketmq struct {
	*server.RocketMQ
	topics []string
}

func (r *rocketmq) Settings(t testing.TB) map[string]string {
	topic := name("seckill-topic")
	r.topics = append(r.topics, topic)
	r.create(topic)
	return map[string]string{
		"queue.kind": "rocketmq", "rocketmq.endpoint": r.Addr(), "queue.topic": topic, "queue.expire_topic": topic + "-expire", "queue.group": topic + "-group",
	}
}

func (r *rocketmq) create(topic string) {
	r.CreateTopic(topic, server.RocketMQNormal)
	r.CreateTopic(topic+"-expire", server.RocketMQDelay)
	r.CreateGroup(topic + "-group")
	r.CreateGroup(topic + "-group-expire")
}

func (r *rocketmq) EventTopic() string {
	topic := name("seckill-events")
	r.CreateTopic(topic, server.RocketMQFIFO)
	return topic
}

func (r *rocketmq) Events(topic string, _ int) string { return r.ConsolePrint(topic) }

func (r *rocketmq) Empty() {
	r.Kill()
	r.Wipe()
	r.Start()
	for _, topic := range r.topics {
		r.create(topic)
	}
}
