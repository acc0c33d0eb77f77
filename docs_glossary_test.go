package seckill_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestGlossary_HasOneMeaningPerWord holds the glossary of doc.go, and that the
// one for users gives the same meaning to a word that stands in both.
func TestGlossary_HasOneMeaningPerWord(t *testing.T) {
	const most = 30
	users := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(readText(t, "docs/concepts.md"), -1) {
		users[row[1]] = row[2]
	}
	words := regexp.MustCompile(`(?m)^//   - ([a-z ]+): (.+)$`).FindAllStringSubmatch(readText(t, "doc.go"), -1)
	if len(words) == 0 || len(words) > most {
		t.Errorf("doc.go has %d words, want 1 to %d", len(words), most)
	}
	shared, before := 0, ""
	for _, word := range words {
		name, meaning := word[1], word[2]
		if name <= before {
			t.Errorf("%q stands behind %q", name, before)
		}
		before = name
		if user, both := users[name]; both {
			shared++
			if !strings.HasPrefix(user, meaning) {
				t.Errorf("%s is %q in doc.go, and %q in docs/concepts.md", name, meaning, user)
			}
		}
	}
	if shared < 15 {
		t.Errorf("only %d words stand in both: is the pattern right?", shared)
	}
}
