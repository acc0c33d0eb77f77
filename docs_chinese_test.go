package seckill_test

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var noteInCode = regexp.MustCompile(`(?m) *(?:#|//).*$`)

// TestChinesePages_MatchTheEnglishOnes compares the parts that both languages share: inline
// code, code blocks without their comments, and the number of sections.
func TestChinesePages_MatchTheEnglishOnes(t *testing.T) {
	pages, err := filepath.Glob("docs/zh/*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := func(p page) (all []string) {
		for _, fence := range p.fences {
			all = append(all, noteInCode.ReplaceAllString(fence, ""))
		}
		return all
	}
	spans := func(p page) []string { return slices.Compact(slices.Sorted(slices.Values(p.spans))) }
	for _, name := range pages {
		chinese, english := readPage(t, name), readPage(t, path.Join("docs", path.Base(name)))
		a, b := spans(english), spans(chinese)
		for _, span := range a {
			if !slices.Contains(b, span) {
				t.Errorf("%s lacks `%s`", name, span)
			}
		}
		for _, span := range b {
			if !slices.Contains(a, span) {
				t.Errorf("%s has `%s`, its English page does not", name, span)
			}
		}
		if !slices.Equal(blocks(english), blocks(chinese)) {
			t.Errorf("%s has other code blocks than its English page", name)
		}
		if a, b := strings.Count(readText(t, english.path), "\n## "), strings.Count(readText(t, name), "\n## "); a != b {
			t.Errorf("%s has %d sections, its English page %d", name, b, a)
		}
	}
}
