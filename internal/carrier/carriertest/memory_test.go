package carriertest_test

import (
	"testing"

	"seckill/internal/carrier"
	"seckill/internal/carrier/carriertest"
)

// The suite itself is held to a broker that is known.
func TestMemoryPassesTheSuite(t *testing.T) {
	carriertest.Run(t, func(*testing.T) carriertest.Fixture {
		broker := carriertest.NewMemory()
		return carriertest.Fixture{
			Open:        func(*testing.T) carrier.Carrier { return broker },
			OpenDelayer: func(*testing.T) carrier.Delayer { return carriertest.NewMemoryDelayer() },
		}
	})
}
