package outage

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/test/market"
)

// report is what a campaign did and found.
type report struct {
	seed         uint64
	lasted       time.Duration
	faults       map[string]int
	spared       int // faults that did not happen, because the store did not follow
	answers      map[string]int
	acts, orders int
	recoveries   int
	losses       int            // of the ledger
	mended       int            // of them, seen to be mended before the next
	failures     map[string]int // promises that ended as failed, by reason
	unheard      int            // keys that were refused by an instance that had not heard of the sale
	buyers       int            // whose histories were checked
	refusals     refusals
	median, p99  time.Duration
	slowest      time.Duration
	slower       int // answers that took longer than they may
	findings     []string
}

// latencies measures how long the crowd waited for answers.
func (r *report) latencies(acts []market.Act) {
	took := make([]time.Duration, 0, len(acts))
	for _, a := range acts {
		d := a.Done.Sub(a.Called)
		took = append(took, d)
		if d > answerWithin {
			r.slower++
		}
	}
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	r.median, r.p99, r.slowest = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
}

// write gives the report to the log, and to the file that the environment
// names.
func (r *report) write(t *testing.T, failed bool) {
	t.Helper()
	text := r.markdown(failed)
	t.Log("\n" + text)
	if path := os.Getenv(reportEnv); path != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Errorf("write the report: %v", err)
		}
	}
}

func (r *report) markdown(failed bool) string {
	var b strings.Builder
	verdict := "all promises held"
	if failed {
		verdict = "FAILED"
	}
	fmt.Fprintf(&b, "# Torture with seed %d: %s\n\n", r.seed, verdict)
	fmt.Fprintf(&b, "| | |\n|---|---|\n")
	line := func(what string, value any) { fmt.Fprintf(&b, "| %s | %v |\n", what, value) }
	line("lasted", r.lasted.Round(time.Second))
	line("requests to buy", r.acts)
	for _, name := range slices.Sorted(maps.Keys(r.answers)) {
		line("answered "+name, r.answers[name])
	}
	line("faults spared", r.spared)
	line("orders in the store", r.orders)
	line("epochs begun, by rebuilds and takeovers", r.recoveries)
	line("answer: median, 99%, slowest", fmt.Sprintf("%v, %v, %v", r.median.Round(time.Microsecond), r.p99.Round(time.Millisecond), r.slowest.Round(time.Millisecond)))
	line(fmt.Sprintf("answers over %v", answerWithin), r.slower)
	line("buyers' histories checked", r.buyers)
	line("refusals as sold out", r.refusals.all)
	line("of these decided: certainly right, certainly wrong", fmt.Sprintf("%d, %d", r.refusals.right, r.refusals.wrong))
	line("and not decided: in doubt, otherwise", fmt.Sprintf("%d, %d", r.refusals.doubted, r.refusals.all-r.refusals.decided()-r.refusals.doubted))
	line("losses of the ledger, of which seen mended", fmt.Sprintf("%d, %d", r.losses, r.mended))
	for _, reason := range slices.Sorted(maps.Keys(r.failures)) {
		line("promises failed, "+reason, r.failures[reason])
	}
	line("keys refused within a second, unheard of", r.unheard)
	line("findings", len(r.findings))
	fmt.Fprintf(&b, "\n| fault | times |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(r.faults)) {
		line(name, r.faults[name])
	}
	for _, finding := range r.findings {
		fmt.Fprintf(&b, "\n- %s\n", finding)
	}
	return b.String()
}
