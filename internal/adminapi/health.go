package adminapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"seckill"
)

// Check is a part that must work before proxies may route to this instance.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
	// Spared means that the instance can be used without this part: its state is
	// reported, but does not change the result.
	Spared bool
}

const (
	// Both timeouts are below the usual timeout of a probe, a second. A check that
	// exceeds checkTimeout has until answerTimeout to return its error.
	checkTimeout  = 700 * time.Millisecond
	answerTimeout = 900 * time.Millisecond
)

// readyPath is the path of the readiness probe.
const readyPath = "/readyz"

// health is the answer of /healthz and /readyz.
type health struct {
	Status string        `json:"status"` // ok or failing
	Roles  []string      `json:"roles,omitempty"`
	Checks []checkResult `json:"checks,omitempty"`
}

type checkResult struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Spared bool   `json:"spared,omitempty"` // it does not change the status
	Error  string `json:"error,omitempty"`
	TookMS int64  `json:"took_ms"`
}

// serveHealth reports only that the process answers. If it failed with the store, a
// probe would restart instances without a benefit.
func serveHealth(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, r, answer{body: health{Status: "ok"}})
}

// serveReady runs all checks concurrently. A check that does not return in time has
// failed.
func (a *handler) serveReady(w http.ResponseWriter, r *http.Request) {
	answering, end := context.WithTimeout(r.Context(), answerTimeout)
	defer end()
	ctx, cancel := context.WithTimeout(answering, checkTimeout)
	defer cancel()
	results := make([]chan checkResult, len(a.Checks))
	for i := range a.Checks {
		results[i] = make(chan checkResult, 1)
		go func() { results[i] <- a.Checks[i].result(ctx) }()
	}
	status, report := http.StatusOK, health{Status: "ok", Roles: a.Roles}
	for i, check := range a.Checks {
		result := checkResult{Name: check.Name, Error: "no answer in time", TookMS: answerTimeout.Milliseconds()}
		select {
		case result = <-results[i]:
		case <-answering.Done():
		}
		result.Spared = check.Spared
		if !result.OK && !check.Spared {
			status, report.Status = http.StatusServiceUnavailable, "failing"
		}
		report.Checks = append(report.Checks, result)
	}
	writeJSON(w, r, answer{status: status, body: report})
}

func (c *Check) result(ctx context.Context) checkResult {
	began := time.Now()
	err := c.Run(ctx)
	result := checkResult{Name: c.Name, OK: err == nil, TookMS: time.Since(began).Milliseconds()}
	if err != nil {
		result.Error = err.Error()
	}
	return result
}

func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "application/yaml")
	header.Set("Content-Length", strconv.Itoa(len(seckill.OpenAPI)))
	header.Set("Cache-Control", "no-cache")
	_, _ = w.Write(seckill.OpenAPI)
}
