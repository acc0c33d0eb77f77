// Package verifier is the client of a shop's own server that checks answers to
// challenges.
//
// The server gets a POST with a JSON object (challenge_id, answer, buyer,
// product_id, addr). X-Signature is the hex HMAC-SHA256 of the body under the
// shared secret. The server answers 200 with {"ok":true} or {"ok":false};
// everything else counts as no verdict. If its answer got lost, the engine may send
// the same request again, and the server should give the same verdict.
package verifier

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"seckill/internal/challenge"
)

const (
	// Deadline is the timeout of a call. A shopper waits that long.
	Deadline = 2 * time.Second
	// SignatureHeader carries the body's signature.
	SignatureHeader = "X-Signature"
	// maxReplyBytes has room for {"ok":true} and further members.
	maxReplyBytes = 4 << 10
	// maxConns and maxIdleConns bound connections to the server.
	maxConns     = 64
	maxIdleConns = 16
)

// Client calls one server. It is safe for concurrent use.
type Client struct {
	address string
	secret  []byte
	http    *http.Client
}

// New makes a client.
func New(address string, secret []byte) *Client {
	return &Client{address: address, secret: secret, http: &http.Client{
		Timeout: Deadline,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			MaxConnsPerHost: maxConns, MaxIdleConnsPerHost: maxIdleConns, IdleConnTimeout: time.Minute,
		},
		// A redirect would send the signed answer to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Verify returns the verdict of the server. An error means that it gave none.
func (c *Client) Verify(ctx context.Context, q challenge.Question) (bool, error) {
	question := struct {
		ChallengeID string `json:"challenge_id"`
		Answer      string `json:"answer"`
		Buyer       string `json:"buyer"`
		ProductID   uint32 `json:"product_id"`
		Addr        string `json:"addr"`
	}{q.ChallengeID, q.Answer, q.Buyer, q.ProductID, ""}
	if q.Addr.IsValid() {
		question.Addr = q.Addr.Unmap().String()
	}
	body, err := json.Marshal(question)
	if err != nil {
		return false, fmt.Errorf("ask the verifier: %w", err)
	}
	ok, err := c.post(ctx, body)
	if err != nil {
		return false, fmt.Errorf("ask the verifier: %w", err)
	}
	return ok, nil
}

func (c *Client) post(ctx context.Context, body []byte) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(SignatureHeader, Signature(c.secret, body))
	res, err := c.http.Do(req)
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err // without the URL, which may hold a key
	}
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return false, fmt.Errorf("status %d", res.StatusCode) // the body of a 101 has no end and no deadline
	}
	reply, err := io.ReadAll(io.LimitReader(res.Body, maxReplyBytes+1))
	if err != nil {
		return false, err
	}
	if len(reply) > maxReplyBytes {
		return false, fmt.Errorf("a reply of more than %d bytes", maxReplyBytes)
	}
	var said struct {
		OK *bool `json:"ok"`
	}
	if err := json.Unmarshal(reply, &said); err != nil {
		return false, fmt.Errorf("read the reply: %w", err)
	}
	if said.OK == nil {
		return false, errors.New(`a reply without "ok"`)
	}
	return *said.OK, nil
}

// Signature returns the value of SignatureHeader for a body.
func Signature(secret, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body) // a hash never returns an error
	return hex.EncodeToString(mac.Sum(nil))
}
