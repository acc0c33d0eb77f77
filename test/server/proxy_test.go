package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// silence is how long a test listens for a byte that must not come.
const silence = 100 * time.Millisecond

// caller is a client of Redis on one connection.
type caller struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, address string) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &caller{t, conn, bufio.NewReader(conn)}
}

func (c *caller) send(command string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, command+"\r\n"); err != nil {
		c.t.Fatal(err)
	}
}

// reply reads one reply, or returns why there is none.
func (c *caller) reply(within time.Duration) (string, error) {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		c.t.Fatal(err)
	}
	return readReply(c.in)
}

func (c *caller) wantReply(want string) {
	c.t.Helper()
	if got, err := c.reply(readyWithin); err != nil || got != want {
		c.t.Fatalf("reply %q (%v), not %q", got, err, want)
	}
}

func (c *caller) wantSilence() {
	c.t.Helper()
	got, err := c.reply(silence)
	var late net.Error
	if !errors.As(err, &late) || !late.Timeout() {
		c.t.Fatalf("reply %q (%v), not silence", got, err)
	}
}

func TestProxy_FrozenNetworkDeliversAfterHeal(t *testing.T) {
	r := Redis(t, RedisOptions{})
	p := Proxy(t, r.Addr())
	old := dial(t, p.Addr())
	old.send("PING")
	old.wantReply("PONG")
	p.Freeze()
	young := dial(t, p.Addr())
	old.send("INCR n")
	young.send("INCR n")
	old.wantSilence()
	young.wantSilence()
	if n := r.Must("EXISTS", "n"); n != "0" {
		t.Error("a request passed the frozen network")
	}
	p.Heal()
	for _, one := range []*caller{old, young} {
		if _, err := one.reply(readyWithin); err != nil {
			t.Errorf("after the freeze: %v", err)
		}
	}
	if n := r.Must("GET", "n"); n != "2" {
		t.Errorf("%s of 2 requests arrived", n)
	}
}

func TestProxy_FrozenRepliesBelongToServedRequests(t *testing.T) {
	r := Redis(t, RedisOptions{})
	p := Proxy(t, r.Addr())
	served := func(n string) {
		t.Helper()
		eventually(t, "request "+n+" is served", func() bool { return r.Must("GET", "n") == n })
	}
	c := dial(t, p.Addr())
	p.FreezeReplies()
	c.send("INCR n")
	served("1")
	c.wantSilence()
	p.Heal()
	c.wantReply("1")

	p.FreezeReplies()
	c.send("INCR n")
	served("2")
	p.Cut()
	if got, err := c.reply(readyWithin); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reply %q (%v), not a reset", got, err)
	}
	if conn, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		if err == nil {
			conn.Close()
		}
		t.Errorf("a cut network accepts: %v", err)
	}
	p.Heal()
	c = dial(t, p.Addr())
	c.send("GET n")
	c.wantReply("2")
}

func TestProxy_CutNetworkHealsAtOnceWithManyHeldReplies(t *testing.T) {
	r := Redis(t, RedisOptions{})
	p := Proxy(t, r.Addr())
	for range 10 { // the place where the replies wait when the network is cut varies
		r.Must("SET", "n", "0")
		c := dial(t, p.Addr())
		p.FreezeReplies()
		for _, n := range []string{"1", "2"} {
			c.send("INCR n")
			eventually(t, "request "+n+" is served", func() bool { return r.Must("GET", "n") == n })
		}
		p.Cut()
		began := time.Now()
		p.Heal()
		if took := time.Since(began); took > 2*time.Second {
			t.Fatalf("it healed after %v", took)
		}
		c = dial(t, p.Addr())
		c.send("GET n")
		c.wantReply("2")
	}
}

func TestProxy_HeldRepliesStayHeldDuringFullFreeze(t *testing.T) {
	r := Redis(t, RedisOptions{})
	p := Proxy(t, r.Addr())
	c := dial(t, p.Addr())
	p.FreezeReplies()
	c.send("INCR n")
	eventually(t, "the request is served", func() bool { return r.Must("GET", "n") == "1" })
	p.Freeze()
	c.wantSilence()
	p.Heal()
	c.wantReply("1")
}

func TestProxy_HalfOpenConnectionLosesData(t *testing.T) {
	r := Redis(t, RedisOptions{})
	p := Proxy(t, r.Addr())
	c := dial(t, p.Addr())
	p.HalfOpen()
	c.send("SET k v")
	c.wantSilence()
	p.Heal()
	if got, err := c.reply(readyWithin); err == nil {
		t.Errorf("a half-open connection answered %q when healed", got)
	}
	c = dial(t, p.Addr())
	c.send("EXISTS k")
	c.wantReply("0")
}

func TestProxy_SlowNetworkDelays(t *testing.T) {
	const d = 150 * time.Millisecond
	r := Redis(t, RedisOptions{})
	for name, slow := range map[string]func(*NetProxy, time.Duration){
		"requests": (*NetProxy).Latency,
		"replies":  (*NetProxy).ReplyDelay,
	} {
		t.Run(name, func(t *testing.T) {
			p := Proxy(t, r.Addr())
			c := dial(t, p.Addr())
			slow(p, time.Hour) // replaced by the next
			slow(p, d)
			start := time.Now()
			c.send("PING")
			c.wantReply("PONG")
			if took := time.Since(start); took < d {
				t.Errorf("a reply after %s", took)
			}
		})
	}
}

// Faults come and go while many connections are busy.
func TestProxy_HealsUnderLoad(t *testing.T) {
	r := Redis(t, RedisOptions{})
	p := Proxy(t, r.Addr())
	done := make(chan struct{})
	ended := make(chan struct{})
	const crowd = 8
	for range crowd {
		go func() {
			defer func() { ended <- struct{}{} }()
			for {
				select {
				case <-done:
					return
				default:
					_, _ = redisCommand(nil, p.Addr(), "PING") // errors are expected
				}
			}
		}()
	}
	for range 5 {
		for _, fault := range []func(){
			p.Freeze, p.FreezeReplies, p.Cut, p.HalfOpen,
			func() { p.Latency(time.Millisecond) }, func() { p.ReplyDelay(time.Millisecond) },
			func() { p.FreezeReplies(); p.Cut() },
		} {
			fault()
			p.Heal()
			if got, err := redisCommand(nil, p.Addr(), "PING"); err != nil || got != "PONG" {
				t.Fatalf("healed: %q (%v)", got, err)
			}
		}
	}
	close(done)
	for range crowd {
		<-ended
	}
}
