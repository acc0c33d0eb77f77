// Package alert reports problems to operators: in the log, in the metrics and,
// if configured, by a webhook. ThrottledLog bounds log lines that strangers can
// cause.
package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"seckill/internal/background"
)

const (
	maxQueued = 100
	// quiet is the time in which the same alert is not sent again.
	quiet       = time.Minute
	sendTimeout = 5 * time.Second
	sendTries   = 3
	retryPause  = 2 * time.Second
	maxKnown    = 1000
)

// Alert is a condition that an operator has to handle.
type Alert struct {
	At        time.Time `json:"at"`
	Kind      Kind      `json:"kind"`
	ProductID uint32    `json:"product_id,omitempty"`
	Detail    string    `json:"detail"`
}

// Alerter sends alerts, at most one a minute per kind and product, or per kind
// and sink. Raising an alert never blocks.
type Alerter struct {
	url    string
	client *http.Client
	log    *slog.Logger
	count  func(kind Kind)
	queue  chan Alert

	mu     sync.Mutex
	last   map[string]time.Time
	isTest func(product uint32) bool
}

// New makes an alerter. With an empty url it only logs. count is called with
// the kind of every alert.
func New(url string, log *slog.Logger, count func(kind Kind)) *Alerter {
	return &Alerter{
		url: url, log: log, count: count,
		client: &http.Client{
			Timeout: sendTimeout,
			// A redirect could lead an alert into our network, or out of it. It
			// counts as a failure.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		queue: make(chan Alert, maxQueued), last: make(map[string]time.Time),
	}
}

// IsTest makes alerts of test products appear in the log only, so that a
// rehearsal wakes no operator.
func (a *Alerter) IsTest(of func(product uint32) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.isTest = of
}

func (a *Alerter) ofTest(product uint32) bool {
	a.mu.Lock()
	is := a.isTest
	a.mu.Unlock()
	return product != 0 && is != nil && is(product)
}

// Raise raises an alert. product is 0 if it concerns no single product.
func (a *Alerter) Raise(kind Kind, product uint32, err error) {
	a.raise(kind, fmt.Sprint(kind.Label, product), product, err)
}

// RaiseSink raises an alert of one sink, which the error names.
func (a *Alerter) RaiseSink(kind Kind, sink string, err error) {
	a.raise(kind, fmt.Sprint(kind.Label, " of sink ", sink), 0, err)
}

// raise raises an alert, unless one with the same key was raised a short time
// ago.
func (a *Alerter) raise(kind Kind, key string, product uint32, err error) {
	test := a.ofTest(product)
	if !test {
		a.count(kind)
	}
	now := time.Now()
	if a.repeated(key, now) {
		return
	}
	about := []any{"error", err}
	if product != 0 {
		about = append([]any{"product", product}, about...)
	}
	if test {
		a.log.Warn("alert of a test product, logged only: "+kind.Text, about...)
		return
	}
	a.log.Error("alert: "+kind.Text, about...)
	if a.url == "" {
		return
	}
	detail := ""
	if err != nil {
		detail = err.Error()
	}
	select {
	case a.queue <- Alert{At: now.UTC(), Kind: kind, ProductID: product, Detail: detail}:
	default:
		a.log.Warn("alert not sent: too many wait", "kind", kind)
	}
}

func (a *Alerter) repeated(key string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, ok := a.last[key]; ok && now.Sub(at) < quiet {
		return true
	}
	if len(a.last) >= maxKnown {
		clear(a.last)
	}
	a.last[key] = now
	return false
}

// Run sends until ctx ends.
func (a *Alerter) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case alert := <-a.queue:
			if err := a.deliver(ctx, alert); err != nil {
				a.log.Warn("alert not delivered", "kind", alert.Kind, "error", err)
			}
		}
	}
}

func (a *Alerter) deliver(ctx context.Context, alert Alert) (err error) {
	body, err := json.Marshal(alert)
	if err != nil {
		return err
	}
	for try := range sendTries {
		if try > 0 {
			if err := background.Pause(ctx, retryPause); err != nil {
				return err
			}
		}
		if err = a.post(ctx, body); err == nil {
			return nil
		}
	}
	return err
}

func (a *Alerter) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err // without the address, which is often a secret
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		return fmt.Errorf("webhook answered %s", resp.Status) // the body of a 101 answer has no end and no deadline
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10))
	return nil
}
