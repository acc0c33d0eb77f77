package carry

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"seckill/test/market"
)

// sinkOn configures a sink on a topic of the broker.
func sinkOn(t testing.TB, kind, topic string) map[string]string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "seckill.yaml")
	text := fmt.Sprintf("sinks:\n  - name: events\n    kind: %s\n    topic: %s\n", kind, topic)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"config": config}
}

// told returns the events of each subject in order, and their number. A
// repeated event counts once.
func told(t testing.TB, topic string) (all map[string][]string, events int) {
	t.Helper()
	all, seen := make(map[string][]string), make(map[string]bool)
	const begin = `{"specversion":`
	for _, text := range strings.Split(topic, begin)[1:] {
		var e struct{ ID, Subject, Type string }
		if err := json.NewDecoder(strings.NewReader(begin + text)).Decode(&e); err != nil {
			t.Fatalf("an event is no JSON: %v", err)
		}
		if !seen[e.ID] {
			seen[e.ID] = true
			events++
			all[e.Subject] = append(all[e.Subject], e.Type)
		}
	}
	return all, events
}

// wantEvents checks that another client reads every event of the store from a
// topic, and the events of one subject in order. Call it when no order is open.
func (s *site) wantEvents(topic string) {
	s.t.Helper()
	want, n := make(map[string][]string), 0
	for after := int64(0); ; {
		page, next, err := s.Operator().Events(s.t.Context(), after)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range page {
			subject := e.OrderNo
			if subject == "" {
				subject = fmt.Sprintf("product:%d", e.ProductID)
			}
			want[subject] = append(want[subject], "seckill."+string(e.Event))
		}
		if n += len(page); len(page) == 0 {
			break
		}
		after = next
	}
	market.Eventually(s.t, "the sink has delivered all events", func(context.Context) bool {
		return s.total(`seckill_sink_deliveries_total{result="delivered",sink="events"}`) >= float64(n)
	})
	got, events := told(s.t, s.broker.Events(topic, n))
	if events < n { // some events came twice
		got, events = told(s.t, s.broker.Events(topic, 2*n-events))
	}
	if events != n || n == 0 {
		s.t.Errorf("the topic has %d events, the store %d", events, n)
	}
	for subject, events := range want {
		if !slices.Equal(got[subject], events) {
			s.t.Errorf("of %s the topic tells %q, the store %q", subject, got[subject], events)
		}
	}
}
