package alert

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
)

// A throttled log writes at most one line a second of each kind of event that
// strangers can cause. The next line has the number of lines that were left
// out.

const (
	// LogEvery is the least time between two lines of one kind.
	LogEvery = time.Second
	// MaxText bounds the logged part of a text that a stranger may have chosen.
	MaxText = 512
	// maxKinds bounds the memory. Callers choose kinds, never strangers. If
	// there are too many, old kinds are forgotten, and further ones share one
	// kind.
	maxKinds    = 256
	forgetAfter = time.Minute
)

// ThrottledLog writes throttled lines. It is safe for concurrent use.
type ThrottledLog struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	kinds map[string]*turn
}

// turn is the time of a kind's last line, and how many were left out since.
type turn struct {
	at   time.Time
	left int
}

// NewThrottledLog makes one.
func NewThrottledLog(log *slog.Logger, now func() time.Time) *ThrottledLog {
	return &ThrottledLog{log: log, now: now, kinds: make(map[string]*turn)}
}

// Say writes a line, unless one of its kind was written less than LogEvery ago.
func (l *ThrottledLog) Say(level slog.Level, kind, message string, args ...any) {
	left, ok := l.take(kind)
	if !ok {
		return
	}
	if left > 0 {
		args = append(args, "left_out", left)
	}
	l.log.Log(context.Background(), level, message, args...)
}

// take reports whether the kind may write a line now, and how many lines were
// left out before.
func (l *ThrottledLog) take(kind string) (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	t := l.kinds[kind]
	if t == nil && len(l.kinds) >= maxKinds {
		maps.DeleteFunc(l.kinds, func(_ string, t *turn) bool { return now.Sub(t.at) >= forgetAfter })
		if len(l.kinds) >= maxKinds {
			kind = ""
			t = l.kinds[kind]
		}
	}
	if t == nil {
		l.kinds[kind] = &turn{at: now}
		return 0, true
	}
	// A clock that was set back does not stop a kind.
	if since := now.Sub(t.at); since >= 0 && since < LogEvery {
		t.left++
		return 0, false
	}
	left, t.at, t.left = t.left, now, 0
	return left, true
}

// Clip returns the beginning of a text.
func Clip(text string) string {
	if len(text) <= MaxText {
		return text
	}
	return strings.ToValidUTF8(text[:MaxText], "") + "…"
}
