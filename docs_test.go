package seckill_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"seckill"
	"seckill/internal/config"
)

// The documents name files, declarations, tests, commands, keys, metrics and routes. These
// tests look them up, so that no reader searches for something that was renamed.

// documents returns the pages under test. Generated pages have additional tests.
func documents(t *testing.T) []string {
	t.Helper()
	var pages []string
	err := filepath.WalkDir("docs", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".md") {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(pages, "README.md", "README.zh.md", "CONTRIBUTING.md", "CHANGELOG.md", "THIRD_PARTY.md")
}

var (
	fencePattern = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	spanPattern  = regexp.MustCompile("`[^`\n]+`")
	linkPattern  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// page is a document, taken apart.
type page struct {
	path   string
	spans  []string // inline code
	fences []string // code blocks
	links  []string
}

func readPage(t *testing.T, name string) page {
	t.Helper()
	text := readText(t, name)
	p := page{path: name, fences: fencePattern.FindAllString(text, -1)}
	prose := fencePattern.ReplaceAllString(text, "")
	for _, span := range spanPattern.FindAllString(prose, -1) {
		p.spans = append(p.spans, strings.Trim(span, "`"))
	}
	for _, link := range linkPattern.FindAllStringSubmatch(prose, -1) {
		p.links = append(p.links, link[1])
	}
	return p
}

// code returns all text in code type.
func (p page) code() []string { return append(slices.Clone(p.spans), p.fences...) }

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sources returns every Go file below the given directories, as one text.
func sources(t *testing.T, dirs ...string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(name, ".go") {
				all.WriteString(readText(t, name))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// onEveryPage runs a check on each document. The check returns the errors of the page.
func onEveryPage(t *testing.T, check func(p page) []string) {
	t.Helper()
	for _, name := range documents(t) {
		for _, wrong := range check(readPage(t, name)) {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func TestDocsLinkToWhatExists(t *testing.T) {
	onEveryPage(t, func(p page) (wrong []string) {
		for _, link := range p.links {
			if strings.Contains(link, "://") {
				continue
			}
			target, anchor, _ := strings.Cut(link, "#")
			file := p.path
			if target != "" {
				file = path.Join(path.Dir(p.path), target)
			}
			if !exists(file) {
				wrong = append(wrong, "link to "+link)
			} else if anchor != "" && !slices.Contains(anchors(readText(t, file)), anchor) {
				wrong = append(wrong, "no heading for "+link)
			}
		}
		return wrong
	})
}

var (
	headingPattern = regexp.MustCompile(`(?m)^#+ (.+)$`)
	droppedPattern = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the headings of a page in the form of links.
func anchors(text string) (all []string) {
	for _, heading := range headingPattern.FindAllStringSubmatch(text, -1) {
		name := droppedPattern.ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

var pathPattern = regexp.MustCompile(`^(?:(?:cmd|internal|test|docs|web|bench|deploy|\.ci)/[\w./-]+|\w+\.(?:go|md|yaml|mod)|Makefile)(?::\w+)?$`)

// TestDocsNameFilesAndDeclarations checks `path` and `path.go:Name`.
func TestDocsNameFilesAndDeclarations(t *testing.T) {
	named := 0
	onEveryPage(t, func(p page) (wrong []string) {
		for _, span := range p.spans {
			if !pathPattern.MatchString(span) || span == "seckill.yaml" {
				continue
			}
			named++
			file, name, _ := strings.Cut(span, ":")
			if !exists(file) {
				wrong = append(wrong, "no file "+file)
			} else if name != "" && !declares(readText(t, file), name) {
				wrong = append(wrong, fmt.Sprintf("%s declares no %s", file, name))
			}
		}
		return wrong
	})
	if named < 50 {
		t.Errorf("only %d files are named: is the pattern right?", named)
	}
}

// declares reports whether Go source declares a function, method, type, constant, variable or
// interface method with the name.
func declares(source, name string) bool {
	return regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |const |var |\t)` + name + `\b`).MatchString(source)
}

var storyPattern = regexp.MustCompile(`^"(.+)"$`)

// TestDocsNameTests checks every `"a story of a suite"`. JSON in code type begins with a key
// and a colon.
func TestDocsNameTests(t *testing.T) {
	all := sources(t, "internal", "test")
	onEveryPage(t, func(p page) (wrong []string) {
		for _, span := range p.spans {
			if story := storyPattern.FindStringSubmatch(span); story != nil && strings.Contains(story[1], " ") && !strings.Contains(all, story[0]) {
				wrong = append(wrong, "no test "+span)
			}
		}
		return wrong
	})
}

var makePattern = regexp.MustCompile(`\bmake ([a-z-]+)`)

func TestDocsNameMakeTargets(t *testing.T) {
	makefile := readText(t, "Makefile")
	onEveryPage(t, func(p page) (wrong []string) {
		for _, code := range p.code() {
			for _, found := range makePattern.FindAllStringSubmatch(code, -1) {
				if !strings.Contains(makefile, "\n"+found[1]+":") {
					wrong = append(wrong, "no target "+found[0])
				}
			}
		}
		return wrong
	})
}

var (
	commandPattern = regexp.MustCompile(`(?m)(?:^|[\s/(])seckill ([a-z]+)([^\n#` + "`" + `)]*)`)
	usePattern     = regexp.MustCompile(`Use:\s+"([a-z]+)`)
	flagPattern    = regexp.MustCompile(`(?:^| )--([a-z-]+)`)
)

func TestDocsNameCommandsAndFlags(t *testing.T) {
	source := sources(t, "cmd/seckill")
	commands := []string{"completion", "help"} // the library's own
	for _, use := range usePattern.FindAllStringSubmatch(source, -1) {
		commands = append(commands, use[1])
	}
	onEveryPage(t, func(p page) (wrong []string) {
		for _, code := range p.code() {
			for _, found := range commandPattern.FindAllStringSubmatch(code, -1) {
				if !slices.Contains(commands, found[1]) && !strings.HasPrefix(code, "```\n") { // a block without a language is output
					wrong = append(wrong, "no command seckill "+found[1])
				}
				for _, flag := range flagPattern.FindAllStringSubmatch(found[2], -1) {
					if !strings.Contains(source, `"`+flag[1]+`"`) {
						wrong = append(wrong, "no flag --"+flag[1])
					}
				}
			}
		}
		return wrong
	})
}

var (
	keyPattern = regexp.MustCompile(`^[a-z]+\.[a-z_]+$`)
	envPattern = regexp.MustCompile(`\bSECKILL_[A-Z_]+`)
)

// eventKinds returns the kinds of events in the order of the code.
func eventKinds(t *testing.T) (kinds []string) {
	t.Helper()
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`EventKind = "([a-z_.]+)"`).FindAllStringSubmatch(string(source), -1) {
		kinds = append(kinds, found[1])
	}
	if len(kinds) == 0 {
		t.Fatal("event.go names no kinds")
	}
	return kinds
}

// TestOpenAPI_NamesAllEventKinds checks openapi.yaml. asyncapi.yaml has its own test.
func TestOpenAPI_NamesAllEventKinds(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas struct {
				Event struct {
					Properties struct {
						Event struct{ Enum []string }
					}
				} `yaml:"Event"`
			}
		}
	}
	if err := yaml.Unmarshal(seckill.OpenAPI, &doc); err != nil {
		t.Fatal(err)
	}
	if described, kinds := doc.Components.Schemas.Event.Properties.Event.Enum, eventKinds(t); !slices.Equal(described, kinds) {
		t.Errorf("openapi.yaml describes the kinds %q, the code has %q", described, kinds)
	}
}

// TestDocsNameConfigurationKeys checks keys in code type, whose first word is a section of the
// configuration, and environment variables.
func TestDocsNameConfigurationKeys(t *testing.T) {
	known := map[string]bool{}
	sections := map[string]bool{}
	variables := map[string]bool{"SECKILL_FAULT": true, "SECKILL_CRASH_ROUNDS": true, "SECKILL_SMUGGLING_SEED": true, "SECKILL_HANDOVER_ROUNDS": true, "SECKILL_LOSS_PRODUCTS": true, "SECKILL_MEASURE_BACKLOG": true, "SECKILL_": true, config.FileVar: true, "SECKILL_A_B": true}
	for _, d := range config.Describe() {
		known[d.Key] = true
		section, _, _ := strings.Cut(d.Key, ".")
		sections[section] = true
		variables["SECKILL_"+strings.ToUpper(strings.ReplaceAll(d.Key, ".", "_"))] = true
	}
	for _, kind := range eventKinds(t) {
		known[kind] = true // an event looks like a key
	}
	onEveryPage(t, func(p page) (wrong []string) {
		for _, span := range p.spans {
			section, rest, _ := strings.Cut(span, ".")
			isFile := slices.Contains([]string{"go", "md", "yaml"}, rest)
			field := section == "ledger" && rest == "available" || section == "queue" && rest == "depth" || section == "store" && rest == "pending" // fields of the stats
			if keyPattern.MatchString(span) && sections[section] && !isFile && !field && !known[span] {
				wrong = append(wrong, "no key "+span)
			}
		}
		for _, code := range p.code() {
			for _, variable := range envPattern.FindAllString(code, -1) {
				if !variables[variable] && !strings.HasPrefix(variable, "SECKILL_SINK_") { // these name a sink
					wrong = append(wrong, "no variable "+variable)
				}
			}
		}
		return wrong
	})
}

// TestDocsConfigurationExampleIsValid checks the examples that readers copy.
func TestDocsConfigurationExampleIsValid(t *testing.T) {
	var secrets []string // these are in the environment
	for _, name := range []string{"ADMIN_TOKEN", "AUTH_JWT_SECRET", "TOKEN_SECRET", "PAYMENT_SANDBOX_SECRET"} {
		secrets = append(secrets, "SECKILL_"+name+"="+strings.Repeat("0123456789abcdef", 2))
	}
	sink := "SECKILL_SINK_SHOP_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	onEveryPage(t, func(p page) (wrong []string) {
		for _, fence := range p.fences {
			body, isYAML := strings.CutPrefix(fence, "```yaml\n")
			if !isYAML {
				continue
			}
			file := filepath.Join(t.TempDir(), "seckill.yaml")
			if err := os.WriteFile(file, []byte(strings.TrimSuffix(body, "```")), 0o600); err != nil {
				t.Fatal(err)
			}
			environ := slices.Clone(secrets)
			if strings.Contains(body, "name: shop\n") && !strings.Contains(body, "secret:") {
				environ = append(environ, sink)
			}
			if _, err := config.Load(config.Sources{File: file, Environ: environ}); err != nil {
				wrong = append(wrong, err.Error())
			}
		}
		return wrong
	})
}

var metricPattern = regexp.MustCompile(`\bseckill_[a-z_]+`)

// TestDocsAndMetricsAgree checks both directions: every documented metric exists, and every
// metric is documented.
func TestDocsAndMetricsAgree(t *testing.T) {
	source := sources(t, "internal/metrics")
	onEveryPage(t, func(p page) (wrong []string) {
		for _, code := range p.code() {
			for _, metric := range metricPattern.FindAllString(code, -1) {
				if !strings.Contains(source, `"`+metric+`"`) {
					wrong = append(wrong, "no metric "+metric)
				}
			}
		}
		return wrong
	})
	const reference = "docs/reference/metrics.md"
	text := readText(t, reference)
	for _, metric := range metricPattern.FindAllString(source, -1) {
		if !strings.Contains(text, metric) {
			t.Errorf("%s says nothing of %s", reference, metric)
		}
	}
}

// TestReadmes_Match compares the parts that both languages share: code, links,
// configuration, and the number of sections.
func TestReadmes_Match(t *testing.T) {
	english, chinese := readPage(t, "README.md"), readPage(t, "README.zh.md")
	configuration := func(p page) (all []string) {
		for _, fence := range p.fences {
			if strings.HasPrefix(fence, "```yaml\n") {
				all = append(all, fence)
			}
		}
		return all
	}
	linked := func(p page) (all []string) { // a Chinese page stands for the English one, and spells its headings otherwise
		for _, link := range p.links {
			file, _, _ := strings.Cut(link, "#")
			if !strings.HasPrefix(file, "README") {
				all = append(all, strings.NewReplacer("docs/zh/", "docs/", "README.zh.md", "README.md").Replace(file))
			}
		}
		return all
	}
	for what, of := range map[string]func(page) []string{
		"code":          func(p page) []string { return p.spans },
		"links":         linked,
		"configuration": configuration,
		"sections":      func(p page) []string { return make([]string, strings.Count(readText(t, p.path), "\n## ")) },
	} {
		a, b := slices.Sorted(slices.Values(of(english))), slices.Sorted(slices.Values(of(chinese)))
		if what == "code" || what == "links" { // as often as the language needs
			a, b = slices.Compact(a), slices.Compact(b)
		}
		if !slices.Equal(a, b) {
			t.Errorf("%s differ: English %q, Chinese %q", what, a, b)
		}
	}
}

var (
	routePattern  = regexp.MustCompile(`/(?:api|admin)/v1/[\w/{}$-]+`)
	adminVariable = regexp.MustCompile(`\$ADMIN(/[\w/{}$-]+)`)
	openPattern   = regexp.MustCompile(`(?m)^  (/[^:\n]+):`)
	anySegment    = regexp.MustCompile(`\\\{\w+\\\}`)
)

func TestDocsNameRoutes(t *testing.T) {
	var routes []*regexp.Regexp
	for _, open := range openPattern.FindAllStringSubmatch(string(seckill.OpenAPI), -1) {
		pattern := anySegment.ReplaceAllString(regexp.QuoteMeta(open[1]), `[^/]+`)
		routes = append(routes, regexp.MustCompile("^"+pattern+"$"))
	}
	onEveryPage(t, func(p page) (wrong []string) {
		for _, code := range p.code() {
			named := routePattern.FindAllString(code, -1)
			for _, found := range adminVariable.FindAllStringSubmatch(code, -1) {
				named = append(named, "/admin/v1"+found[1])
			}
			for _, route := range named {
				if !slices.ContainsFunc(routes, func(r *regexp.Regexp) bool { return r.MatchString(route) }) {
					wrong = append(wrong, "no route "+route)
				}
			}
		}
		return wrong
	})
}
