package kafka_test

import (
	"os"
	"testing"

	"seckill/test/carry"
	"seckill/test/engine"
)

func TestMain(m *testing.M) { os.Exit(engine.Main(m)) }

func TestSale_OrdersTravelByKafka(t *testing.T) { carry.Sale(t, carry.Kafka(t)) }

func TestSale_NothingIsLostWhenBrokerAndEnginesAreKilled(t *testing.T) {
	carry.Kills(t, carry.Kafka(t))
}

func TestKilledInstance_OrdersAreWrittenSoon(t *testing.T) { carry.Handover(t, carry.Kafka(t)) }

func TestBroker_FrozenLetsTheEngineStop(t *testing.T) { carry.Frozen(t, carry.Kafka(t)) }

func TestCluster_MasterAwayHoldsUpItsOwnOrdersOnly(t *testing.T) {
	carry.MasterAway(t, carry.Kafka(t))
}

func TestSale_MovesFromOutboxToKafkaAndBack(t *testing.T) { carry.Move(t, carry.Kafka(t)) }

// TestMeasure is for bench/README.md.
func TestMeasure(t *testing.T) { carry.Measure(t, carry.Kafka(t), 10_000) }
