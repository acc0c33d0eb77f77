package seckill_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// Imports have one direction: domain ◄ ports ◄ stages ◄ HTTP ◄ app ◄ cmd, and only app imports
// adapters. The rules below use package names, so that they also apply to new packages.

const module = "seckill"

// role is a package's position in that order.
type role string

const (
	roleDomain  role = "the domain"
	rolePort    role = "a port"
	roleAdapter role = "an adapter"
	roleSuite   role = "a test suite"
	roleStage   role = "a stage"
	roleHTTP    role = "an HTTP package"
	roleApp     role = "app"
	roleCommand role = "a command"
	roleTest    role = "a test tree"
	roleExample role = "an example"
	roleOther   role = "a part" // such as config or metrics
	roleOutside role = "a library"
	roleStdlib  role = "the standard library"
)

var (
	ports  = []string{"internal/ledger", "internal/queue", "internal/store", "internal/payment", "internal/notify", "internal/onetime", "internal/carrier", "internal/sink"}
	stages = []string{"admission", "purchase", "relay", "worker", "reconcile", "sale", "order", "recovery"}
	fronts = []string{"shopapi", "adminapi"}
	// adapterPrefixes name an adapter: its port, then its technology.
	adapterPrefixes = []string{"ledger", "queue", "store", "pay", "notify", "onetime", "carrier", "sink"}
)

// roleOf returns a package's role by its import path.
func roleOf(pkg string) role {
	local, inside := strings.CutPrefix(pkg, module+"/")
	first, _, _ := strings.Cut(local, "/")
	switch {
	case pkg == module:
		return roleDomain
	case !inside && strings.Contains(first, "."):
		return roleOutside
	case !inside:
		return roleStdlib
	case first == "cmd":
		return roleCommand
	case first == "test" || first == "bench":
		return roleTest
	case first == "examples":
		return roleExample
	case slices.Contains(ports, local):
		return rolePort
	case first != "internal":
		return roleOther
	}
	return roleInside(strings.Split(local, "/")[1:])
}

// roleInside returns the role of a package below internal. A package within another has the
// role of its outermost one.
func roleInside(elements []string) role {
	for _, name := range elements {
		isPort := slices.Contains(ports, "internal/"+name)
		switch {
		case strings.HasSuffix(name, "test") && name != "loadtest":
			return roleSuite
		case !isPort && slices.ContainsFunc(adapterPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }):
			return roleAdapter
		case slices.Contains(stages, name):
			return roleStage
		case slices.Contains(fronts, name):
			return roleHTTP
		case name == "app":
			return roleApp
		}
	}
	return roleOther
}

// forbidden returns the reason why importer must not import imported, or "". The rules do not
// apply to test files, which wire their own parts.
func forbidden(importer, imported string) string {
	from, to := roleOf(importer), roleOf(imported)
	not := func(allowed ...role) string {
		if slices.Contains(allowed, to) {
			return ""
		}
		return fmt.Sprintf("%s is %s and must not import %s, which is %s", importer, from, imported, to)
	}
	switch {
	case within(importer, imported):
		return "" // a package and its own parts
	case from == roleDomain:
		return not(roleStdlib)
	case from == rolePort:
		return not(roleStdlib, roleDomain, rolePort)
	case from == roleTest:
		return ""
	case from == roleExample:
		return not(roleStdlib, roleOutside) // an example is a program outside the project
	case from == roleSuite:
		return not(roleStdlib, roleOutside, roleDomain, rolePort, roleSuite, roleOther)
	case to == roleTest, to == roleSuite, to == roleCommand, to == roleExample:
		return not() // no package imports a test, a command or an example
	case from == roleCommand:
		return not(roleStdlib, roleOutside, roleDomain, rolePort, roleStage, roleHTTP, roleApp, roleOther)
	case from == roleApp:
		return ""
	case from == roleHTTP:
		return not(roleStdlib, roleOutside, roleDomain, rolePort, roleStage, roleOther)
	case from == roleAdapter:
		return not(roleStdlib, roleOutside, roleDomain, rolePort, roleOther)
	}
	return not(roleStdlib, roleOutside, roleDomain, rolePort, roleStage, roleOther)
}

