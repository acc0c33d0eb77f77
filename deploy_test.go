package seckill_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"seckill/internal/config"
)

// compose is what the tests read of deploy/compose.yaml.
type compose struct {
	Services map[string]struct {
		Image       string            `yaml:"image"`
		Command     []string          `yaml:"command"`
		Environment map[string]string `yaml:"environment"`
		Build       struct {
			Args map[string]string `yaml:"args"`
		} `yaml:"build"`
	} `yaml:"services"`
}

func readCompose(t *testing.T) compose {
	t.Helper()
	var c compose
	if err := yaml.Unmarshal([]byte(readText(t, "deploy/compose.yaml")), &c); err != nil {
		t.Fatalf("deploy/compose.yaml: %v", err)
	}
	return c
}

var composeVariable = regexp.MustCompile(`\$\{(\w+)[^}]*\}`)

// The engine refuses unknown keys and missing secrets at start; here it does so
// without Docker.
func TestComposeConfiguresEveryEngine(t *testing.T) {
	engines := 0
	for name, service := range readCompose(t).Services {
		if !strings.HasPrefix(name, "engine-") {
			continue
		}
		engines++
		var environ []string
		for key, value := range service.Environment {
			environ = append(environ, key+"="+composeVariable.ReplaceAllString(value, strings.Repeat("0123456789abcdef", 2)))
		}
		cfg, err := config.Load(config.Sources{Environ: environ})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if cfg.Ledger.Kind != "redis" || !strings.HasPrefix(cfg.StoreDSN(), "mysql:") {
			t.Errorf("%s runs on %s and %s", name, cfg.Ledger.Kind, cfg.StoreDSN())
		}
	}
	if engines != 2 {
		t.Errorf("%d engines, want two", engines)
	}
}

func TestComposeKeepsPromisesDurable(t *testing.T) {
	redis := strings.Join(readCompose(t).Services["redis"].Command, " ")
	for _, setting := range []string{"--appendonly yes", "--appendfsync always", "--maxmemory-policy noeviction"} {
		if !strings.Contains(redis, setting) {
			t.Errorf("Redis runs without %s", setting)
		}
	}
}

func TestComposeRunsTheDatabaseThatTheTestsRunOn(t *testing.T) {
	name, version, _ := strings.Cut(readCompose(t).Services["mariadb"].Image, ":")
	if want := "MariaDB " + version; name != "mariadb" || !strings.Contains(readText(t, "README.md"), want) {
		t.Errorf("compose runs %s:%s, which the tested servers of the README are not", name, version)
	}
}

func TestComposeExampleNamesEverySecret(t *testing.T) {
	example := readText(t, "deploy/env.example")
	for _, variable := range composeVariable.FindAllStringSubmatch(readText(t, "deploy/compose.yaml"), -1) {
		if !strings.Contains(example, "\n"+variable[1]+"=") {
			t.Errorf("deploy/env.example does not mention %s", variable[1])
		}
	}
}

// A build argument that the Dockerfile does not declare is passed over in silence.
func TestComposeTellsTheImageItsVersion(t *testing.T) {
	dockerfile := readText(t, "deploy/Dockerfile")
	for name, service := range readCompose(t).Services {
		if !strings.HasPrefix(name, "engine-") {
			continue
		}
		if service.Build.Args["VERSION"] == "" {
			t.Errorf("%s is built without a version", name)
		}
		for arg := range service.Build.Args {
			if !strings.Contains(dockerfile, "\nARG "+arg) {
				t.Errorf("%s: the Dockerfile has no argument %s", name, arg)
			}
		}
	}
}

// The README has one write secrets below the directory that a build is given.
func TestABuildIsGivenNoSecretsDataOrHistory(t *testing.T) {
	ignored := strings.Fields(readText(t, ".dockerignore"))
	for _, name := range append(strings.Fields(readText(t, ".gitignore")), ".git") {
		name = strings.Trim(name, "/")
		if !slices.Contains(ignored, name) && !slices.Contains(ignored, "**/"+path.Base(name)) {
			t.Errorf(".dockerignore lets %s into the build", name)
		}
	}
}

// alertRules is what the tests read of deploy/prometheus-rules.yaml.
type alertRules struct {
	Groups []struct {
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

var (
	upPattern  = regexp.MustCompile(`\bup\{job="(\w+)"\}`)
	jobPattern = regexp.MustCompile(`(?m)^  - job_name: (\w+)$`)
)

// Prometheus itself says whether a scrape was answered, under the name of the
// job: a rule on another than the documented one is silent for ever, too.
func TestARuleTellsOfADeadInstance(t *testing.T) {
	job := jobPattern.FindStringSubmatch(readText(t, "docs/operations.md"))
	ups := upPattern.FindAllStringSubmatch(readText(t, "deploy/prometheus-rules.yaml"), -1)
	if job == nil || len(ups) == 0 {
		t.Fatalf("the documented job is %v, rules look at %v", job, ups)
	}
	for _, up := range ups {
		if up[1] != job[1] {
			t.Errorf("a rule looks at job %q, documented is %q", up[1], job[1])
		}
	}
}

// A rule on a metric that nobody exports is silent for ever.
func TestAlertRulesNameMetricsAndRunbooks(t *testing.T) {
	var all alertRules
	if err := yaml.Unmarshal([]byte(readText(t, "deploy/prometheus-rules.yaml")), &all); err != nil {
		t.Fatal(err)
	}
	source, rules := sources(t, "internal/metrics"), 0
	for _, group := range all.Groups {
		for _, rule := range group.Rules {
			rules++
			metrics := metricPattern.FindAllString(rule.Expr, -1)
			for _, metric := range metrics {
				if !strings.Contains(source, `"`+metric+`"`) {
					t.Errorf("%s: no metric %s", rule.Alert, metric)
				}
			}
			page, anchor, _ := strings.Cut(rule.Annotations["runbook"], "#")
			if len(metrics) == 0 && !upPattern.MatchString(rule.Expr) || rule.Annotations["summary"] == "" || !exists(page) {
				t.Errorf("%s: metrics %v, annotations %v", rule.Alert, metrics, rule.Annotations)
			} else if !slices.Contains(anchors(readText(t, page)), anchor) {
				t.Errorf("%s: %s has no heading for %s", rule.Alert, page, anchor)
			}
		}
	}
	if rules == 0 {
		t.Error("there are no rules")
	}
}
