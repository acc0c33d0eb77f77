package alert

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestThrottledLog_OneLineASecondPerKind(t *testing.T) {
	var out strings.Builder
	now := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	l := NewThrottledLog(slog.New(slog.NewTextHandler(&out, nil)), func() time.Time { return now })
	for range 3 { // seconds
		for i := range 100 {
			l.Say(slog.LevelWarn, "orders", "orders failed", "try", i)
			l.Say(slog.LevelWarn, "login", "login failed")
		}
		now = now.Add(LogEvery)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 6 {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	for i, line := range lines {
		if left := strings.Contains(line, "left_out=99"); left != (i >= 2) {
			t.Errorf("line %d: %s", i, line)
		}
	}
	now = now.Add(-time.Hour)
	l.Say(slog.LevelWarn, "login", "after the clock was set back")
	if !strings.Contains(out.String(), "set back") {
		t.Error("a clock that was set back silences a kind")
	}
}

func TestThrottledLog_KindsAreBounded(t *testing.T) {
	var out strings.Builder
	now := time.Now()
	l := NewThrottledLog(slog.New(slog.NewTextHandler(&out, nil)), func() time.Time { return now })
	var crowd sync.WaitGroup
	for g := range 4 {
		crowd.Go(func() {
			for i := range 1000 {
				l.Say(slog.LevelWarn, fmt.Sprint(g, i), "again")
			}
		})
	}
	crowd.Wait()
	if len(l.kinds) != maxKinds+1 || strings.Count(out.String(), "\n") != maxKinds+1 {
		t.Errorf("%d kinds, %d lines", len(l.kinds), strings.Count(out.String(), "\n"))
	}
	now = now.Add(forgetAfter)
	for range 2 {
		l.Say(slog.LevelWarn, "new", "after the crowd")
	}
	if strings.Count(out.String(), "after the crowd") != 1 || len(l.kinds) != 1 {
		t.Errorf("%d kinds are left:\n%s", len(l.kinds), out.String())
	}
}

func TestClip_CutsBetweenCharacters(t *testing.T) {
	if got := Clip("short"); got != "short" {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("长", MaxText)
	if got := Clip(long); len(got) > MaxText+len("…") || got != strings.Repeat("长", MaxText/3)+"…" {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
