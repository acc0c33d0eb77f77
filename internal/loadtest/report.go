package loadtest

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"seckill/internal/api"
)

// Report is the result of a load test.
type Report struct {
	ProductID    uint32   `json:"product_id"`
	Fresh        bool     `json:"fresh"`          // made for this test
	Deleted      bool     `json:"deleted"`        // with its orders, after the test
	Kept         string   `json:"kept,omitempty"` // why a fresh one was not deleted
	Run          string   `json:"run"`
	StartsAt     api.Time `json:"starts_at"`
	Buyers       int      `json:"buyers"`
	Units        int64    `json:"units"` // free before the rush
	Quantity     int      `json:"quantity"`
	PerUserLimit int      `json:"per_user_limit"`
	Connections  int      `json:"connections"`
	ClockOffset  float64  `json:"clock_offset_ms"`
	RoundTrip    float64  `json:"round_trip_ms"`

	Sent    int64            `json:"sent"`
	Answers map[string]int64 `json:"answers"` // "accepted", one per code, "no_answer"
	Seconds float64          `json:"seconds"`
	Rate    float64          `json:"rate_per_second"`
	// Buyers by the outcome of their requests.
	Won        int64 `json:"won"`
	Refused    int64 `json:"refused"`
	GaveUp     int64 `json:"gave_up"`
	NeverAsked int64 `json:"never_asked"`
	OutOfTime  bool  `json:"out_of_time"` // Duration ended the rush
	// TokensFetched counts purchase tokens that were fetched during the rush.
	// NoToken counts buyers who ended without a token.
	TokensFetched int64 `json:"tokens_fetched"`
	NoToken       int64 `json:"no_token"`

	// Accepted and TurnedAway are the latencies of accepted and refused requests.
	Accepted   Latency `json:"latency_accepted"`
	TurnedAway Latency `json:"latency_refused"`

	Paid      int   `json:"paid"`
	Cancelled int   `json:"cancelled"`
	Repeated  int64 `json:"repeated"`
	// OrdersRead is less than Won if only a sample was read.
	OrdersRead int64 `json:"orders_read"`

	Partial string  `json:"partial,omitempty"` // why the test was cut short
	Checks  []Check `json:"checks"`
	Verdict Verdict `json:"verdict"`
}

func newReport(opt *Options) *Report {
	return &Report{Run: opt.Run, Buyers: opt.Buyers, Quantity: opt.Quantity, Connections: opt.Connections}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (r *Report) begins(p *api.AdminProduct, before *api.Stats, c *clock) {
	r.ProductID, r.StartsAt, r.PerUserLimit = p.ID, p.StartsAt, p.PerUserLimit
	r.Units = before.Available()
	r.ClockOffset, r.RoundTrip = milliseconds(c.offset), milliseconds(c.trip)
}

func (r *Report) rushed(c *crowd, took time.Duration) {
	r.Sent, r.Answers, r.Seconds = c.tally.sent.Load(), c.tally.byName(), took.Seconds()
	if took > 0 {
		r.Rate = float64(r.Sent) / took.Seconds()
	}
	r.TokensFetched = c.tally.fetched.Load()
	r.Accepted, r.TurnedAway = latencyOf(c.tally.accepted), latencyOf(c.tally.refused)
}

func (r *Report) settled(e *Evidence, done *settling) {
	r.Paid, r.Cancelled = len(done.pays), len(done.cancels)
	r.OrdersRead = e.Orders.Read
}

func (r *Report) conclude(e *Evidence) {
	r.Won, r.Refused, r.GaveUp, r.NeverAsked = e.Won, e.Refused, e.GaveUp, e.NeverAsked
	r.NoToken = e.NoToken
	r.Repeated = e.Repeats.Same + e.Repeats.Other + e.Repeats.Unknown
	r.Partial = e.Partial
	r.Checks = Judge(e)
	r.Verdict = Overall(r.Checks)
}

// WriteText writes the report as text.
func (r *Report) WriteText(w io.Writer) error {
	var text strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	say("Product %d: %d buyers, %d each, for %d units (limit %d), %d connections", r.ProductID, r.Buyers, r.Quantity, r.Units, r.PerUserLimit, r.Connections)
	if r.Partial != "" {
		say("PARTIAL: %s", r.Partial)
	}
	if r.OutOfTime {
		say("The crowd was stopped by --duration.")
	}
	say("%d requests in %.2f s, %.0f/s; the server's clock is %+.1f ms from ours, %.1f ms there and back", r.Sent, r.Seconds, r.Rate, r.ClockOffset, r.RoundTrip)
	say("%d won, %d refused, %d gave up, %d never asked; %d repeated, %d paid, %d cancelled", r.Won, r.Refused, r.GaveUp, r.NeverAsked, r.Repeated, r.Paid, r.Cancelled)
	if r.TokensFetched > 0 || r.NoToken > 0 {
		say("%d purchase tokens were fetched while the crowd was there: others had run out, were refused, or had not come in time; %d buyers had none that lived", r.TokensFetched, r.NoToken)
	}
	say("answers: %s\n", r.answers())

	table := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "latency (ms)\tcount\tp50\tp90\tp99\tp99.9\tmax")
	for _, row := range []struct {
		name string
		Latency
	}{{"accepted", r.Accepted}, {"refused", r.TurnedAway}} {
		fmt.Fprintf(table, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\n", row.name, row.Count, row.P50, row.P90, row.P99, row.P999, row.Max)
	}
	fmt.Fprintln(table)
	_ = table.Flush() // a buffer in memory cannot fail
	if r.OrdersRead < r.Won && r.Partial == "" {
		say("Of %d promised orders %d were read, evenly spread, and only their buyers paid or cancelled: they stand for all.\n", r.Won, r.OrdersRead)
	}
	table = tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	for _, c := range r.Checks {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.Verdict, c.Promise, c.Name, c.Detail)
	}
	_ = table.Flush() // a buffer in memory cannot fail
	switch {
	case r.Deleted:
		say("\nProduct %d was deleted with its orders.", r.ProductID)
	case r.Fresh:
		say("\nProduct %d is kept (%s); seckill delete %d deletes it with its orders.", r.ProductID, r.Kept, r.ProductID)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// answers lists the counts, largest first.
func (r *Report) answers() string {
	var names []string
	for name := range r.Answers {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if by := r.Answers[b] - r.Answers[a]; by != 0 {
			return int(by)
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, r.Answers[name])
	}
	return strings.Join(names, ", ")
}
