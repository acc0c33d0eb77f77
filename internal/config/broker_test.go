package config_test

import (
	"strings"
	"testing"

	"seckill/internal/config"
)

func TestBrokers_AddressIsNeededWithItsQueueKind(t *testing.T) {
	for kind, key := range map[string]string{"kafka": "kafka.brokers", "rocketmq": "rocketmq.endpoint", "pulsar": "pulsar.url"} {
		_, err := config.Load(config.Sources{Flags: []config.Setting{set("queue.kind", kind)}})
		if err == nil || !strings.Contains(err.Error(), key+": must be set with queue.kind "+kind) {
			t.Errorf("queue.kind %s without %s: %v", kind, key, err)
		}
	}
}
