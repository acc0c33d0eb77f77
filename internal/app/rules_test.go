package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/config"
	"seckill/internal/recovery"
	"seckill/test/rig"
	"seckill/test/server"
)

// embedded is the configuration of an instance that needs no server.
func embedded(t *testing.T) *config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Shop.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	return cfg
}

// onRedis is that of one with its ledger in Redis.
func onRedis(t *testing.T, redis *server.RedisServer) *config.Config {
	t.Helper()
	cfg := embedded(t)
	cfg.Ledger.Kind, cfg.Redis.Addrs = config.LedgerRedis, []string{redis.Addr()}
	secret := config.NewSecret(strings.Repeat("0123456789abcdef", 2))
	cfg.Admin.Token, cfg.Auth.JWTSecret, cfg.Token.Secret, cfg.Payment.SandboxSecret = secret, secret, secret, secret
	return cfg
}

// opens opens a sale of product 1.
func (p *parts) opens(t *testing.T) {
	t.Helper()
	now := time.Now()
	_, err := p.lifecycle.Create(t.Context(), seckill.Product{
		ID: 1, Group: 1, Name: "product", PriceCents: 999, Currency: "CNY", Stock: 5, PerUserLimit: 1, Shards: 1,
		Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
	}, rig.Operator)
	rig.Must(t, err)
	rig.Until(t, "the sale is preheated", func() bool { // a loaded machine may keep Redis waiting
		_, err = p.lifecycle.Preheat(t.Context(), 1, rig.Operator)
		return err == nil
	})
}

// selector is a series that a rule reads, such as seckill_up{part="store"}.
type selector struct {
	text   string
	name   string
	labels []string // as in part="store"
	// counted says that the rule looks at its growth, so that the series must be
	// there before anything happens.
	counted bool
}

var (
	selectorPattern = regexp.MustCompile(`(rate\(|increase\()?(seckill_[a-z_]+)(?:\{([^}]*)\})?`)
	seriesPattern   = regexp.MustCompile(`(?m)^(seckill_[a-z_]+)(?:\{(.*)\})? \S+$`)
)

// ruleSelectors reads what the rules for Prometheus look at.
func ruleSelectors(t *testing.T) (all []selector) {
	t.Helper()
	file, err := os.ReadFile("../../deploy/prometheus-rules.yaml")
	rig.Must(t, err)
	var rules struct {
		Groups []struct {
			Rules []struct{ Expr string }
		}
	}
	rig.Must(t, yaml.Unmarshal(file, &rules))
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			for _, m := range selectorPattern.FindAllStringSubmatch(rule.Expr, -1) {
				s := selector{text: m[0], name: m[2], counted: m[1] != ""}
				for label := range strings.SplitSeq(m[3], ",") {
					s.labels = append(s.labels, strings.TrimSpace(label)) // "" is in all
				}
				all = append(all, s)
			}
		}
	}
	return all
}

// shown is the labels of each series of an instance, by the metric's name.
type shown map[string][]string

func scrape(t *testing.T, a *App) shown {
	t.Helper()
	answer := httptest.NewRecorder()
	a.parts.metrics.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	all := make(shown)
	for _, m := range seriesPattern.FindAllStringSubmatch(answer.Body.String(), -1) {
		all[m[1]] = append(all[m[1]], m[2])
	}
	return all
}

func (s shown) has(want selector) bool {
	return slices.ContainsFunc(s[want.name], func(labels string) bool {
		return !slices.ContainsFunc(want.labels, func(label string) bool { return !strings.Contains(labels, label) })
	})
}

// A series that begins with its first event begins at 1, and no rule sees it
// grow: the first alert would page nobody.
func TestWhatRulesSeeGrowIsThereBeforeItGrows(t *testing.T) {
	selectors := slices.DeleteFunc(ruleSelectors(t), func(s selector) bool { return !s.counted })
	if len(selectors) == 0 {
		t.Fatal("no rule looks at growth")
	}
	for _, role := range Roles {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			a, err := New(embedded(t), Options{Roles: []string{role}})
			rig.Must(t, err)
			runs(t, a)
			rig.Until(t, "the duties are there", func() bool { return len(scrape(t, a)["seckill_duty_failures_total"]) > 0 })
			series := scrape(t, a)
			for _, s := range selectors {
				if !series.has(s) {
					t.Errorf("no %s", s.text)
				}
			}
			if n := len(series["seckill_alerts_total"]); n != len(alert.Kinds) {
				t.Errorf("%d kinds of alerts are counted, %d exist", n, len(alert.Kinds))
			}
			for name, labels := range series {
				for _, all := range labels {
					if strings.Contains(all, " ") {
						t.Errorf("%s{%s}: a label value is a sentence", name, all)
					}
				}
			}
			if n := len(series["seckill_promises_reoffered_total"]); n != len(recovery.Results) {
				t.Errorf("%d results of promises are counted, %d exist", n, len(recovery.Results))
			}
		})
	}
}

// What stands on Redis, on a broker, on the shop's keys and on a sink is there
// with them,
// what is a sale's with the sale.
func TestAnInstanceShowsEverySeriesOfTheRules(t *testing.T) {
	t.Parallel()
	login := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(login.Close)
	cfg := onRedis(t, server.Redis(t, server.RedisOptions{}))
	cfg.Auth.JWKSURL = login.URL
	cfg.Sinks = []config.Sink{{
		Name: "shop", Kind: config.SinkWebhook, URL: config.PrivateURL(login.URL), AllowPrivate: true,
		Secret: config.NewSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
	}}
	cfg.Queue.Kind, cfg.Kafka.Brokers = config.QueueKafka, []string{"127.0.0.1:1"} // nobody listens
	a := started(t, cfg, func(*parts) {})
	a.parts.opens(t)
	_, err := a.parts.reconciler.Run(t.Context(), 1, false, "test")
	rig.Must(t, err)
	for _, s := range ruleSelectors(t) {
		rig.Until(t, s.text+" is there", func() bool { return scrape(t, a).has(s) })
	}
}
