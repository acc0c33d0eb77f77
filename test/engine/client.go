package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"seckill"
	"seckill/internal/api"
)

const requestTimeout = 15 * time.Second

func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout: requestTimeout,
		// Enough idle connections that a crowd reuses its own.
		Transport: &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute},
	}
}

// Refusal is an answer other than 2xx.
type Refusal struct {
	Status int
	api.Document
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("%d %s: %s", r.Status, r.Code, r.Detail)
}

// CodeOf is the code of a refusal; "" for success and for no answer at all.
func CodeOf(err error) seckill.Code {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

// Answered reports whether the engine answered, with success or a refusal.
// After no answer the outcome is unknown.
func Answered(err error) bool {
	var refusal *Refusal
	return err == nil || errors.As(err, &refusal)
}

// request is one HTTP request.
type request struct {
	method, url string
	header      http.Header
	body        any // nil, []byte as it is, or what becomes JSON
}

// do sends the request once and reads a 2xx answer into result, if not nil; into
// an *int its status alone.
func (e *Engine) do(ctx context.Context, r request, result any) error {
	var content io.Reader
	switch body := r.body.(type) {
	case nil:
	case []byte:
		content = bytes.NewReader(body)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, content)
	if err != nil {
		return err
	}
	// Without it the client would send a request again whose connection broke.
	req.GetBody = nil
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := e.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		refusal := &Refusal{Status: res.StatusCode}
		if err := json.Unmarshal(text, &refusal.Document); err != nil {
			return fmt.Errorf("%s %s: status %d without a problem document: %s", r.method, r.url, res.StatusCode, text)
		}
		return refusal
	}
	if result == nil {
		return nil
	}
	if status, ok := result.(*int); ok {
		*status = res.StatusCode
		return nil
	}
	if err := json.Unmarshal(text, result); err != nil {
		return fmt.Errorf("%s %s: %w", r.method, r.url, err)
	}
	return nil
}