// within reports whether both packages are parts of one package that is not a port. Ports must
// not import the adapters below them.
func within(importer, imported string) bool {
	common := commonPath(importer, imported)
	local := strings.TrimPrefix(common, module+"/")
	return strings.Count(common, "/") >= 2 && !slices.Contains(ports, local) || roleOf(common) == roleCommand && common != module+"/cmd"
}

func commonPath(a, b string) string {
	for a != b {
		if len(a) < len(b) {
			a, b = b, a
		}
		if a = path.Dir(a); a == "." {
			return ""
		}
	}
	return a
}

func TestImports_HaveOneDirection(t *testing.T) {
	for importer, imports := range importsOfModule(t) {
		for _, imported := range imports {
			if why := forbidden(importer, imported); why != "" {
				t.Error(why)
			}
		}
	}
}

// importsOfModule returns the imports of every package, without tests. A package that does not
// build is included.
func importsOfModule(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	imports := map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("decode go list: %v", err)
		}
		imports[pkg.ImportPath] = pkg.Imports
	}
	if _, found := imports[module]; !found || len(imports) < 2 {
		t.Fatalf("go list named %d packages and not the whole module", len(imports))
	}
	return imports
}

// TestImportRules tests the rules, also for packages that do not exist yet.
func TestImportRules(t *testing.T) {
	const in = module + "/internal/"
	cases := []struct {
		importer, imported string
		allowed            bool
	}{
		{module, "time", true},
		{module, "golang.org/x/sync/errgroup", false},
		{module, in + "store", false},
		{in + "store", module, true},
		{in + "store", in + "queue", true},
		{in + "store", in + "fault", false},
		{in + "store", in + "store/storesql", false},
		{in + "ledger", in + "purchase", false},
		{in + "queue", "github.com/twmb/franz-go/pkg/kgo", false},
		{in + "ledger/ledgermem", in + "queue", true},
		{in + "ledger/ledgermem", in + "fault", true},
		{in + "ledger/ledgermem", in + "worker", false},
		{in + "ledger/ledgerredis", in + "ledger/ledgermem", false},
		{in + "ledger/ledgerredis", in + "ledger/ledgerredis/script", true},
		{in + "app", in + "ledger/ledgerredis/script", true},
		{in + "app", in + "store/storesql", true},
		{in + "app", in + "payment/paysandbox", true},
		{in + "app", in + "store/storetest", false},
		{in + "app", module + "/cmd/seckill", false},
		{in + "worker", in + "store", true},
		{in + "worker", in + "sale", true},
		{in + "worker", in + "store/storesql", false},
		{in + "reconcile", in + "payment/paywechat", false},
		{in + "order", in + "queue/queuekafka", false},
		{in + "order", in + "shopapi", false},
		{in + "admission", in + "adminapi", false},
		{in + "purchase", in + "app", false},
		{in + "recovery", in + "sale", true},
		{in + "metrics", in + "shopapi", false},
		{in + "shopapi", in + "order", true},
		{in + "shopapi", in + "adminapi", false},
		{in + "shopapi", in + "ledger/ledgermem", false},
		{in + "adminapi", in + "app", false},
		{in + "loadtest", in + "api", true},
		{module + "/cmd/seckill", in + "app", true},
		{module + "/cmd/seckill", in + "loadtest", true},
		{module + "/cmd/seckill", in + "store/storesql", false},
		{module + "/cmd/seckill", module + "/cmd/seckill/internal/flag", true},
		{module + "/web", module + "/cmd/seckill", false},
		{in + "store/storetest", in + "store", true},
		{in + "store/storetest", in + "store/storesql", false},
		{in + "config", in + "store/storetest", false},
		{module + "/test/crash", in + "store/storesql", true},
		{module + "/examples/shop", "github.com/golang-jwt/jwt/v5", true},
		{module + "/examples/shop", in + "api", false},
		{module + "/examples/shop", module, false},
		{in + "app", module + "/examples/shop", false},
	}
	for _, c := range cases {
		if why := forbidden(c.importer, c.imported); (why == "") != c.allowed {
			t.Errorf("%s importing %s: allowed is %v, want %v (%s)", c.importer, c.imported, why == "", c.allowed, why)
		}
	}
}
