package config_test

import (
	"slices"
	"strings"
	"testing"

	"seckill/internal/config"
)

func TestBrokers_QueueKindNeedsBrokerAddress(t *testing.T) {
	for kind, key := range map[string]string{"kafka": "kafka.brokers", "rocketmq": "rocketmq.endpoint", "pulsar": "pulsar.url"} {
		_, err := config.Load(config.Sources{Flags: []config.Setting{set("queue.kind", kind)}})
		if err == nil || !strings.Contains(err.Error(), key+": must be set with queue.kind "+kind) {
			t.Errorf("queue.kind %s without %s: %v", kind, key, err)
		}
	}
}

func TestPulsar_URLGivesAddressesAndTLS(t *testing.T) {
	for _, c := range []struct {
		url       string
		addresses []string
		isSecure  bool
	}{
		{"pulsar://a:6650", []string{"a:6650"}, false},
		{"pulsar+ssl://a:6651,b:6651/", []string{"a:6651", "b:6651"}, true},
	} {
		p := config.Pulsar{URL: c.url}
		spoken, err := p.TLSConfig()
		if err != nil || (spoken != nil) != c.isSecure || !slices.Equal(p.Addresses(), c.addresses) {
			t.Errorf("%s: addresses %q, TLS %v, %v", c.url, p.Addresses(), spoken != nil, err)
		}
	}
}
