// Package verifier asks a shop's own server whether an answer to a challenge
// was right.
//
// The server gets a POST with a JSON object (challenge_id, answer, buyer,
// product_id, addr) and in X-Signature the hex HMAC-SHA256 of that body under
// the secret it shares with the engine. It answers 200 with {"ok":true} or
// {"ok":false}; anything else means that it has not said. It may be asked about
// the same answer again, when an answer of its own got lost, and should then say
// the same.
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
	// Deadline is how long the server may take; a shopper waits that long.
	Deadline = 2 * time.Second
	// SignatureHeader carries the body's signature.
	SignatureHeader = "X-Signature"
	// maxReplyBytes has room for {"ok":true} and what a shop may add.
	maxReplyBytes = 4 << 10
	// maxConns and maxIdleConns bound connections to the server.
	maxConns     = 64
	maxIdleConns = 16
)

// Client asks one server. It is safe for concurrent use.
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
		// A redirect would carry the signed answer to whoever it names.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Verify says what the server said. An error means that it has not.
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
		err = sent.Err // without the address, which may hold a key
	}
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return false, fmt.Errorf("status %d", res.StatusCode) // the body of 101 has no end and no deadline
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

// Signature is what SignatureHeader says of a body.
func Signature(secret, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body) // a hash never returns an error
	return hex.EncodeToString(mac.Sum(nil))
}
