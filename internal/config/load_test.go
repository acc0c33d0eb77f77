package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/internal/config"
)

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seckill.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func set(key, value string) config.Setting {
	return config.Setting{Flag: "--set", Key: key, Value: value}
}

// sources are settings as a person gives them: by flag, but secrets in the
// environment.
func sources(settings []config.Setting) config.Sources {
	private := map[string]string{}
	for _, d := range config.Describe() {
		if d.Private {
			private[d.Key] = d.Env()
		}
	}
	var from config.Sources
	for _, s := range settings {
		if env, found := private[s.Key]; found {
			from.Environ = append(from.Environ, env+"="+s.Value)
		} else {
			from.Flags = append(from.Flags, s)
		}
	}
	return from
}

func TestLoad_DefaultIsEmbeddedOnLoopback(t *testing.T) {
	cfg, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Shop.Listen != "127.0.0.1:8080" || cfg.Admin.Listen != "127.0.0.1:8081" {
		t.Errorf("listens on %s and %s, want loopback", cfg.Shop.Listen, cfg.Admin.Listen)
	}
	if got, want := cfg.StoreDSN(), "sqlite:data/seckill.db"; got != want {
		t.Errorf("StoreDSN = %s, want %s", got, want)
	}
	if got := cfg.Worker.RetryDelays; len(got) != 16 || got[0] != 10*time.Second || got[11] != 10*time.Minute || got[15] != 2*time.Hour {
		t.Errorf("retry ladder = %v, want the 16 designed steps", got)
	}
}

