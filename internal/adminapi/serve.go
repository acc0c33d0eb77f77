package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/api"
	"seckill/internal/store"
)

// operation reads a request and returns an action. The action runs only after the
// complete input was checked, so a bad request changes nothing.
type operation func(in *input) action

// action executes a request within its context's deadline.
type action func(ctx context.Context) (answer, error)

// answer is a successful answer. The default status is 200.
type answer struct {
	status   int
	location string
	body     any
}

// record answers with one converted record, or with err.
func record[D, W any](did string, d D, err error, of func(*D) W) (answer, error) {
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", did, err)
	}
	return answer{body: of(&d)}, nil
}

// list answers with converted records as the member name.
func list[D, W any](name string, records []D, err error, of func(*D) W) (answer, error) {
	if err != nil {
		return answer{}, fmt.Errorf("list %s: %w", name, err)
	}
	return answer{body: map[string][]W{name: api.List(records, of)}}, nil
}

// served returns the handler of a route.
func (a *handler) served(route route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), route.timeout)
		defer cancel()
		in := readInput(w, r)
		act := route.operation(in)
		if err := in.done(); err != nil {
			refuse(w, r, err)
			return
		}
		result, err := act(ctx)
		if err != nil {
			refuse(w, r, outage(err))
			return
		}
		writeJSON(w, r, result)
	})
}

// outage adds to an outage which part is away: operators need to know it, shoppers
// only get busy. Other errors without a code are only logged.
func outage(err error) error {
	_, coded := errors.AsType[*seckill.Error](err)
	if !coded && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)) {
		return seckill.Errorf(seckill.CodeBusy, "%w", err)
	}
	return err
}

func writeJSON(w http.ResponseWriter, r *http.Request, result answer) {
	body, err := json.Marshal(result.body)
	if err != nil {
		refuse(w, r, fmt.Errorf("encode the answer: %w", err))
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if result.location != "" {
		header.Set("Location", result.location)
	}
	if result.status == 0 {
		result.status = http.StatusOK
	}
	w.WriteHeader(result.status)
	_, _ = w.Write(body) // the client may have left; the change stays
}

func refuse(w http.ResponseWriter, r *http.Request, err error) {
	if rec, ok := w.(*recorder); ok {
		rec.err = err
	}
	api.WriteProblemToOperator(w, err, language(r))
}

// recorder records the status and size of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	err    error
	// operator is true if the request had the token. suspect is the reason to log a
	// warning about a request without it, or "".
	operator bool
	suspect  string
	// readWithin bounds the time in which the client reads the answer.
	readWithin time.Duration
}

func (rec *recorder) WriteHeader(status int) {
	rec.begin(status)
	rec.ResponseWriter.WriteHeader(status)
}

// begin records the status of an answer before it is written, and starts its write
// deadline.
func (rec *recorder) begin(status int) {
	if rec.status != 0 {
		return
	}
	rec.status = status
	// An error means a writer without deadlines, as in tests, which cannot block.
	_ = http.NewResponseController(rec.ResponseWriter).SetWriteDeadline(time.Now().Add(rec.readWithin))
}

func (rec *recorder) Write(p []byte) (int, error) {
	rec.begin(http.StatusOK)
	n, err := rec.ResponseWriter.Write(p)
	rec.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

// observed logs and counts every answer, and turns a panic into an answer.
//
// It closes the connection after an HTTP/1.0 request. net/http ignores its
// Transfer-Encoding, and would read a chunked body as the next request.
func (a *handler) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec, began := &recorder{ResponseWriter: w, readWithin: a.AnswerTimeout}, time.Now()
		w.Header().Set(seckill.RequestIDHeader, string(seckill.AppendRequestID(nil, []byte(r.Header.Get(seckill.RequestIDHeader)))))
		if !r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
		}
		defer func() {
			if v := recover(); v != nil {
				a.panicked(rec, r, v)
			}
			a.answered(rec, r, time.Since(began))
		}()
		next.ServeHTTP(rec, r)
	})
}

// panicked answers 500 with code busy, because the result is unknown. If the answer
// has begun, it cuts the connection instead, so that the client does not take half an
// answer for a complete one.
func (a *handler) panicked(rec *recorder, r *http.Request, v any) {
	if v == http.ErrAbortHandler {
		panic(v)
	}
	if a.Meter != nil {
		a.Meter.Panic()
	}
	a.strangers.Say(slog.LevelError, "panic", "operator API panicked", "request_id", requestID(rec), "method", alert.Clip(r.Method),
		"path", alert.Clip(r.URL.Path), "panic", alert.Clip(fmt.Sprint(v)), "stack", string(debug.Stack()))
	if rec.status != 0 {
		panic(http.ErrAbortHandler)
	}
	api.WriteProblemStatus(rec, http.StatusInternalServerError, &seckill.Error{Code: seckill.CodeBusy}, language(r))
}

// requestID returns the id that observed gave to the answer.
func requestID(w http.ResponseWriter) string { return w.Header().Get(seckill.RequestIDHeader) }

// answered writes the access log, without headers, which have the token, and without
// the query, which has buyers. Strangers choose the rest of an unauthenticated
// request, so such lines are clipped and throttled to one a second of each kind.
func (a *handler) answered(rec *recorder, r *http.Request, took time.Duration) {
	rec.begin(http.StatusOK) // for an empty answer, whose head net/http writes
	if a.Meter != nil {
		route := r.Pattern
		if route == "" {
			route = "none"
		}
		a.Meter.Request(route, rec.status, took)
	}
	level := slog.LevelInfo
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		level = slog.LevelDebug // probes and dashboards would hide the changes
	}
	attrs := []any{
		"method", alert.Clip(r.Method), "path", alert.Clip(r.URL.Path), "status", rec.status, "bytes", rec.bytes,
		"took", took, "request_id", requestID(rec), "remote", alert.Clip(r.RemoteAddr),
	}
	if rec.err != nil {
		attrs = append(attrs, "error", rec.err.Error())
	}
	// A probe that gets "not ready" every few seconds is not logged: the parts that
	// are away have their own lines.
	if rec.status >= http.StatusInternalServerError && r.URL.Path != readyPath {
		level = slog.LevelError
	}
	switch {
	case rec.operator:
		a.Log.Log(r.Context(), level, "operator request", attrs...)
	case rec.suspect != "":
		if a.Meter != nil {
			a.Meter.Suspect(rec.suspect)
		}
		a.strangers.Say(slog.LevelWarn, rec.suspect, "operator request refused: "+strings.ReplaceAll(rec.suspect, "_", " "), append(attrs, "host", alert.Clip(r.Host))...)
	default:
		a.strangers.Say(level, level.String(), "operator request", attrs...)
	}
}
