// Package webhook is a receiver of the engine's webhooks for tests. It checks
// every signature, records the deliveries in order, and refuses on demand.
package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const keyBytes = 32

// Event is one accepted delivery.
type Event struct {
	ID      string    `json:"id"`
	Type    string    `json:"type"`
	Subject string    `json:"subject"`
	Time    time.Time `json:"time"`
	Data    Order     `json:"data"`
}

// Order has the fields of the data that tests read.
type Order struct {
	OrderNo     string `json:"order_no"`
	Buyer       string `json:"buyer"`
	Status      string `json:"status"`
	AmountCents int64  `json:"amount_cents"`
}

// Receiver is an HTTP server on loopback.
type Receiver struct {
	Secret string // in the form of the configuration

	t       testing.TB
	address string
	key     []byte

	mu     sync.Mutex
	server *http.Server
	refuse func(e *Event) int
	events []Event
	seen   map[string]bool
}

// New starts a receiver. It is stopped at the end of the test.
func New(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{t: t, key: make([]byte, keyBytes), seen: map[string]bool{}}
	rand.Read(r.key) // never fails
	r.Secret = "whsec_" + base64.StdEncoding.EncodeToString(r.key)
	r.Start()
	t.Cleanup(r.Stop)
	return r
}

// Start listens, again at the same address.
func (r *Receiver) Start() {
	r.t.Helper()
	address := r.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		r.t.Fatalf("start the receiver: %v", err)
	}
	server := &http.Server{Handler: r}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.address, r.server = listener.Addr().String(), server
	go server.Serve(listener)
}

// Stop closes the server and all its connections, as a kill does.
func (r *Receiver) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server.Close()
}

// URL is where the receiver is.
func (r *Receiver) URL() string { return "http://" + r.address + "/webhooks/seckill" }

// Config writes a configuration file with this receiver as the sink "shop", and
// returns its path. More are further members of the sink.
func (r *Receiver) Config(more ...string) string {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "seckill.yaml")
	members := append([]string{"name: shop", "kind: webhook", "url: " + r.URL(), "secret: " + r.Secret, "allow_private: true"}, more...)
	text := "sinks:\n  - " + strings.Join(members, "\n    ") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// Refuse makes the receiver answer with the returned status; 0 accepts the
// event. A nil function accepts all.
func (r *Receiver) Refuse(refuse func(e *Event) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

// ServeHTTP takes one delivery.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed
	}
	var e Event
	if err := r.check(req.Header, body); err != nil {
		r.t.Errorf("webhook: %v", err)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if err := json.Unmarshal(body, &e); err != nil || e.ID != req.Header.Get("webhook-id") {
		r.t.Errorf("webhook is no event, or of another id: %v: %s", err, body)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		if status := r.refuse(&e); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	r.events = append(r.events, e)
	r.seen[e.ID] = true
	w.WriteHeader(http.StatusNoContent)
}

func (r *Receiver) check(h http.Header, body []byte) error {
	mac := hmac.New(sha256.New, r.key)
	fmt.Fprintf(mac, "%s.%s.%s", h.Get("webhook-id"), h.Get("webhook-timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if !slices.Contains(strings.Fields(h.Get("webhook-signature")), want) {
		return fmt.Errorf("signature %q does not fit", h.Get("webhook-signature"))
	}
	return nil
}

// Events are all accepted deliveries, in order.
func (r *Receiver) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Distinct counts the accepted events; a repeated one counts once.
func (r *Receiver) Distinct() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

// Repeated counts the deliveries of events that were accepted before.
func (r *Receiver) Repeated() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events) - len(r.seen)
}

// Orders are the orders by number, as in a shop that applies each event once.
func (r *Receiver) Orders() map[string]Order {
	orders, applied := map[string]Order{}, map[string]bool{}
	for _, e := range r.Events() {
		if !applied[e.ID] && strings.HasPrefix(e.Type, "seckill.order.") {
			orders[e.Subject] = e.Data
		}
		applied[e.ID] = true
	}
	return orders
}
