package carriertest_test

import (
	"testing"

	"seckill/internal/carrier"
	"seckill/internal/carrier/carriertest"
)

// Runs the suite itself with a simple broker.
func TestMemory_PassesTheSuite(t *testing.T) {
	carriertest.Run(t, func(*testing.T) carriertest.Fixture {
		broker := carriertest.NewMemory()
		return carriertest.Fixture{
			Open:        func(*testing.T) carrier.Carrier { return broker },
			OpenDelayer: func(*testing.T) carrier.Delayer { return carriertest.NewMemoryDelayer() },
		}
	})
}
