package seckill_test

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"seckill/internal/config"
)

// compose is the part of deploy/compose.yaml that the tests read.
type compose struct {
	Services map[string]struct {
		Image       string            `yaml:"image"`
		Command     []string          `yaml:"command"`
		Environment map[string]string `yaml:"environment"`
		User        string            `yaml:"user"`
		CapAdd      []string          `yaml:"cap_add"`
		CapDrop     []string          `yaml:"cap_drop"`
		SecurityOpt []string          `yaml:"security_opt"`
		ReadOnly    bool              `yaml:"read_only"`
		Privileged  bool              `yaml:"privileged"`
		Ports       []string          `yaml:"ports"`
		HealthCheck struct {
			Test []string `yaml:"test"`
		} `yaml:"healthcheck"`
		Build struct {
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

// The engine refuses unknown keys and missing secrets when it starts. This test checks the same
// without Docker.
func TestCompose_ConfiguresEveryEngine(t *testing.T) {
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
		if cfg.Payment.SandboxPage {
			t.Errorf("%s serves the sandbox's pay page", name)
		}
		// Prometheus and the commands call an engine by its service name.
		if !slices.Contains(cfg.Admin.Names(), name) {
			t.Errorf("%s may not be called by its name on the operator's port", name)
		}
		if cfg.Ledger.Kind != "redis" || !strings.HasPrefix(cfg.StoreDSN(), "mysql:") {
			t.Errorf("%s runs on %s and %s", name, cfg.Ledger.Kind, cfg.StoreDSN())
		}
	}
	if engines != 2 {
		t.Errorf("%d engines, want two", engines)
	}
}

func TestCompose_KeepsPromisesDurable(t *testing.T) {
	redis := strings.Join(readCompose(t).Services["redis"].Command, " ")
	for _, setting := range []string{"--appendonly yes", "--appendfsync always", "--maxmemory-policy noeviction"} {
		if !strings.Contains(redis, setting) {
			t.Errorf("Redis runs without %s", setting)
		}
	}
}

var defaultOf = regexp.MustCompile(`^\$\{\w+:-(.+)\}$`)

// defaultImage returns the image of a service if its variable is not set.
func defaultImage(t *testing.T, image string) string {
	t.Helper()
	found := defaultOf.FindStringSubmatch(image)
	if found == nil {
		t.Fatalf("%s is not a variable with a default", image)
	}
	return found[1]
}

func TestCompose_UsesTheDatabaseOfTheTests(t *testing.T) {
	name, version, _ := strings.Cut(defaultImage(t, readCompose(t).Services["mariadb"].Image), ":")
	series := version[:max(strings.LastIndexByte(version, '.'), 0)]
	if want := "MariaDB " + series; name != "mariadb" || series == "" || !strings.Contains(readText(t, "README.md"), want) {
		t.Errorf("compose runs %s:%s, which the tested servers of the README are not", name, version)
	}
}

// A tag such as 7.2 changes its content with time. Distroless has no versions, so only a digest
// pins it.
func TestCompose_ImagesArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`^[a-z0-9./-]+:[a-z0-9.-]+@sha256:[0-9a-f]{64}$`)
	example, dockerfile := readText(t, "deploy/env.example"), readText(t, "deploy/Dockerfile")
	images := map[string]bool{}
	for _, service := range readCompose(t).Services {
		if service.Image != "seckill" {
			images[service.Image] = true
		}
		for name, image := range service.Build.Args {
			if strings.HasSuffix(name, "_IMAGE") {
				images[image] = true
				if !strings.Contains(dockerfile, "ARG "+name+"="+defaultImage(t, image)+"\n") {
					t.Errorf("the Dockerfile has another %s than compose", name)
				}
			}
		}
	}
	if len(images) != 4 {
		t.Errorf("%d images: %v", len(images), images)
	}
	for image := range images {
		name := defaultImage(t, image)
		if !pinned.MatchString(name) {
			t.Errorf("%s is not pinned by tag and digest", name)
		}
		if !strings.Contains(example, "="+name+"\n") {
			t.Errorf("deploy/env.example has another version than %s", name)
		}
	}
}

func TestCompose_EveryServiceIsHardened(t *testing.T) {
	for name, service := range readCompose(t).Services {
		if !slices.Equal(service.CapDrop, []string{"ALL"}) || len(service.CapAdd) != 0 || service.Privileged {
			t.Errorf("%s keeps capabilities", name)
		}
		if !slices.Equal(service.SecurityOpt, []string{"no-new-privileges:true"}) || !service.ReadOnly {
			t.Errorf("%s may gain rights, or write to its image", name)
		}
		if !strings.HasPrefix(name, "engine-") && service.User == "" {
			t.Errorf("%s runs as root", name)
		}
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s publishes %s beyond this machine", name, port)
			}
		}
	}
	if !strings.Contains(readText(t, "deploy/Dockerfile"), "\nUSER 65532:65532\n") {
		t.Error("the engine's image runs as root")
	}
}

// The process list and docker inspect show all arguments.
func TestCompose_NoArgumentHasASecret(t *testing.T) {
	for name, service := range readCompose(t).Services {
		for _, argument := range slices.Concat(service.Command, service.HealthCheck.Test) {
			if found := composeVariable.FindString(argument); found != "" {
				t.Errorf("%s: an argument holds %s", name, found)
			}
		}
		for arg := range service.Build.Args {
			if strings.Contains(arg, "SECRET") || strings.Contains(arg, "PASSWORD") || strings.Contains(arg, "TOKEN") {
				t.Errorf("%s: the image is built with %s", name, arg)
			}
		}
	}
}

