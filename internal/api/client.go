// This file has the client of the operator API, for commands that act on a running
// sale.

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// ClientTimeout is the default timeout of a call.
	ClientTimeout = 30 * time.Second
	// maxAnswer bounds the size of an answer. A report with its findings has some
	// kilobytes.
	maxAnswer = 4 << 20
)

// ClientOptions configure a client of the operator API.
type ClientOptions struct {
	URL     string        // such as http://127.0.0.1:8081
	Token   string        // admin.token
	Timeout time.Duration // of one call; 0 is ClientTimeout
	// Operator and Reason are written to the audit log. If they are empty, the server
	// writes "operator" and no reason.
	Operator, Reason string
}

// Client calls the operator API. Every call ends within the timeout and is sent
// once. It is never retried: that is the operator's decision.
type Client struct {
	base *url.URL
	opt  ClientOptions
	http *http.Client
}

// NewClient checks the options; it does not connect.
func NewClient(opt ClientOptions) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(opt.URL, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.User != nil || base.RawQuery != "" {
		// The error does not quote the text: it may contain a password.
		return nil, errors.New("operator API address: must be http://HOST:PORT or https://HOST:PORT, without a user or a query")
	}
	if opt.Token == "" {
		return nil, errors.New("the operator API needs a token: set admin.token, or name the server's data_dir")
	}
	if opt.Timeout <= 0 {
		opt.Timeout = ClientTimeout
	}
	return &Client{
		base: base,
		opt:  opt,
		http: &http.Client{
			Timeout: opt.Timeout,
			// Redirects are not followed: they would send the token to another server.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Product reads a product.
func (c *Client) Product(ctx context.Context, id uint32) (AdminProduct, error) {
	return c.product(ctx, http.MethodGet, id, "", nil)
}

// Preheat gives the product's stock to the ledger. It is idempotent while the epoch
// is live.
func (c *Client) Preheat(ctx context.Context, id uint32) (AdminProduct, error) {
	return c.product(ctx, http.MethodPost, id, "preheat", why{c.opt.Reason})
}

// Recover rebuilds the product's ledger from the store under a new epoch.
func (c *Client) Recover(ctx context.Context, id uint32) (AdminProduct, error) {
	return c.product(ctx, http.MethodPost, id, "recover", why{c.opt.Reason})
}

// TakeOver makes the store sell the product instead of the ledger.
func (c *Client) TakeOver(ctx context.Context, id uint32) (AdminProduct, error) {
	return c.product(ctx, http.MethodPost, id, "takeover", why{c.opt.Reason})
}

// End ends the product's sale for good.
func (c *Client) End(ctx context.Context, id uint32) (AdminProduct, error) {
	return c.product(ctx, http.MethodPost, id, "end", why{c.opt.Reason})
}

// Delete deletes a test product that has ended, with its orders, and returns the
// number of deleted orders. If it is refused with busy, there may be more to delete.
func (c *Client) Delete(ctx context.Context, id uint32) (orders int, err error) {
	query := url.Values{}
	if c.opt.Reason != "" {
		query.Set("reason", c.opt.Reason)
	}
	var deleted struct {
		Orders int `json:"orders"`
	}
	err = c.into(ctx, &deleted, http.MethodDelete, nil, query, "products", strconv.FormatUint(uint64(id), 10))
	return deleted.Orders, err
}

// why is the common part of every change.
type why struct {
	Reason string `json:"reason,omitempty"`
}

func (c *Client) product(ctx context.Context, method string, id uint32, verb string, request any) (product AdminProduct, err error) {
	err = c.into(ctx, &product, method, request, nil, "products", strconv.FormatUint(uint64(id), 10), verb)
	return product, err
}

// into sends a request and decodes the answer.
func (c *Client) into(ctx context.Context, answer any, method string, request any, query url.Values, path ...string) error {
	body, err := c.send(ctx, method, request, query, path...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("read the operator API's answer: %w", err)
	}
	return nil
}

// send sends one request and returns the body of a 2xx answer. For any other answer
// it returns a *Refusal.
func (c *Client) send(ctx context.Context, method string, request any, query url.Values, path ...string) ([]byte, error) {
	at := c.base.JoinPath(append([]string{"admin", "v1"}, path...)...)
	at.RawQuery = query.Encode()
	target := at.String()
	var content io.Reader
	if request != nil {
		encoded, err := json.Marshal(request)
		if err != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(target, "/"), content)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.opt.Token)
	req.Header.Set("Accept", "application/json")
	if c.opt.Operator != "" {
		req.Header.Set("X-Operator", c.opt.Operator)
	}
	if request != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreached(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, c.unreached(err)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("the operator API's answer is larger than %d bytes", maxAnswer)
	case res.StatusCode/100 != 2:
		return nil, refusal(res, body)
	}
	return body, nil
}

// unreached returns an error that tells the operator what to do. The text of
// url.Error would repeat method and address.
func (c *Client) unreached(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		if wrapped.Timeout() {
			return fmt.Errorf("no answer from the operator API at %s within %s, the outcome is unknown: %w", c.base, c.http.Timeout, wrapped.Err)
		}
		err = wrapped.Err
	}
	return fmt.Errorf("reach the operator API at %s: %w", c.base, err)
}

// Refusal is an answer that is not 2xx.
type Refusal struct {
	Status   int
	Document Document // empty if the answer has no problem document
}

func (r *Refusal) Error() string {
	doc := r.Document
	if doc.Code == "" {
		return fmt.Sprintf("HTTP status %d without a problem document: is this the operator API?", r.Status)
	}
	text := fmt.Sprintf("%s: %s", doc.Code, doc.Title)
	if doc.Detail != "" {
		text += " (" + doc.Detail + ")"
	}
	return text
}

func refusal(res *http.Response, body []byte) *Refusal {
	r := &Refusal{Status: res.StatusCode}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind != ProblemType || json.Unmarshal(body, &r.Document) != nil {
		r.Document = Document{}
	}
	return r
}
