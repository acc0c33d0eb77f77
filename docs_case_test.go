package seckill_test

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Documents name tests as `package:Test` or `package:Test/part`. The promises and defences rest
// on those of docs/contributing/evidence.md and evidence-security.md.

var caseFinder = regexp.MustCompile(`^(\w+):(Test\w+)(?:/(.+))?$`)

// caseError returns the error of a `package:Test` or `package:Test/part`, or "".
func caseError(tests map[string]string, span string) string {
	found := caseFinder.FindStringSubmatch(span)
	if found == nil {
		return ""
	}
	source, part := tests[found[1]], found[3]
	switch {
	case !strings.Contains(source, "\nfunc "+found[2]+"(t *testing.T)"):
		return "no test " + span
	case part != "" && !strings.Contains(source, `"`+part+`"`):
		return fmt.Sprintf("no part %q of %s", part, found[2])
	}
	return ""
}

// testSources returns the tests of each package as text, by directory name.
func testSources(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, root := range []string{"cmd", "internal", "test", "web"} {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(name, "_test.go") {
				all[path.Base(path.Dir(name))] += readText(t, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	own, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range own {
		all["seckill"] += readText(t, name) // together with those of cmd/seckill
	}
	return all
}

// TestDocsNameCases checks every `package:Test`.
func TestDocsNameCases(t *testing.T) {
	tests := testSources(t)
	onEveryPage(t, func(p page) (wrong []string) {
		for _, span := range p.spans {
			if err := caseError(tests, span); err != "" {
				wrong = append(wrong, err)
			}
		}
		return wrong
	})
}

// TestEvidence_EveryRowNamesATest checks that each row of the evidence for docs/guarantees.md
// names a test, or says that there is none.
func TestEvidence_EveryRowNamesATest(t *testing.T) {
	rowsNameTests(t, "docs/contributing/evidence.md", 80)
}

// TestSecurityEvidence_EveryRowNamesATest checks the rows of the security evidence.
func TestSecurityEvidence_EveryRowNamesATest(t *testing.T) {
	rowsNameTests(t, "docs/contributing/evidence-security.md", 80)
}

// rowsNameTests checks the rows of a page's tables that have a column for tests.
func rowsNameTests(t *testing.T, page string, fewest int) {
	t.Helper()
	rows, shown, isTable := 0, 0, false
	for line := range strings.Lines(readText(t, page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case !strings.HasPrefix(line, "|"):
			isTable = false
		case last == "test":
			isTable = true
		case isTable && !strings.HasPrefix(last, "---"):
			rows++
			if strings.Contains(last, ":Test") {
				shown++
			} else if !strings.Contains(last, "*no test") {
				t.Errorf("no test is named: %s", strings.TrimSpace(line))
			}
		}
	}
	if rows < fewest || shown*4 < rows*3 {
		t.Errorf("%d of %d rows are shown by a test", shown, rows)
	}
}