// Runs the command of compose.yaml with a real shell and a real Redis.
func TestCompose_RedisReadsItsPasswordFromStandardInput(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("MISSING: redis-server")
	}
	command := readCompose(t).Services["redis"].Command
	const secret = "0123456789abcdef0123456789abcdef"
	dir := t.TempDir()
	script := strings.ReplaceAll(command[len(command)-1], "$$", "$")
	script = strings.Replace(script, "redis-server -", "redis-server - --port 0 --unixsocket redis.sock", 1)
	server := exec.Command(command[0], append(slices.Clone(command[1:len(command)-1]), script)...)
	server.Dir, server.Env = dir, append(os.Environ(), "REDISCLI_AUTH="+secret)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()
	})
	ask := func(environ []string, words ...string) string {
		client := exec.Command("redis-cli", append([]string{"-s", "redis.sock"}, words...)...)
		client.Dir, client.Env = dir, environ
		said, _ := client.CombinedOutput() // the output is checked
		return string(said)
	}
	late, again := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
	defer again.Stop()
	for ask(server.Env, "ping") != "PONG\n" {
		select {
		case <-late:
			t.Fatalf("no answer: %s", ask(server.Env, "ping"))
		case <-again.C:
		}
	}
	if said := ask(os.Environ(), "ping"); !strings.Contains(said, "NOAUTH") {
		t.Errorf("without the password: %s", said)
	}
	for setting, want := range map[string]string{"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"} {
		if said := ask(server.Env, "config", "get", setting); !strings.Contains(said, "\n"+want+"\n") {
			t.Errorf("%s: %s", setting, said)
		}
	}
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", server.Process.Pid))
	if err != nil || !strings.Contains(string(arguments), "redis-server") || strings.Contains(string(arguments), secret) {
		t.Errorf("the process list shows %q, %v", arguments, err)
	}
}

var unitPattern = regexp.MustCompile("(?s)```ini\n# /etc/systemd/system/seckill.service\n(.*?)```")

func TestSystemdUnit_IsHardenedAndTheSameOnEveryPage(t *testing.T) {
	unit := unitPattern.FindStringSubmatch(readText(t, "docs/deploy.md"))
	if unit == nil {
		t.Fatal("docs/deploy.md has no unit")
	}
	onEveryPage(t, func(p page) (wrong []string) {
		if found := unitPattern.FindStringSubmatch(readText(t, p.path)); found != nil && found[1] != unit[1] {
			wrong = append(wrong, "another unit than docs/deploy.md has")
		}
		return wrong
	})
	for _, line := range []string{
		"User=seckill", "UMask=0077", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict", "StateDirectory=seckill", "ProtectHome=yes", "PrivateTmp=yes", "PrivateDevices=yes",
		"ProtectKernelTunables=yes", "ProtectKernelModules=yes", "ProtectControlGroups=yes", "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX", "RestrictNamespaces=yes", "RestrictSUIDSGID=yes",
		"LockPersonality=yes", "MemoryDenyWriteExecute=yes", "SystemCallArchitectures=native", "SystemCallFilter=@system-service",
	} {
		if !strings.Contains(unit[1], "\n"+line+"\n") {
			t.Errorf("the unit lacks %s", line)
		}
	}
}

func TestCompose_ExampleNamesEverySecret(t *testing.T) {
	example := readText(t, "deploy/env.example")
	for _, variable := range composeVariable.FindAllStringSubmatch(readText(t, "deploy/compose.yaml"), -1) {
		if !strings.Contains(example, "\n"+variable[1]+"=") {
			t.Errorf("deploy/env.example does not mention %s", variable[1])
		}
	}
}

// Docker ignores a build argument that the Dockerfile does not declare.
func TestCompose_PassesTheVersionToTheImage(t *testing.T) {
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

// The quick start writes secrets below the directory that a build gets.
func TestBuild_GetsNoSecretsDataOrHistory(t *testing.T) {
	ignored := strings.Fields(readText(t, ".dockerignore"))
	for _, name := range append(strings.Fields(readText(t, ".gitignore")), ".git") {
		name = strings.Trim(name, "/")
		if !slices.Contains(ignored, name) && !slices.Contains(ignored, "**/"+path.Base(name)) {
			t.Errorf(".dockerignore lets %s into the build", name)
		}
	}
}

// alertRules is the part of deploy/prometheus-rules.yaml that the tests read.
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

// Prometheus reports whether a scrape succeeded, with the name of the job. A rule with another
// job name than the documented one never fires.
func TestAlertRules_DetectADeadInstance(t *testing.T) {
	job := jobPattern.FindStringSubmatch(readText(t, "docs/deploy.md"))
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

// A rule on a metric that does not exist never fires.
func TestAlertRules_NameMetricsAndRunbooks(t *testing.T) {
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
			} else if !strings.Contains(readText(t, page), "`"+rule.Alert+"`") {
				t.Errorf("%s does not name %s", page, rule.Alert)
			}
		}
	}
	if rules == 0 {
		t.Error("there are no rules")
	}
}
