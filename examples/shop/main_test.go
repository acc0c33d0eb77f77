package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// childEnv makes the test binary be the shop itself, for tests that kill it.
const childEnv = "SHOP_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const operatorToken = "operator-token-of-the-test"

func newWebhookSecret() (secret []byte, text string) {
	secret = make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return secret, secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// testShop is a shop in this process, with a sender of webhooks.
type testShop struct {
	*Shop
	t      *testing.T
	url    string
	sender sender
}

// openShop starts a shop. engine may be nil for tests that need none.
func openShop(t *testing.T, engine *Engine) *testShop {
	t.Helper()
	db, err := openDatabase(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if engine == nil {
		engine = &Engine{HTTP: http.DefaultClient, PublicURL: "http://127.0.0.1:1"}
	}
	secret, _ := newWebhookSecret()
	shop := newShop(db, engine, [][]byte{secret}, operatorToken, slog.New(slog.NewTextHandler(io.Discard, nil)))
	server := httptest.NewServer(shop.handler())
	t.Cleanup(server.Close)
	return &testShop{Shop: shop, t: t, url: server.URL, sender: sender{url: server.URL + "/webhooks/seckill", secrets: [][]byte{secret}}}
}

// sender sends webhooks as the engine does.
type sender struct {
	url     string
	secrets [][]byte
}

// message is one webhook; its zero fields get the usual values.
type message struct {
	id   string
	at   time.Time
	body []byte
}

// send returns the answer's status; an error means that no answer came.
func (s sender) send(ctx context.Context, m message) (status int, err error) {
	if m.at.IsZero() {
		m.at = time.Now()
	}
	timestamp := strconv.FormatInt(m.at.Unix(), 10)
	signatures := ""
	for _, secret := range s.secrets {
		signatures += " " + signatureVersion + base64.StdEncoding.EncodeToString(signWebhook(secret, m.id, timestamp, m.body))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(m.body))
	if err != nil {
		return 0, err
	}
	req.Header.Set(headerID, m.id)
	req.Header.Set(headerTimestamp, timestamp)
	req.Header.Set(headerSignature, signatures)
	req.Header.Set("Content-Type", "application/cloudevents+json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	res.Body.Close()
	return res.StatusCode, nil
}

// orderEvent is an event of an order, as the engine's envelope has it.
func orderEvent(name, orderNo string) []byte {
	data := map[string]any{"order_no": orderNo, "product_id": 7, "buyer": "u-ann", "quantity": 2, "amount_cents": 19800, "status": "ignored by the shop"}
	return envelope("order."+name, orderNo, time.Now(), data)
}

func envelope(kind, subject string, at time.Time, data any) []byte {
	body, err := json.Marshal(map[string]any{
		"specversion": "1.0", "id": "e-" + subject, "source": "/test", "type": eventPrefix + kind, "time": at, "subject": subject, "data": data,
	})
	if err != nil {
		panic(fmt.Sprintf("marshal event: %v", err))
	}
	return body
}

// deliver sends a message and checks the answer.
func (s *testShop) deliver(m message, want int) {
	s.t.Helper()
	status, err := s.sender.send(s.t.Context(), m)
	if err != nil {
		s.t.Fatalf("send %s: %v", m.id, err)
	}
	if status != want {
		s.t.Errorf("webhook %s is answered with %d, want %d", m.id, status, want)
	}
}

// wantStatus checks an order's row; "" wants none.
func (s *testShop) wantStatus(orderNo string, want Status) {
	s.t.Helper()
	order, err := findOrder(s.t.Context(), s.db, orderNo)
	if want == "" && err != nil {
		return
	}
	if err != nil || order.Status != want {
		s.t.Errorf("order %s is %q (%v), want %q", orderNo, order.Status, err, want)
	}
}
