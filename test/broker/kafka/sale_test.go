package kafka_test

import (
	"os"
	"testing"

	"seckill/test/carry"
	"seckill/test/engine"
	"seckill/test/server"
)

func TestMain(m *testing.M) { os.Exit(engine.Main(m)) }

// broker is Kafka as the stories of package carry see it.
type broker struct{ *server.Kafka }

func (b broker) Settings(t testing.TB) map[string]string {
	topic := carry.Name(t, "seckill-topic")
	b.CreateTopic(topic, 4)
	return map[string]string{
		"queue.kind": "kafka", "kafka.brokers": b.Addr(), "queue.topic": topic, "queue.group": topic + "-group",
	}
}

func TestSale_OrdersTravelByKafka(t *testing.T) { carry.Sale(t, broker{server.SharedKafka(t)}) }

func TestSale_NothingIsLostWhenBrokerAndEnginesAreKilled(t *testing.T) {
	carry.Kills(t, broker{server.SharedKafka(t)})
}

func TestSale_MovesFromOutboxToKafkaAndBack(t *testing.T) {
	carry.Move(t, broker{server.SharedKafka(t)})
}

// TestMeasure is for bench/README.md.
func TestMeasure(t *testing.T) { carry.Measure(t, broker{server.SharedKafka(t)}, 10_000) }
