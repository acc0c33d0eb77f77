package pulsar_test

import (
	"testing"

	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierpulsar"
	"seckill/internal/carrier/carriertest"
	"seckill/test/server"
)

func TestCarrier_PassesTheSuite(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	for name, partitions := range map[string]int{"Unpartitioned": 0, "Partitioned": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			carriertest.Run(t, func(t *testing.T) carriertest.Fixture {
				opt, delayed := onTopic(t, p, partitions), onTopic(t, p, partitions)
				return carriertest.Fixture{
					Open: func(t *testing.T) carrier.Carrier {
						c, err := carrierpulsar.Open(within(t, patience), opt)
						if err != nil {
							t.Fatalf("open: %v", err)
						}
						return c
					},
					OpenDelayer: func(t *testing.T) carrier.Delayer {
						d, err := carrierpulsar.OpenDelayer(within(t, patience), delayed)
						if err != nil {
							t.Fatalf("open: %v", err)
						}
						return d
					},
				}
			})
		})
	}
}
