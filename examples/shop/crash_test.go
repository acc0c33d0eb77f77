package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"seckill/test/loopback"
)

const (
	crashKills   = 6
	crashOrders  = 200
	crashSenders = 8
	crashLife    = 150 * time.Millisecond // at most, between ready and the kill
	crashWithin  = 2 * time.Minute
	crashPoll    = 5 * time.Millisecond
)

// child is a shop in a process of its own.
type child struct {
	t       *testing.T
	address string
	path    string // of its database
	env     []string
	cmd     *exec.Cmd
}

func (c *child) start() {
	c.t.Helper()
	c.cmd = exec.Command(os.Args[0], "-listen", c.address, "-db", c.path)
	c.cmd.Env = append(os.Environ(), c.env...)
	c.cmd.Stderr = c.t.Output()
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		c.t.Fatalf("start the shop: %v", err)
	}
	deadline := time.After(crashWithin)
	for tick := time.Tick(crashPoll); ; <-tick {
		res, err := http.Get("http://" + c.address + "/healthz")
		if err == nil {
			res.Body.Close()
			return
		}
		select {
		case <-deadline:
			c.t.Fatalf("the shop is not ready: %v", err)
		default:
		}
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // fails only if it is gone
	_ = c.cmd.Wait()         // reports the kill
}

// TestCrash_NoEventIsHalfApplied kills the shop with kill -9 while webhooks
// arrive. After each kill the database holds an event's change if and only if
// it holds its id, and holds every event that was answered with 204.
func TestCrash_NoEventIsHalfApplied(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	address, release, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	secret, text := newWebhookSecret()
	shop := &child{t: t, address: address, path: filepath.Join(t.TempDir(), "shop.db"), env: []string{
		childEnv + "=1", "SHOP_ENGINE_TOKEN=x", "SHOP_JWT_SECRET=x", "SHOP_SANDBOX_SECRET=x", "SHOP_OPERATOR_TOKEN=x", "SHOP_WEBHOOK_SECRETS=" + text,
	}}
	shop.start()
	defer func() { shop.kill() }()

	ctx, cancel := context.WithTimeout(t.Context(), crashWithin)
	defer cancel()
	history := &history{answered: map[string]bool{}}
	var senders sync.WaitGroup
	for i := range crashSenders {
		senders.Go(func() { history.sendAll(ctx, sender{"http://" + address + "/webhooks/seckill", [][]byte{secret}}, i) })
	}
	for range crashKills {
		select {
		case <-time.After(time.Duration(rng.Int64N(int64(crashLife)))):
		case <-ctx.Done():
		}
		shop.kill()
		history.check(t, shop.path)
		shop.start()
	}
	senders.Wait()
	shop.kill()
	history.check(t, shop.path)
	if got := history.count(); got != 2*crashOrders {
		t.Errorf("%d events were answered with 204, want %d", got, 2*crashOrders)
	}
}

// history remembers which webhooks were answered with 204.
type history struct {
	mu       sync.Mutex
	answered map[string]bool
}

func (h *history) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.answered)
}

// sendAll sends the events of its share of the orders: confirmed until it is
// answered with 204, then paid.
func (h *history) sendAll(ctx context.Context, s sender, share int) {
	for i := share; i < crashOrders; i += crashSenders {
		no := fmt.Sprintf("SK%04d", i)
		for _, event := range []string{"confirmed", "paid"} {
			m := message{id: no + "." + event, body: orderEvent(event, no)}
			for tick := time.Tick(crashPoll); ctx.Err() == nil; <-tick {
				if status, err := s.send(ctx, m); err == nil && status == http.StatusNoContent {
					h.mu.Lock()
					h.answered[m.id] = true
					h.mu.Unlock()
					break
				}
			}
		}
	}
}

// check compares each order with the webhook ids, in the file that a killed
// shop left behind.
func (h *history) check(t *testing.T, path string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	db, err := openDatabase(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i := range crashOrders {
		no := fmt.Sprintf("SK%04d", i)
		var status string
		var confirmed, paid bool
		err := db.QueryRow(`SELECT COALESCE((SELECT status FROM shop_order WHERE order_no = ?1), ''),
			EXISTS (SELECT 1 FROM webhook WHERE id = ?1 || '.confirmed'), EXISTS (SELECT 1 FROM webhook WHERE id = ?1 || '.paid')`, no).
			Scan(&status, &confirmed, &paid)
		if err != nil && err != sql.ErrNoRows {
			t.Fatal(err)
		}
		want := ""
		if confirmed {
			want = string(Pending)
		}
		if paid {
			want = string(Paid)
		}
		if status != want {
			t.Errorf("order %s is %q, but its webhooks say %q", no, status, want)
		}
		if h.answered[no+".confirmed"] && !confirmed || h.answered[no+".paid"] && !paid {
			t.Errorf("order %s: an event was answered with 204 and is lost", no)
		}
	}
}
