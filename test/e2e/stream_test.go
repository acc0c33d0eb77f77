package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"seckill/internal/api"
	"seckill/test/engine"
)

// stream is an event stream being read.
type stream struct {
	t      *testing.T
	cancel context.CancelFunc
	res    *http.Response
	lines  *bufio.Scanner
}

// follow opens an event stream.
func follow(t *testing.T, e *engine.Engine, url string, header http.Header) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settleWithin)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	client := *e.HTTP()
	client.Timeout = 0 // a stream does not end
	res, err := client.Do(req)
	if err != nil {
		t.Fatalf("follow %s: %v", url, err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("follow %s: %d %s", url, res.StatusCode, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return &stream{t: t, cancel: cancel, res: res, lines: lines}
}

func (s *stream) close() {
	s.cancel()
	_ = s.res.Body.Close()
}

// read is the next event's name and data; false at the end of the stream.
func (s *stream) read() (name, data string, ok bool) {
	for s.lines.Scan() {
		line := s.lines.Text()
		switch {
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			data = strings.TrimPrefix(line, "data: ")
		case line == "" && data != "":
			return name, data, true
		}
	}
	return "", "", false
}

// next is the next event; the end of the stream fails the test.
func (s *stream) next() (name, data string) {
	s.t.Helper()
	name, data, ok := s.read()
	if !ok {
		s.t.Fatalf("the stream ended: %v", s.lines.Err())
	}
	return name, data
}

// status is the status of the order in the next event.
func (s *stream) status() string {
	s.t.Helper()
	name, data := s.next()
	var order api.Order
	if err := json.Unmarshal([]byte(data), &order); err != nil || name != "order" {
		s.t.Fatalf("event %q with %q: %v", name, data, err)
	}
	return order.Status
}
