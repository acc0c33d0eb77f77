package rig

import (
	"bytes"
	"sync"
)

// Log keeps the log lines of a part. It is an io.Writer for a slog.Handler.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds a line.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// Count counts the lines that contain a text.
func (l *Log) Count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.text.Bytes()) {
		if bytes.Contains(line, []byte(text)) {
			n++
		}
	}
	return n
}
