package pulsar_test

import (
	"flag"
	"os"
	"testing"

	"seckill/test/carry"
	"seckill/test/engine"
)

// atOnce is how many tests run at the same time. They wait more than they work.
const atOnce = "8"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err) // the flag is the testing package's own
	}
	flag.Parse() // a number that is asked for counts
	os.Exit(engine.Main(m))
}

func TestSale_OrdersTravelByPulsar(t *testing.T) { carry.Sale(t, carry.Pulsar(t)) }

func TestSale_NothingIsLostWhenBrokerAndEnginesAreKilled(t *testing.T) {
	carry.Kills(t, carry.Pulsar(t))
}

func TestKilledInstance_OrdersAreWrittenSoon(t *testing.T) { carry.Handover(t, carry.Pulsar(t)) }

func TestBroker_FrozenLetsTheEngineStop(t *testing.T) { carry.Frozen(t, carry.Pulsar(t)) }

// TestMeasure is for bench/README.md.
func TestMeasure(t *testing.T) { carry.Measure(t, carry.Pulsar(t), 2_500) }

// TestMeasureExpiry is for bench/README.md.
func TestMeasureExpiry(t *testing.T) { carry.MeasureExpiry(t, carry.Pulsar(t)) }
