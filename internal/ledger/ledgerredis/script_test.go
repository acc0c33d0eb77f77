package ledgerredis

import (
	"io/fs"
	"strings"
	"testing"
)

// A file with a shebang is a script. One without is a prelude.
func TestScripts_AreLoadedAtTheStart(t *testing.T) {
	files, err := fs.Glob(scriptFiles, "script/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	told := make(map[string]bool)
	for _, s := range scripts() {
		told[s.sha] = true
	}
	count := 0
	for _, file := range files {
		if text, err := scriptFiles.ReadFile(file); err == nil && strings.HasPrefix(string(text), "#!lua") {
			count++
		}
	}
	if len(told) != count {
		t.Errorf("%d scripts are loaded, but there are %d", len(told), count)
	}
}
