package crash

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unreachable are points that the binary cannot pass, and why.
var unreachable = map[string]string{
	"store.lease.before_commit":             "with embedded parts one process has every duty, and none takes a lease",
	"store.lease.after_commit":              "with embedded parts one process has every duty, and none takes a lease",
	"store.number.before_commit":            "the embedded store numbers events as it writes them",
	"store.number.after_commit":             "the embedded store numbers events as it writes them",
	"store.identity.before_commit":          "only a ledger that other stores could share asks for the identity, which names its keys",
	"store.identity.after_commit":           "only a ledger that other stores could share asks for the identity, which names its keys",
	"store.open sink.before_commit":         "without a sink nobody comes here; to repeat it is harmless",
	"store.open sink.after_commit":          "without a sink nobody comes here; to repeat it is harmless",
	"store.hasten deliveries.before_commit": "without a sink nobody comes here; to repeat it is harmless",
	"store.hasten deliveries.after_commit":  "without a sink nobody comes here; to repeat it is harmless",
	"store.retry delivery.before_commit":    "without a sink nobody comes here; to repeat it is harmless",
	"store.retry delivery.after_commit":     "without a sink nobody comes here; to repeat it is harmless",
	"store.change deliveries.before_commit": "without a sink nobody comes here; to repeat it is harmless",
	"store.change deliveries.after_commit":  "without a sink nobody comes here; to repeat it is harmless",
	"store.skip delivery.before_commit":     "without a sink nobody comes here; to repeat it is harmless",
	"store.skip delivery.after_commit":      "without a sink nobody comes here; to repeat it is harmless",
	"store.replay sink.before_commit":       "without a sink nobody comes here; to repeat it is harmless",
	"store.replay sink.after_commit":        "without a sink nobody comes here; to repeat it is harmless",
	"store.sweep deliveries.before_commit":  "without a sink nobody comes here; to repeat it is harmless",
	"store.sweep deliveries.after_commit":   "without a sink nobody comes here; to repeat it is harmless",
	"store.set sink down.before_commit":     "without a sink nobody comes here; to repeat it is harmless",
	"store.set sink down.after_commit":      "without a sink nobody comes here; to repeat it is harmless",
	"store.forget sink.before_commit":       "without a sink nobody comes here; to repeat it is harmless",
	"store.forget sink.after_commit":        "without a sink nobody comes here; to repeat it is harmless",
	"store.take sink.before_commit":         "without a sink nobody comes here: see TestSink_KilledEngineLosesNoEvent",
	"store.take sink.after_commit":          "without a sink nobody comes here: see TestSink_KilledEngineLosesNoEvent",
	"store.settle deliveries.before_commit": "without a sink nobody comes here: see TestSink_KilledEngineLosesNoEvent",
	"store.settle deliveries.after_commit":  "without a sink nobody comes here: see TestSink_KilledEngineLosesNoEvent",
	"relay.after_publish":                   "without a broker nobody comes here: see test/carry",
	"relay.before_settle":                   "without a broker nobody comes here: see test/carry",
	"store.acknowledge.after_commit":        "the embedded ledger cannot be taken over: see test/outage and the crash tests of storesql",
	"store.acknowledge.before_commit":       "the embedded ledger cannot be taken over: see test/outage and the crash tests of storesql",
	"store.instance.after_commit":           "the embedded ledger cannot be taken over: see test/outage and the crash tests of storesql",
	"store.instance.before_commit":          "the embedded ledger cannot be taken over: see test/outage and the crash tests of storesql",
	"store.open.after_commit":               "the embedded ledger cannot be taken over: see test/outage and the crash tests of storesql",
	"store.open.before_commit":              "the embedded ledger cannot be taken over: see test/outage and the crash tests of storesql",
	"store.takeover.after_commit":           "the embedded ledger cannot be taken over: see test/outage and the crash tests of storesql",
	"store.takeover.before_commit":          "the embedded ledger cannot be taken over: see test/outage and the crash tests of storesql",
	"takeover.after_ack":                    "the embedded ledger cannot be taken over: see test/outage and the crash tests of storesql",
	"takeover.after_epoch":                  "the embedded ledger cannot be taken over: see test/outage and the crash tests of storesql",
	"takeover.before_ack":                   "the embedded ledger cannot be taken over: see test/outage and the crash tests of storesql",
}

// TestEveryPointHasAnOrdeal finds the points in the source, so that a new one
// cannot go untested.
func TestEveryPointHasAnOrdeal(t *testing.T) {
	points := pointsInSource(t)
	if len(points) < 50 {
		t.Fatalf("only %d points found: %v", len(points), points)
	}
	var tested []string
	for _, o := range ordeals() {
		name, _, _ := strings.Cut(o.point, ":")
		tested = append(tested, name)
		if !slices.Contains(points, name) {
			t.Errorf("an ordeal waits for %s, which is not in the source", name)
		}
	}
	for name := range unreachable {
		if !slices.Contains(points, name) {
			t.Errorf("%s is exempted, and is not in the source", name)
		}
	}
	for _, point := range points {
		if _, exempt := unreachable[point]; exempt == slices.Contains(tested, point) {
			t.Errorf("point %s needs an ordeal, or a reason why it cannot be reached, and not both", point)
		}
	}
}

// pointsInSource lists the names of all fault points. A name that is put
// together from a transaction's name stands for one point per transaction.
func pointsInSource(t *testing.T) []string {
	t.Helper()
	var points, patterns, transactions []string
	err := filepath.WalkDir("../../internal", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if fun, _ := call.Fun.(*ast.Ident); fun != nil && fun.Name == "changed" && strings.Contains(path, "storesql") {
				transactions = append(transactions, text(call.Args[2]))
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			receiver, _ := fun.X.(*ast.Ident)
			switch {
			case receiver != nil && receiver.Name == "fault" && fun.Sel.Name == "Point":
				if name := text(call.Args[0]); strings.Contains(name, "*") {
					patterns = append(patterns, name)
				} else {
					points = append(points, name)
				}
			case fun.Sel.Name == "change" && len(call.Args) == 3 && strings.Contains(path, "storesql"):
				transactions = append(transactions, text(call.Args[1]))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range patterns {
		for _, name := range transactions {
			if name == "*" { // passed on by changed
				continue
			}
			points = append(points, strings.Replace(pattern, "*", name, 1))
		}
	}
	slices.Sort(points)
	return slices.Compact(points)
}

// text is the value of a string expression, with * for what is not literal.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if value, err := strconv.Unquote(e.Value); err == nil {
			return value
		}
	case *ast.BinaryExpr:
		return text(e.X) + text(e.Y)
	}
	return "*"
}
