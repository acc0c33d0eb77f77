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

func TestSinks_HaveDefaults(t *testing.T) {
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
}

// Instances that are restarted one by one share one file of secrets.
func TestSinks_SecretOfARemovedSinkIsAWarning(t *testing.T) {
	const text = `
sinks:
  - {name: shop, url: "https://shop.example.com/hook"}
`
	const unused = "environment: SECKILL_SINK_OLD_SECRET: no sink named old is configured"
	cfg, err := loadText(t, text, "SECKILL_SINK_SHOP_SECRET="+goodWhsec, "SECKILL_SINK_OLD_SECRET="+goodWhsec)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(cfg.Warnings(), "\n"); got != unused {
		t.Errorf("warnings are %q", got)
	}
	_, err = loadText(t, text, "SECKILL_SINK_OLD_SECRET="+goodWhsec)
	if want := "sinks[0].secret: must be set with kind webhook, here or as SECKILL_SINK_SHOP_SECRET"; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

func TestSinks_CommandsWithoutEventsNeedNoSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seckill.yaml")
	if err := os.WriteFile(path, []byte("sinks: [{name: shop, url: 'https://shop.example.com'}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []Sources{{File: path}, {File: path, Environ: []string{"SECKILL_SINK_OTHER_SECRET=x"}}} {
		if _, err := Load(from); err == nil {
			t.Errorf("%+v: no error", from)
		}
		from.NoSinks = true
		if _, err := Load(from); err != nil {
			t.Errorf("%+v: %v", from, err)
		}
	}
}

func TestSinks_ReportsAllErrorsWithLines(t *testing.T) {
	_, err := loadText(t, `sinks:
  - name: shop
    url: http://10.0.0.1/hook
    secret: hunter2
  - name: other
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
		":6: sinks[1].sceret: unknown key",
		":7: sinks[1].url: must not have a user",
		":8: sinks[1].topic: has no effect with kind webhook",
		"sinks[1].secret: must be set with kind webhook, here or as SECKILL_SINK_OTHER_SECRET",
		":9: sinks[2].name: must be 1 to 32",
		":10: sinks[2].kind: kafka needs kafka.brokers",
		":11: sinks[2].url: has no effect with kind kafka",
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

// One mistake is told in one line: what follows from it is not.
func TestSinks_OneMistakeIsOneError(t *testing.T) {
	const good = "secret: " + goodWhsec + ", url: 'https://shop.example.com'"
	cases := []struct{ sinks, want string }{
		{"{name: shop, " + good + "}, {name: shop, " + good + "}", ":1: sinks[1].name: is also the name of sinks[0]"},
		{"{name: shop, kind: webhok, topic: x, " + good + "}", `:1: sinks[0].kind: must be one of webhook, kafka, rocketmq, pulsar, not "webhok"`},
		{"{name: Shop 1, " + good + "}", ":1: sinks[0].name: must be 1 to 32 small letters, digits and hyphens"},
		{"{name: shop, " + good + "}, {name: shop-previous, " + good + "}",
			":1: sinks[1].name: must be 1 to 32 small letters, digits and hyphens, without -previous at the end"},
		{"{name: shop, secret: " + goodWhsec + ", url: 'https://127.0.0.1/x'}", ":1: sinks[0].url: must be a public address; one of this machine"},
		{"{name: shop, secret: " + goodWhsec + ", url: 'https://[fd00::1]/x'}", ":1: sinks[0].url: must be a public address; one of this machine"},
		{"{name: shop, secret: " + goodWhsec + ", url: 'https://localhost/x'}", ":1: sinks[0].url: must be a public address; one of this machine"},
	}
	for _, c := range cases {
		_, err := loadText(t, "sinks: ["+c.sinks+"]\n")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v, want %s", c.sinks, err, c.want)
		}
	}
	_, err := loadText(t, "sinks: [{name: Shop 1, url: 'https://shop.example.com'}]\n")
	if err == nil || strings.Contains(err.Error(), "SECKILL_") {
		t.Errorf("error names a variable that cannot be: %v", err)
	}
	if _, err := loadText(t, "sinks: [{name: shop, allow_private: true, secret: "+goodWhsec+", url: 'http://127.0.0.1/x'}]\n"); err != nil {
		t.Error(err)
	}
}

// Workers would reject the events, and the alert would hide forgeries.
func TestSinks_TopicOfTheQueueIsRefused(t *testing.T) {
	const file = "queue: {kind: pulsar, topic: orders, expire_topic: later}\npulsar: {url: 'pulsar://127.0.0.1:6650'}\nkafka: {brokers: ['127.0.0.1:9092']}\n"
	for _, topic := range []string{"orders", "later"} {
		_, err := loadText(t, file+"sinks: [{name: bus, kind: pulsar, topic: "+topic+"}]\n")
		if err == nil || !strings.Contains(err.Error(), "sinks[0].topic: must not be a topic of the queue") {
			t.Errorf("%s: error is %v", topic, err)
		}
	}
	if _, err := loadText(t, file+"sinks: [{name: bus, kind: pulsar, topic: events}, {name: other, kind: kafka, topic: orders}]\n"); err != nil {
		t.Error(err)
	}
}

func TestSinks_OnlyFromFile(t *testing.T) {
	for _, key := range []string{"sinks", "sinks[0].url", "sinks.shop.url"} {
		_, err := Load(Sources{Flags: []Setting{{Flag: "--set", Key: key, Value: "x"}}})
		if err == nil || err.Error() != "--set: "+key+": sinks are set in the configuration file only" {
			t.Errorf("%s: error is %v", key, err)
		}
	}
	cfg, err := Load(Sources{Environ: []string{"SECKILL_SINK_MY_SHOP_SECRET=" + goodWhsec, "SECKILL_SINK_MY_SHOP_PREVIOUS_SECRET=" + goodWhsec}})
	if err != nil || strings.Count(strings.Join(cfg.Warnings(), "\n"), "no sink named my-shop is configured") != 2 {
		t.Errorf("error is %v", err)
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
