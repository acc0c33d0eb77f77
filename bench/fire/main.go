// Fire sends a bounded number of purchase requests over loopback and prints
// one line: rate, latency percentiles, and CPU time per request of the server
// process (from /proc), which is steadier than the rate on a shared machine.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"seckill/test/login"
)

type shot struct {
	name        string
	url         string
	secret      string
	requests    int
	connections int
	buyers      int
	first       int
	pids        string
	redis       string
	within      time.Duration
	rate        float64
	json        bool
	tokensFrom  string
}

func main() {
	var s shot
	flag.StringVar(&s.name, "name", "run", "what to call the line")
	flag.StringVar(&s.url, "url", "http://127.0.0.1:8080/api/v1/products/1/orders", "where to send")
	s.secret = os.Getenv("SECKILL_AUTH_JWT_SECRET") // signs the buyers
	flag.IntVar(&s.requests, "n", 100_000, "requests")
	flag.IntVar(&s.connections, "c", 128, "connections")
	flag.IntVar(&s.buyers, "buyers", 0, "distinct buyers; 0 means one per request")
	flag.IntVar(&s.first, "first", 0, "number of the first buyer")
	flag.StringVar(&s.pids, "pids", "", "server processes to measure, comma separated")
	flag.StringVar(&s.redis, "redis", "", "Redis processes to measure apart, comma separated")
	flag.DurationVar(&s.within, "within", 2*time.Minute, "give up after this")
	flag.Float64Var(&s.rate, "rate", 0, "requests a second, whether or not they are answered; 0 sends each when the one before it is answered")
	flag.BoolVar(&s.json, "json", false, "print the latencies of every kind of answer, as JSON")
	flag.StringVar(&s.tokensFrom, "tokens-from", "", "URL of the product from which every buyer fetches a purchase token first, without a challenge")
	flag.Parse()
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, "fire:", err)
		os.Exit(1)
	}
}

func (s *shot) run() error {
	target, err := url.Parse(s.url)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(target.Hostname()); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is not a loopback address", target.Hostname())
	}
	if s.buyers == 0 {
		s.buyers = s.requests
	}
	asking, err := s.sign()
	if err != nil {
		return err
	}
	if s.tokensFrom != "" {
		if err := fetchTokens(s.tokensFrom, asking); err != nil {
			return err
		}
	}
	return s.measure(target, asking)
}

// buyer is one of those who ask.
type buyer struct {
	authorization string
	body          []byte
}

// sign makes the buyers' tokens before the measurement.
func (s *shot) sign() ([]buyer, error) {
	asking, expires := make([]buyer, s.buyers), time.Now().Add(time.Hour)
	for i := range asking {
		token, err := login.Token([]byte(s.secret), fmt.Sprintf("buyer-%08d", s.first+i), expires)
		if err != nil {
			return nil, err
		}
		asking[i] = buyer{"Bearer " + token, []byte(`{"quantity":1}`)}
	}
	return asking, nil
}

func (s *shot) measure(target *url.URL, asking []buyer) error {
	c, err := newCrowd(target)
	if err != nil {
		return err
	}
	defer c.close()
	before, err := s.cpu()
	if err != nil {
		return err
	}
	started := time.Now()
	until := started.Add(s.within)
	seen := newTally()
	if s.rate > 0 {
		seen, err = (&flow{shot: s, crowd: c, asking: asking, tally: seen}).run(until)
	} else {
		seen, err = s.shoot(c, asking, seen, until)
	}
	if err != nil {
		return err
	}
	if s.json {
		return seen.writeJSON(os.Stdout, s.name)
	}
	took := time.Since(started)
	after, err := s.cpu()
	if err != nil {
		return err
	}
	s.print(seen, took, cpuTime{after.server - before.server, after.redis - before.redis})
	return nil
}

// cpuTime is what the servers used.
type cpuTime struct{ server, redis time.Duration }

func (s *shot) cpu() (used cpuTime, err error) {
	if used.server, err = cpuOf(s.pids); err == nil {
		used.redis, err = cpuOf(s.redis)
	}
	return used, err
}

// shoot sends until the count or the time is used up. A connection that fails
// is replaced.
func (s *shot) shoot(c *crowd, asking []buyer, t *tally, until time.Time) (*tally, error) {
	sent, waiting := 0, 0
	next := func(conn *client, now time.Time) {
		for sent < s.requests && now.Before(until) {
			var err error
			if conn == nil {
				if conn, err = c.connect(); err != nil {
					sent, t.failed = sent+1, t.failed+1
					continue
				}
			}
			sent++
			if err = c.send(conn, &asking[(sent-1)%len(asking)], now); err == nil {
				waiting++
				return
			}
			t.failed++
			c.drop(conn)
			conn = nil
		}
	}
	for range s.connections {
		next(nil, time.Now())
	}
	events := make([]syscall.EpollEvent, s.connections)
	for waiting > 0 {
		n, err := syscall.EpollWait(c.poll, events, int(answerWithin.Milliseconds()))
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("epoll: %w", err)
		}
		if n == 0 {
			t.failed += waiting // none of them is answered
			return t, nil
		}
		for _, event := range events[:n] {
			conn, now := c.conns[event.Fd], time.Now()
			a, err := conn.receive()
			if err == nil && a.status == 0 {
				continue
			}
			waiting--
			if err != nil {
				t.failed++
				c.drop(conn)
				conn = nil
			} else {
				t.count(a, conn.begun, now)
			}
			next(conn, now)
		}
	}
	return t, nil
}

func (s *shot) print(t *tally, took time.Duration, cpu cpuTime) {
	all := t.latencies()
	done := all.TotalCount()
	perRequest := func(used time.Duration) float64 { return float64(used.Microseconds()) / float64(max(done, 1)) }
	server := fmt.Sprintf("%6.1f µs server CPU/req", perRequest(cpu.server))
	if s.redis != "" {
		server += fmt.Sprintf(" + %5.1f µs Redis = %6.1f", perRequest(cpu.redis), perRequest(cpu.server+cpu.redis))
	}
	fmt.Printf("%-28s %8.0f req/s  %s  p50 %.2f ms  p99 %.2f ms  max %.1f ms  %v failed=%d\n",
		s.name, float64(done)/took.Seconds(), server,
		float64(all.ValueAtQuantile(50))/1000, float64(all.ValueAtQuantile(99))/1000, float64(all.Max())/1000, t.counts(), t.failed)
}

// cpuOf sums user and system time of processes, threads included.
func cpuOf(pids string) (time.Duration, error) {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on Linux
	var total time.Duration
	for pid := range strings.SplitSeq(pids, ",") {
		if pid == "" {
			continue
		}
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return 0, err
		}
		// The command may hold spaces; the fields follow its closing bracket.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, field := range fields[11:13] {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, err
			}
			total += time.Duration(n) * tick
		}
	}
	return total, nil
}
