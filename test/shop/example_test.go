package shop

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"seckill/test/engine"
)

const exampleDir = "../../examples/shop"

func readExample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(exampleDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Readers copy these files. The engine accepts its configuration, and both
// programs have the same secrets.
func TestExample_FilesFitTogether(t *testing.T) {
	configuration := readExample(t, "seckill.yaml")
	for line := range strings.Lines(readExample(t, "example.env")) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if found && !strings.HasPrefix(name, "#") && name != "SHOP_OPERATOR_TOKEN" && !strings.Contains(configuration, ": "+value+"\n") {
			t.Errorf("seckill.yaml does not have the value of %s", name)
		}
	}
	check := exec.CommandContext(t.Context(), engine.Binary(t), "config", "check", "--config", filepath.Join(exampleDir, "seckill.yaml"))
	check.Env = []string{"HOME=" + t.TempDir()} // no setting of this test's environment
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("seckill.yaml: %v\n%s", err, out)
	}
}

var (
	codePattern  = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]+`")
	placePattern = regexp.MustCompile("`(\\w+\\.go):(\\w+)`")
)

// The READMEs have the same code in both languages, and each function that they
// name exists.
func TestExample_ReadmesSayTheSame(t *testing.T) {
	english, chinese := readExample(t, "README.md"), readExample(t, "README.zh.md")
	code := func(text string) []string {
		return slices.Compact(slices.Sorted(slices.Values(codePattern.FindAllString(text, -1))))
	}
	if a, b := code(english), code(chinese); !slices.Equal(a, b) {
		t.Errorf("code differs: English %q, Chinese %q", a, b)
	}
	for _, place := range placePattern.FindAllStringSubmatch(english, -1) {
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + place[2] + `\(`).MatchString(readExample(t, place[1])) {
			t.Errorf("%s declares no %s", place[1], place[2])
		}
	}
}
