// Package sinkwebhook delivers events by HTTP POST, signed like Standard
// Webhooks (https://www.standardwebhooks.com).
package sinkwebhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"seckill/internal/sink"
)

// Bounds of one delivery. The sender's context bounds its total time.
const (
	connectTimeout = 5 * time.Second
	maxAnswer      = 64 << 10 // bytes of an answer that are read
	maxHeaderBytes = 64 << 10
	maxIdleConns   = 64
	idleTimeout    = 90 * time.Second
	contentType    = "application/cloudevents+json; charset=utf-8"
)

// Options are the address and the secrets of a receiver.
type Options struct {
	URL string
	// Secret signs. PreviousSecret signs too, while receivers change to the new
	// secret; "" means none.
	Secret, PreviousSecret string
	// AllowPrivate allows addresses of a private network or of this machine.
	AllowPrivate bool
	// Now is the clock; nil means the system's.
	Now func() time.Time

	// roots are the certificate authorities for the receiver's certificate; nil
	// means the system's.
	roots *x509.CertPool
}

// Webhook is a receiver. It implements sink.Target.
type Webhook struct {
	url       string
	signer    signer
	client    *http.Client
	transport *http.Transport
	now       func() time.Time
}

// New checks the options; it does not connect.
func New(opt Options) (*Webhook, error) {
	if err := sink.CheckURL(opt.URL, opt.AllowPrivate); err != nil {
		return nil, err
	}
	signer, err := newSigner(opt.Secret, opt.PreviousSecret)
	if err != nil {
		return nil, err
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	dialer := &net.Dialer{Timeout: connectTimeout}
	if !opt.AllowPrivate {
		dialer.Control = refusePrivate
	}
	transport := &http.Transport{
		Proxy:                  nil, // a proxy would connect to addresses that the dialer refuses
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: opt.roots},
		TLSHandshakeTimeout:    connectTimeout,
		MaxIdleConnsPerHost:    maxIdleConns,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
	return &Webhook{
		url: opt.URL, signer: signer, now: opt.Now, transport: transport,
		client: &http.Client{
			Transport: transport,
			// A redirect could send the event to another party, or into our
			// network.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Deliver posts a message. Any 2xx answer is a success.
func (w *Webhook) Deliver(ctx context.Context, m *sink.Message) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(m.Body))
	if err != nil {
		return "", errors.New("make request: the address is not one")
	}
	timestamp := strconv.FormatInt(w.now().Unix(), 10)
	req.Header = http.Header{
		"Content-Type":      {contentType},
		"User-Agent":        {"seckill"},
		"Webhook-Id":        {m.ID},
		"Webhook-Timestamp": {timestamp},
		"Webhook-Signature": {w.signer.sign(m.ID, timestamp, m.Body)},
	}
	res, err := w.client.Do(req)
	if err != nil {
		return "", fmt.Errorf("post: %w", withoutURL(err))
	}
	defer res.Body.Close()
	// Reading the answer allows to reuse the connection. Its content does not
	// matter, and errors are ignored. After 101 nothing is read, because no
	// deadline would end the read.
	if res.StatusCode != http.StatusSwitchingProtocols {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	}
	return strconv.Itoa(res.StatusCode), w.checkStatus(res)
}

// checkStatus maps a status to an error of the port.
func (w *Webhook) checkStatus(res *http.Response) error {
	status := res.StatusCode
	err := fmt.Errorf("receiver answered %d %s", status, http.StatusText(status))
	switch {
	case status >= 200 && status < 300:
		return nil
	case status >= 300 && status < 400:
		return &sink.Answered{Err: fmt.Errorf("%w: redirects are not followed", err)}
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		if after := retryAfter(res.Header.Get("Retry-After"), w.now()); after > 0 {
			return &sink.Later{After: after, Err: err}
		}
		return err
	case awayStatus[status]:
		return err
	case status >= 400 && status < 500 && !endpointStatus[status]:
		return &sink.Rejected{Err: err}
	}
	return &sink.Answered{Err: err}
}

// awayStatus lists answers of a gateway whose receiver is away, and of an
// overloaded receiver. They count as no answer.
var awayStatus = map[int]bool{
	http.StatusRequestTimeout: true, http.StatusTooEarly: true, http.StatusBadGateway: true, http.StatusGatewayTimeout: true,
}

// endpointStatus lists 4xx answers that concern the whole endpoint, not one
// message.
var endpointStatus = map[int]bool{
	http.StatusUnauthorized: true, http.StatusForbidden: true, http.StatusNotFound: true, http.StatusMethodNotAllowed: true,
	http.StatusProxyAuthRequired: true, http.StatusGone: true, http.StatusMisdirectedRequest: true,
}

// retryAfter parses seconds or a date.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(now)
	}
	return 0
}

// withoutURL returns the error without the address.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// Close closes idle connections.
func (w *Webhook) Close(context.Context) error {
	w.transport.CloseIdleConnections()
	return nil
}
