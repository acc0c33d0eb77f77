package rocketmq_test

import (
	"os"
	"testing"

	"seckill/test/carry"
	"seckill/test/engine"
)

func TestMain(m *testing.M) { os.Exit(engine.Main(m)) }

func TestSale_OrdersTravelByRocketMQ(t *testing.T) { carry.Sale(t, carry.RocketMQ(t)) }

func TestSale_NothingIsLostWhenBrokerAndEnginesAreKilled(t *testing.T) {
	carry.Kills(t, carry.RocketMQ(t))
}

func TestKilledInstance_OrdersAreWrittenSoon(t *testing.T) { carry.Handover(t, carry.RocketMQ(t)) }

func TestBroker_FrozenLetsTheEngineStop(t *testing.T) { carry.Frozen(t, carry.RocketMQ(t)) }

// TestMeasure is for bench/README.md.
func TestMeasure(t *testing.T) { carry.Measure(t, carry.RocketMQ(t), 2_500) }

// TestMeasureExpiry is for bench/README.md.
func TestMeasureExpiry(t *testing.T) { carry.MeasureExpiry(t, carry.RocketMQ(t)) }