func TestLoad_FlagsOverrideEnvironmentOverridesFile(t *testing.T) {
	file := writeFile(t, `
data_dir: /from/file
shop: {listen: "127.0.0.1:1", public_url: "https://file.example"}
worker:
  batch_size: 7
  retry_delays: [1s, 2s]
limit:
  # all commented out
order: {expire_after: 15m}
token: {required: true}
reconcile: {repair: off}
`)
	cfg, err := config.Load(config.Sources{
		File: file,
		Environ: []string{
			"SECKILL_SHOP_LISTEN=127.0.0.1:2", "SECKILL_WORKER_BATCH_SIZE=8", "SECKILL_DATA_DIR=/from/env",
			"SECKILL_PAGE_TITLE=", "SECKILL_FAULT=reserve", "SECKILL_ADMIN_PPROF=true", "OTHER_PROGRAM=1", "seckill_lower=1",
		},
		Flags: []config.Setting{set("shop.listen", "127.0.0.1:3"), set("shop.listen", "127.0.0.1:4")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Shop.Listen != "127.0.0.1:4" || cfg.Worker.BatchSize != 8 || cfg.DataDir != "/from/env" ||
		cfg.Shop.PublicURL != "https://file.example" || cfg.Order.ExpireAfter != 15*time.Minute || !cfg.Token.Required || !cfg.Admin.Pprof ||
		!slices.Equal(cfg.Worker.RetryDelays, []time.Duration{time.Second, 2 * time.Second}) {
		t.Errorf("sources laid over each other wrongly: %+v", cfg)
	}
}

// Every key can be set by its own variable, underscores within the key or not.
func TestKeys_EachHasItsOwnVariable(t *testing.T) {
	values := map[string]string{
		"number": "9", "bool": "true", "secret": "0123456789abcdef", "duration": "1s", "durations": "1s, 2s", "texts": "a:1, b:2",
		"secrets": "fedcba9876543210, 0123456789abcdef",
	}
	texts := map[string]string{
		"data_dir": "/d", "shop.listen": ":9", "admin.listen": ":8", "shop.public_url": "http://a", "shop.trusted_proxies": "10.0.0.0/8, ::1", "alert.webhook_url": "http://b",
		"challenge.kind": "shop", "challenge.verify_url": "http://c", "challenge.widget_url": "http://d", "ledger.kind": "redis", "queue.kind": "outbox", "queue.topic": "t", "queue.expire_topic": "e", "queue.group": "g", "kafka.sasl": "plain", "kafka.username": "u", "kafka.tls_ca": "/a.pem", "rocketmq.endpoint": "h:1", "rocketmq.access_key": "k", "rocketmq.tls_ca": "/a.pem", "pulsar.url": "pulsar+ssl://h:1", "pulsar.tls_ca": "/a.pem", "store.dsn": "mysql:u@tcp(h:1)/d",
		"redis.username": "u", "redis.sentinel_master": "m", "redis.sentinel_username": "su", "redis.prefix": "p:",
		"reconcile.repair": "safe", "log.format": "json", "log.level": "warn",
		"auth.jwks_url": "https://c", "auth.jwks_refresh": "10s", "auth.issuer": "i", "auth.audience": "a",
		"shop.cors_origins": "https://a.example, http://b:8080", "page.url": "https://c.example/sale", "page.login_url": "https://d.example/in?to={return}", "page.login_ttl": "1h", "page.pay_url": "https://d.example/pay/{order_no}?back={return}",
		"admin.hosts": "engine-1, seckill.shop.svc.cluster.local", "shop.tls_cert": "/c.pem", "shop.tls_key": "/k.pem", "redis.tls_ca": "/a.pem", "redis.tls_cert": "/c.pem", "redis.tls_key": "/k.pem", "store.tls_ca": "/a.pem", "shop.max_conns": "100", "store.max_conns": "18",
		"page.image_hosts": "img.example, *.cdn.example, https://i.example:8443",
	}
	var environ []string
	seen := map[string]string{}
	for _, d := range config.Describe() {
		if other := seen[d.Env()]; other != "" {
			t.Errorf("%s and %s share %s", other, d.Key, d.Env())
		}
		seen[d.Env()] = d.Key
		value, special := texts[d.Key]
		if !special {
			value = values[d.Type()]
		}
		environ = append(environ, d.Env()+"="+value)
	}
	cfg, err := config.Load(config.Sources{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Limit.BuyerPerSecond != 9 || cfg.Auth.JWTSecret.Reveal() != "0123456789abcdef" || cfg.Store.DSN != "mysql:u@tcp(h:1)/d" ||
		cfg.Reconcile.Repair != config.RepairSafe || len(cfg.Worker.RetryDelays) != 2 || cfg.Purchase.Timeout != time.Second ||
		!slices.Equal(cfg.Redis.Addrs, []string{"a:1", "b:2"}) || cfg.Redis.Password.Reveal() != "0123456789abcdef" || !cfg.Redis.TLS ||
		len(cfg.Token.Secrets()) != 3 || string(cfg.Token.Secrets()[1]) != "fedcba9876543210" ||
		len(cfg.Auth.JWTPreviousSecrets) != 2 || cfg.Auth.JWTPreviousSecrets[1].Reveal() != "0123456789abcdef" {
		t.Errorf("variables did not reach their fields: %+v", cfg)
	}
}

func TestLoad_LoginURLNeedsJWTSecret(t *testing.T) {
	keys, page := set("auth.jwks_url", "https://login.example/keys"), set("page.login_url", "https://shop.example/login")
	shared := []config.Setting{set("ledger.kind", "redis"), set("redis.addrs", "a:1"), keys, page}
	for _, key := range []string{"admin.token", "token.secret", "payment.sandbox_secret"} {
		shared = append(shared, set(key, "0123456789abcdef"))
	}
	if _, err := config.Load(sources(shared)); err == nil || !strings.Contains(err.Error(), "auth.jwt_secret") {
		t.Errorf("the login's keys alone: %v", err)
	}
	for _, more := range [][]config.Setting{{page}, {keys, page}, append(shared, set("auth.jwt_secret", "0123456789abcdef"))} {
		if _, err := config.Load(sources(more)); err != nil {
			t.Errorf("%v: %v", more, err)
		}
	}
}

func TestLoad_EachBadValueIsRefusedWithItsKey(t *testing.T) {
	long := strings.Repeat("x", 5000)
	bad := map[string][]string{
		"data_dir":                       {"", "a\x00b", long},
		"shop.listen":                    {"", "8080", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:http", "a b:80", "http://x:80"},
		"shop.public_url":                {"example.com", "ftp://x", "http://", "http://x/#f", ":"},
		"admin.listen":                   {"", "8081", "127.0.0.1:99999", "127.0.0.1:8080"},
		"admin.hosts":                    {"a b", "http://a", "a:8081", "*.example", "a,", "a/b", strings.Repeat("a,", 100) + "a", strings.Repeat("a", 257)},
		"admin.token":                    {"short", "0123456789 abcdef", "0123456789abcdé0123", strings.Repeat("x", 1025)},
		"admin.pprof":                    {"", "maybe", "2"},
		"auth.jwt_secret":                {"fifteen bytes..", long},
		"auth.jwt_previous_secrets":      {"hunter2", "0123456789abcdef,", "0123456789abcdef,hunter2", strings.Repeat("0123456789abcdef,", 7) + "0123456789abcdef", long},
		"auth.jwks_url":                  {"login.example/hunter2", "http://login.example/keys", "https://u:hunter2@login.example/keys", "https://"},
		"auth.jwks_refresh":              {"0", "9s", "25h", "300"},
		"auth.issuer":                    {"a\nb", long},
		"auth.audience":                  {"seckill-login", "a\nb", long},
		"shop.drain":                     {"-1s", "99ms", "11s", "1"},
		"auth.leeway":                    {"-1s", "500ms", "11m", "60"},
		"token.secret":                   {"fifteen bytes..", long},
		"token.required":                 {"yes please", ""},
		"payment.sandbox_page":           {"yes please", ""},
		"token.previous_secrets":         {"fifteen bytes..", "0123456789abcdef,hunter2", "0123456789abcdef,", strings.Repeat("0123456789abcdef,", 7) + "0123456789abcdef"},
		"token.lead":                     {"-1s", "61m", "60", ""},
		"challenge.kind":                 {"", "POW", "captcha"},
		"challenge.pow_bits":             {"0", "21", "", "many"},
		"challenge.pow_calm_per_second":  {"0", "10000001", ""},
		"challenge.per_buyer_per_minute": {"0", "10001", ""},
		"challenge.verify_url":           {"captcha.example/hunter2", "ftp://x", "http://"},
		"challenge.verify_secret":        {"hunter2", long},
		"challenge.widget_url":           {"captcha.example", "javascript:hunter2"},
		"limit.buyer_per_second":         {"-1", "", "x", "1.5", "10000001", "99999999999999999999"},
		"limit.ip_per_second":            {"-1", "", "10000001"},
		"limit.product_per_second":       {"-1", "", "10000001"},
		"purchase.queue_size":            {"0", "1000001", "511"},
		"purchase.max_batch":             {"0", "10001", "8193"},
		"purchase.timeout":               {"-1s", "9ms", "61s", "2", ""},
		"ledger.kind":                    {"", "Redis", "etcd"},
		"ledger.takeover_after":          {"", "5", "0s", "999ms", "-1s", "25h"},
		"ledger.return_after":            {"", "60", "999ms", "-1s", "25h"},
		"redis.addrs":                    {"127.0.0.1:6379", "x", "x:", ":6379", "x:70000", "x:0", "a:1,", "redis://:hunter2@x:1", strings.Repeat("a:1,", 100) + "a:1"},
		"redis.username":                 {"a\nb", long},
		"redis.password":                 {long},
		"redis.sentinel_master":          {"a\nb", long},
		"redis.sentinel_username":        {"sue", "a\nb", long},
		"redis.sentinel_password":        {"hunter2", long},
		"redis.tls":                      {"", "maybe"},
		"redis.tls_ca":                   {"/without-tls.pem", "a\x00b", long},
		"redis.tls_cert":                 {"/without-tls.pem", "a\x00b", long},
		"redis.tls_key":                  {"/without-tls.pem", "a\nb", long},
		"redis.prefix":                   {"", "{x}:", "a}", "a\nb", strings.Repeat("x", 65)},
		"redis.wait_replicas":            {"-1", "17", "", "all"},
		"redis.wait_timeout":             {"0", "6s", "5"},
		"queue.kind":                     {"", "rabbit"},
		"queue.topic":                    {"", "a b", "..", strings.Repeat("t", 121)},
		"queue.expire_topic":             {"", "a/b", "seckill-topic"},
		"queue.group":                    {"", "a b"},
		"kafka.brokers":                  {"x", "x:0", "kafka://:hunter2@x:1"},
		"kafka.sasl":                     {"", "PLAIN", "plain", "gssapi"},
		"kafka.username":                 {"a\nb", long, "without-sasl"},
		"kafka.password":                 {"hunter2", long},
		"kafka.tls":                      {"", "maybe"},
		"kafka.tls_ca":                   {"/without-tls.pem", "a\x00b", long},
		"kafka.create_topic":             {"", "maybe"},
		"kafka.partitions":               {"0", "10001", ""},
		"kafka.replicas":                 {"0", "101", ""},
		"rocketmq.endpoint":              {"h", "http://h:1"},
		"rocketmq.access_key":            {"alone", "a\nb", long},
		"rocketmq.secret_key":            {"hunter2", long},
		"rocketmq.tls":                   {"", "maybe"},
		"rocketmq.tls_ca":                {"/without-tls.pem", "a\x00b", long},
		"pulsar.token":                   {long},
		"pulsar.tls_ca":                  {"/without-tls.pem", "a\x00b", long},
		"pulsar.url":                     {"h:1", "http://h:1", "pulsar://h"},
		"store.dsn": {"mysql:", "mysql:u:hunter2@tcp(h:1)", "mysql:u:hunter2@h:1/d", "mysql:u:hunter2@/d", "mysql:u:hunter2@tcp()/d", "mysql:u:hunter2@tcp(h:1)/d?timeout=hunter2", "mysql::hunter2@tcp(h:1)/d", "mysql:u:hunter2@tcp(h:1)/",
			"mysql:u:hunter2@udp(h:1)/d", "mysql:u:hunter2@tcp(h:1)/d?tls=custom", "mysql:tcp(h:1)/d", "postgres:u:hunter2@h/d", "sqlite:", "sqlite::memory:", "sqlite:x?mode=ro", "seckill.db"},
		"store.tls_ca":           {"/without-mysql.pem", "a\x00b", long},
		"store.migrate":          {"", "never"},
		"store.max_conns":        {"0", "1", "10001", ""},
		"promise.journal":        {"", "maybe", "2"},
		"worker.count":           {"-1", "65", "many"},
		"worker.rate_per_second": {"-1", "10000001"},
		"worker.batch_size":      {"0", "10001", "many"},
		"worker.batch_wait":      {"-1ms", "11s", "10"},
		"worker.retry_delays":    {"", "1s,", "1s,9ms", "1s,169h", "1s;2s", strings.Repeat("1s,", 64) + "1s"},
		"worker.discard_after":   {"0", "721h"},
		"order.expire_after":     {"0", "-30m", "721h", "30 minutes"},
		"payment.sandbox_secret": {"short"},
		"preheat.lead":           {"-1s", "169h"},
		"reconcile.every":        {"-1s", "999ms", "169h"},
		"reconcile.repair":       {"", "on", "SAFE"},
		"reconcile.deadline":     {"0", "61s"},
		"alert.webhook_url":      {"hooks.example/hunter2", "file:///etc/hunter2"},
		"log.format":             {"", "xml"},
		"log.level":              {"", "trace"},

		"shop.trusted_proxies":         {"proxy", "10.0.0.0/33", "0.0.0.0/0", "::/0", "10.0.0.0/8,", "fe80::1%eth0", strings.Repeat("10.0.0.0/8,", 100) + "::1"},
		"limit.other_buyer_per_second": {"-1", "", "10000001"},
		"limit.other_ip_per_second":    {"-1", "", "10000001"},
		"shop.cors_origins": {"*", "null", "a.example", "https://a.example/", "https://A.example", "https://a.example:443", "http://a.example:80", "https://a.example/x",
			"https://u@a.example", "ftp://a.example", "https://a.example,", "https://*.a.example/"},
		"shop.tls_cert":           {"/only-this.pem", "a\x00b", long},
		"shop.tls_key":            {"/only-this.pem", "a\nb", long},
		"shop.max_conns":          {"0", "15", "1000001", ""},
		"shop.max_conns_per_addr": {"-1", "1000001", ""},
		"page.url":                {"example.com", "http://x/#f", "ftp://x"},
		"page.image_hosts":        {"*", "https:", "img.example/path", "img.example;script-src", "'self'", "a b", "img.example,", "data:"},
		"page.login_ttl":          {"0", "59s", "721h", "12"},
		"page.login_url":          {"/login", "javascript:alert(1)", "https://x/#f"},
		"page.pay_url":            {"/pay", "javascript:alert(1)", "https://x/#f", "https://{order_no}.x/"},

		"challenge.pow_calm_per_ip_per_minute": {"-1", "10001", ""},
	}
	for _, d := range config.Describe() {
		if len(bad[d.Key]) == 0 && d.Key != "" {
			t.Errorf("no bad value is tested for %s", d.Key)
		}
		for _, value := range bad[d.Key] {
			_, err := config.Load(sources([]config.Setting{set(d.Key, value)}))
			// The two purchase bounds limit each other; either name will do.
			if err == nil || !strings.Contains(err.Error(), d.Key) && !strings.Contains(err.Error(), d.Env()) {
				t.Errorf("%s = %.40q: error %v does not name the key", d.Key, value, err)
			} else if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: error shows a secret: %v", d.Key, err)
			}
		}
	}
}

func TestLoad_ReportsAllErrorsAtOnce(t *testing.T) {
	file := writeFile(t, `
shop:
  listen: 8080
  lisen: x
queue.kind: outbox
log: text
order: {expire_after: 30}
admin: {token: 1234567890123456}
purchase: {timeout: null}
rabbit: {brokers: ["127.0.0.1:9092"]}
redis: {addrs: [6379]}
worker: {retry_delays: 5s, batch_size: {a: 1}}
kafka: {user: engine}
`)
	_, err := config.Load(config.Sources{
		File:    file,
		Environ: []string{"SECKILL_WORKER_BACTH_SIZE=5", "SECKILL_RABBIT_BROKERS=x", "SECKILL_PREHEAT_LEAD=soon"},
		Flags:   []config.Setting{set("limit.buyer_per_secnd", "1"), {Flag: "--shop-listen", Key: "shop.listen", Value: "nowhere"}},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		file + ":3: shop.listen: must be text",
		file + ":4: shop.lisen: unknown key",
		file + ":5: queue.kind: write sections as nested keys",
		file + ":6: log: is a section",
		file + ":7: order.expire_after: must be a duration",
		file + ":8: admin.token: must be text",
		file + ":9: purchase.timeout: has no value",
		file + ":10: rabbit.brokers: unknown key\n",
		file + ":11: redis.addrs: entry 1: must be text",
		file + ":12: worker.batch_size: must be a whole number",
		file + ":13: kafka.user: unknown key",
		"SECKILL_WORKER_BACTH_SIZE: unknown variable",
		"SECKILL_RABBIT_BROKERS: unknown variable",
		"SECKILL_PREHEAT_LEAD: must be a duration",
		"--set: limit.buyer_per_secnd: unknown key",
		"shop.listen: must be HOST:PORT",
	} {
		if !strings.Contains(err.Error()+"\n", want) {
			t.Errorf("error lacks %q", want)
		}
	}
	if strings.Contains(err.Error(), "1234567890123456") {
		t.Error("error shows a secret")
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestLoad_AddressErrorsShowTheUsualPort(t *testing.T) {
	for key, want := range map[string]string{
		"redis.addrs": "127.0.0.1:6379", "kafka.brokers": "127.0.0.1:9092", "rocketmq.endpoint": "127.0.0.1:8081",
	} {
		_, err := config.Load(config.Sources{Flags: []config.Setting{set(key, "10.0.0.1")}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestLoad_FileErrorsNameTheLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"on the first line":            {"colour: red\n", ":1: colour: unknown key"},
		"below a comment":              {"# a shop\n\nshop: # public\n  # where\n  colour: red\n", ":5: shop.colour: unknown key"},
		"of a section nobody knows":    {"shop: {listen: '127.0.0.1:1'}\ncolour:\n  of:\n    door: red\n", ":4: colour.of.door: unknown key"},
		"in braces over some lines":    {"shop: {\n  listen: '127.0.0.1:1',\n  colour: red}\n", ":3: shop.colour: unknown key"},
		"with lines that Windows ends": {"shop:\r\n  colour: red\r\n", ":2: shop.colour: unknown key"},
		"that an alias brings in":      {"a: &a\n  colour: red\nshop: *a\n", ": shop.colour: unknown key"},
	} {
		file := writeFile(t, c.text)
		_, err := config.Load(config.Sources{File: file})
		if err == nil || !strings.Contains(err.Error(), file+c.want) {
			t.Errorf("a key %s: %v, want %q", name, err, c.want)
		}
	}
}

func TestLoad_RangeErrorsNameThePlace(t *testing.T) {
	for name, c := range map[string]struct {
		text, variable string
		flags          []config.Setting
		want           string // with FILE for the file
	}{
		"in the file":                {"worker:\n  batch_size: 0\n", "", nil, "FILE:2: worker.batch_size: must be 1 to 10000, not 0"},
		"an entry of a list":         {"worker:\n\n  retry_delays: [1s, 999h]\n", "", nil, "FILE:3: worker.retry_delays: entry 2: must be"},
		"beside another key":         {"purchase:\n  queue_size: 10\n  max_batch: 11\n", "", nil, "FILE:3: purchase.max_batch: must not exceed purchase.queue_size (10), not 11"},
		"without its other half":     {"shop: {tls_key: key.pem}\n", "", nil, "FILE:1: shop.tls_key: must be set together with shop.tls_cert"},
		"no effect":                  {"redis:\n  sentinel_username: sue\n", "", nil, "FILE:2: redis.sentinel_username: has no effect"},
		"in the environment":         {"worker:\n  batch_size: 5\n", "SECKILL_WORKER_BATCH_SIZE=0", nil, "environment: SECKILL_WORKER_BATCH_SIZE: must be 1 to 10000"},
		"by a flag":                  {"", "SECKILL_WORKER_BATCH_SIZE=5", []config.Setting{set("worker.batch_size", "0")}, "--set: worker.batch_size: must be 1 to 10000"},
		"below one that is no value": {"worker:\n  batch_size: 0\n", "SECKILL_WORKER_BATCH_SIZE=many", nil, "FILE:2: worker.batch_size: must be 1 to 10000"},
		"that nobody has set":        {"challenge: {kind: shop}\ntoken: {required: true}\n", "", nil, "challenge.verify_url: must be set"},
	} {
		file := writeFile(t, c.text)
		_, err := config.Load(config.Sources{File: file, Environ: []string{c.variable}, Flags: c.flags})
		want := strings.ReplaceAll(c.want, "FILE", file)
		if err == nil || !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("a value %s: %v, want %q", name, err, want)
		}
	}
}

func TestLoad_ReportsEveryBadListEntry(t *testing.T) {
	for key, list := range map[string]string{
		"shop.cors_origins":         "*, https://a.example, nowhere",
		"shop.trusted_proxies":      "0.0.0.0/0, 10.0.0.0/8, nowhere",
		"redis.addrs":               "6379, a:1, b",
		"page.image_hosts":          "a b, img.example, c d",
		"worker.retry_delays":       "1ms, 1s, 999h",
		"auth.jwt_previous_secrets": "short, 0123456789abcdef, brief",
	} {
		_, err := config.Load(sources([]config.Setting{set(key, list)}))
		if err == nil {
			t.Errorf("%s: accepted", key)
			continue
		}
		for entry, want := range map[string]bool{"1": true, "2": false, "3": true} {
			if strings.Contains(err.Error(), ": entry "+entry+": ") != want {
				t.Errorf("entry %s of %s: %v", entry, key, err)
			}
		}
	}
	for key, list := range map[string]string{"redis.addrs": "[1, a:1, 2]", "worker.retry_delays": "[1, 1s, soon]"} {
		section, name, _ := strings.Cut(key, ".")
		file := writeFile(t, section+": {"+name+": "+list+"}\n")
		_, err := config.Load(config.Sources{File: file})
		if err == nil || !strings.Contains(err.Error(), key+": entry 1: ") || !strings.Contains(err.Error(), key+": entry 3: ") {
			t.Errorf("%s of the wrong type: %v", key, err)
		}
	}
}

func TestLoad_ChallengeWithoutRequiredTokenIsRefused(t *testing.T) {
	for _, kind := range []string{"pow", "image", "shop"} {
		_, err := config.Load(sources([]config.Setting{set("challenge.kind", kind)}))
		if err == nil || !strings.Contains(err.Error(), "token.required") {
			t.Errorf("%s without tokens: %v", kind, err)
		}
	}
	for _, valid := range [][]config.Setting{
		{set("challenge.kind", "none")}, {set("token.required", "true")}, {set("challenge.kind", "pow"), set("token.required", "true")},
	} {
		if _, err := config.Load(sources(valid)); err != nil {
			t.Errorf("%v: %v", valid, err)
		}
	}
}

func TestLoad_ShopCertificateIsCheckedForServe(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	load := func(files bool) error {
		_, err := config.Load(config.Sources{Files: files, Flags: []config.Setting{set("shop.tls_cert", cert), set("shop.tls_key", key)}})
		return err
	}
	if err := load(false); err != nil {
		t.Errorf("not asked for: %v", err)
	}
	err := load(true)
	for _, want := range []string{"shop.tls_cert: open " + cert, "shop.tls_key: open " + key} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("missing files: %v, want %q", err, want)
		}
	}
	for _, path := range []string{cert, key} {
		if err := os.WriteFile(path, []byte("no PEM"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := load(true); err == nil || !strings.Contains(err.Error(), "shop.tls_cert: does not go with shop.tls_key: ") {
		t.Errorf("files that are no certificate: %v", err)
	}
}

func TestLoad_ShopVerifierNeedsURLAndSecret(t *testing.T) {
	_, err := config.Load(sources([]config.Setting{set("challenge.kind", "shop"), set("token.required", "true")}))
	for _, key := range []string{"challenge.verify_url", "challenge.verify_secret"} {
		if err == nil || !strings.Contains(err.Error(), key+": must be set") {
			t.Errorf("error %v does not name %s", err, key)
		}
	}
	if _, err := config.Load(sources([]config.Setting{
		set("token.required", "true"), set("challenge.kind", "shop"), set("challenge.verify_url", "https://shop.example/verify"), set("challenge.verify_secret", "0123456789abcdef"),
	})); err != nil {
		t.Error(err)
	}
}

func TestLoad_UnreadableFileIsAnError(t *testing.T) {
	for name, path := range map[string]string{
		"missing":   filepath.Join(t.TempDir(), "none.yaml"),
		"directory": t.TempDir(),
		"syntax":    writeFile(t, "shop: [\n"),
		"doubled":   writeFile(t, "data_dir: a\ndata_dir: b\n"),
		"list":      writeFile(t, "- a\n- b\n"),
	} {
		if _, err := config.Load(config.Sources{File: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v does not name the file", name, err)
		}
	}
	if _, err := config.Load(config.Sources{File: writeFile(t, "# nothing\n")}); err != nil {
		t.Errorf("an empty file is no error, got %v", err)
	}
}

func TestLoad_SyntaxErrorNamesFileAndMistake(t *testing.T) {
	for text, want := range map[string]string{
		"shop: listen: x\n":                       ": yaml: mapping values are not allowed in this context",
		"shop:\n\tlisten: x\n":                    ": yaml: line 2: found character that cannot start any token",
		"shop:\n  listen: \xff\n":                 ": yaml: invalid leading UTF-8 octet",
		"data_dir: a\nshop:\n  listen: *b\n":      ": yaml: unknown anchor 'b' referenced",
		"shop:\n  listen: a\n bad\ndata_dir: b\n": ": yaml: line 2: did not find expected key",
		"data_dir: a\nshop: {<<: 3}\n":            ": yaml: map merge requires map or sequence of maps as the value",
		"hello\n":                                 ":1: must have keys, such as data_dir: data",
		"# list\n- a\n":                           ":2: must have keys, such as data_dir: data",
		"data_dir: a\n[b]: c\n":                   ":2: cannot unmarshal !!seq into string",
	} {
		path := writeFile(t, text)
		_, err := config.Load(config.Sources{File: path})
		if err == nil || err.Error() != path+want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Of two readings that a file has, none is taken.
func TestLoad_AmbiguousFileIsRefused(t *testing.T) {
	const another = "a second document begins here and would be ignored: keep one document per file"
	for text, want := range map[string][]string{
		"data_dir: a\ndata_dir: b\n":                               {":2: mapping key \"data_dir\" already defined at line 1"},
		"shop:\n  listen: \"a:1\"\n  \"listen\": \"b:1\"\n":        {":3: mapping key \"listen\" already defined at line 2"},
		"shop: {}\ndata_dir: a\nshop:\n  listen: c\ndata_dir: b\n": {":3: mapping key \"shop\" already defined at line 1", ":5: mapping key \"data_dir\" already defined at line 2"},
		"data_dir: a\n---\ndata_dir: b\nunknown: c\n":              {":2: " + another},
		"---\ndata_dir: a\n...\n# more\n--- {}\n---\n":             {":5: " + another},
		"colour: red\n---\n":                                       {":2: " + another, ":1: colour: unknown key"},
		"data_dir: a\n---\nshop: [\n":                              {": yaml: line 3: did not find expected node content"},
	} {
		path := writeFile(t, text)
		for i := range want {
			want[i] = path + want[i]
		}
		_, err := config.Load(config.Sources{File: path})
		if err == nil || err.Error() != strings.Join(want, "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := config.Load(config.Sources{File: writeFile(t, "%YAML 1.1\n---\ndata_dir: a\n...\n# the end\n")}); err != nil {
		t.Errorf("one document between its marks: %v", err)
	}
}

func TestURL_CanBeDialled(t *testing.T) {
	for _, c := range []struct{ public, bound, want string }{
		{"", "127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"", "0.0.0.0:8080", "http://127.0.0.1:8080"},
		{"", "[::]:8080", "http://127.0.0.1:8080"},
		{"", ":8080", "http://127.0.0.1:8080"},
		{"", "[::1]:80", "http://[::1]:80"},
		{"https://shop.example/sale/", ":8080", "https://shop.example/sale"},
	} {
		if got := (config.Shop{PublicURL: c.public}).URL(c.bound); got != c.want {
			t.Errorf("URL of %q on %q = %s, want %s", c.public, c.bound, got, c.want)
		}
	}
}

func TestLoad_FileFlagOverridesFileVariable(t *testing.T) {
	environ := []string{config.FileVar + "=" + writeFile(t, "data_dir: by-variable\n")}
	for want, from := range map[string]config.Sources{
		"by-variable": {Environ: environ},
		"by-flag":     {File: writeFile(t, "data_dir: by-flag\n"), Environ: environ},
	} {
		cfg, err := config.Load(from)
		if err != nil || cfg.DataDir != want {
			t.Errorf("want the file %s: %+v, %v", want, cfg, err)
		}
	}
}
