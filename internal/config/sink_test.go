package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const goodWhsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func loadText(t *testing.T, text string, environ ...string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seckill.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(Sources{File: path, Environ: environ})
	return cfg, err
}

func TestSinks_AreReadWithDefaults(t *testing.T) {
	cfg, err := loadText(t, `
sinks:
  - name: shop
    url: https://shop.example.com/hook
    secret: `+goodWhsec+`
  - name: data-lake
    kind: kafka
    topic: orders
    rate_per_second: 100
    retry_delays: [1s, 2m]
    from: now
kafka:
  brokers: [127.0.0.1:9092]
`)
	if err != nil {
		t.Fatal(err)
	}
	shop, lake := cfg.Sinks[0], cfg.Sinks[1]
	if shop.Kind != SinkWebhook || shop.From != SinkFromStart || shop.Concurrency != 8 || len(shop.RetryDelays) < 5 || shop.Secret.Reveal() != goodWhsec {
		t.Errorf("shop is %+v", shop)
	}
	if lake.Kind != SinkKafka || lake.Topic != "orders" || lake.RatePerSecond != 100 || lake.From != SinkFromNow || len(lake.RetryDelays) != 2 || lake.RetryDelays[1] != 2*time.Minute {
		t.Errorf("data-lake is %+v", lake)
	}
}

func TestSinks_SecretsComeFromTheEnvironment(t *testing.T) {
	const text = `
sinks:
  - {name: my-shop, url: "https://shop.example.com/hook"}
`
	cfg, err := loadText(t, text, "SECKILL_SINK_MY_SHOP_SECRET="+goodWhsec, "SECKILL_SINK_MY_SHOP_PREVIOUS_SECRET="+goodWhsec)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Sinks[0].Secret.Reveal() != goodWhsec || cfg.Sinks[0].PreviousSecret.Reveal() != goodWhsec {
		t.Error("secrets of the environment are not set")
	}
	_, err = loadText(t, text, "SECKILL_SINK_MY_SHOP_SECRET=short")
	if err == nil || !strings.Contains(err.Error(), "environment: SECKILL_SINK_MY_SHOP_SECRET: must be whsec_") || strings.Contains(err.Error(), "short") {
		t.Errorf("error is %v", err)
	}
	_, err = loadText(t, text, "SECKILL_SINK_MY_SHOP_SECRET="+goodWhsec, "SECKILL_SINK_OTHER_SECRET="+goodWhsec)
	if err == nil || !strings.Contains(err.Error(), "environment: SECKILL_SINK_OTHER_SECRET: unknown variable") {
		t.Errorf("error is %v", err)
	}
}

func TestSinks_AllMistakesAreToldWithTheirLines(t *testing.T) {
	_, err := loadText(t, `sinks:
  - name: shop
    url: http://10.0.0.1/hook
    secret: hunter2
  - name: shop
    sceret: x
    url: https://user:pass@example.com/
    topic: orders
  - name: Bad Name
    kind: kafka
    url: https://example.com
  - name: pulse
    kind: pulsr
    topic: a/b
  - just text
  - name: empty
    secret:
`)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		":3: sinks[0].url: must begin with https://",
		":4: sinks[0].secret: must be whsec_ and base64",
		":5: sinks[1].name: is that of sinks[0] too",
		":6: sinks[1].sceret: unknown key, did you mean sinks[1].secret?",
		":7: sinks[1].url: must not have a user",
		":8: sinks[1].topic: is of no use with kind webhook",
		"sinks[1].secret: must be set with kind webhook, here or as SECKILL_SINK_SHOP_SECRET",
		":9: sinks[2].name: must be 1 to 32",
		":10: sinks[2].kind: kafka needs kafka.brokers",
		":11: sinks[2].url: is of no use with kind kafka",
		"sinks[2].topic: must be set with kind kafka",
		":13: sinks[3].kind: must be one of",
		":14: sinks[3].topic: must have 1 to",
		":1: sinks: entry 5 must have members",
		":17: sinks[5].secret: has no value",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "user:pass") {
		t.Errorf("error shows a secret: %v", err)
	}
}

func TestSinks_MustBeAList(t *testing.T) {
	_, err := loadText(t, "sinks:\n  shop:\n    url: https://example.com\n")
	if err == nil || !strings.Contains(err.Error(), ":1: sinks: must be a list") {
		t.Errorf("error is %v", err)
	}
	if cfg, err := loadText(t, "sinks:\n"); err != nil || len(cfg.Sinks) != 0 {
		t.Errorf("an empty list is %v, %v", cfg, err)
	}
	_, err = loadText(t, "sinks: ["+strings.Repeat("{name: a, url: 'https://a', secret: "+goodWhsec+"},", maxSinks+1)+"]\n")
	if err == nil || !strings.Contains(err.Error(), "sinks: must be at most 16 sinks") {
		t.Errorf("error is %v", err)
	}
}

func TestSinks_ArePrintedWithoutSecrets(t *testing.T) {
	cfg, err := loadText(t, `
sinks:
  - {name: shop, url: "https://shop.example.com/hook/k3y", secret: "`+goodWhsec+`", previous_secret: "`+goodWhsec+`"}
`)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := cfg.Print(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "k3y") || strings.Contains(text, goodWhsec[6:]) ||
		!strings.Contains(text, "sinks:\n  - name: shop\n    kind: webhook\n    url: https://shop.example.com/********\n    secret: '********'\n") {
		t.Errorf("printed:\n%s", text)
	}
}
