package seckill_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"seckill/internal/alert"
)

var alertRow = regexp.MustCompile("(?m)^\\| `([^`]+)`: (.+?) \\|")

// An alert that nobody can look up wakes somebody for nothing.
func TestDocsAndAlertsAgree(t *testing.T) {
	for page, heading := range map[string]string{"docs/runbook.md": "Alerts", "docs/zh/runbook.md": "告警"} {
		_, section, _ := strings.Cut(readText(t, page), "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		var told []alert.Kind
		for _, row := range alertRow.FindAllStringSubmatch(section, -1) {
			told = append(told, alert.Kind{Label: row[1], Text: row[2]})
		}
		for _, kind := range alert.Kinds {
			if !slices.Contains(told, kind) {
				t.Errorf("%s says nothing of %q", page, kind)
			}
		}
		for _, kind := range told {
			if !slices.Contains(alert.Kinds, kind) {
				t.Errorf("%s tells of %q, which nobody raises", page, kind)
			}
		}
	}
}
