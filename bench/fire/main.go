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

	"github.com/HdrHistogram/hdrhistogram-go"

	"seckill/internal/identity"
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
}

func main() {
	var s shot
	flag.StringVar(&s.name, "name", "run", "what to call the line")
	flag.StringVar(&s.url, "url", "http://127.0.0.1:8080/api/v1/products/1/orders", "where to send")
	flag.StringVar(&s.secret, "secret", "", "secret that signs the buyers")
	flag.IntVar(&s.requests, "n", 100_000, "requests")
	flag.IntVar(&s.connections, "c", 128, "connections")
	flag.IntVar(&s.buyers, "buyers", 0, "distinct buyers; 0 means one per request")
	flag.IntVar(&s.first, "first", 0, "number of the first buyer")
	flag.StringVar(&s.pids, "pids", "", "server processes to measure, comma separated")
	flag.StringVar(&s.redis, "redis", "", "Redis processes to measure apart, comma separated")
	flag.DurationVar(&s.within, "within", 2*time.Minute, "give up after this")
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
	tokens := make([]string, s.buyers)
	for i := range tokens {
		if tokens[i], err = identity.Sign([]byte(s.secret), fmt.Sprintf("buyer-%08d", s.first+i), time.Now().Add(time.Hour)); err != nil {
			return err
		}
	}
	return s.measure(target, tokens)
}

// tally is what the crowd saw.
type tally struct {
	status    map[int]int
	failed    int
	latencies *hdrhistogram.Histogram
}

func (s *shot) measure(target *url.URL, tokens []string) error {
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
	seen, err := s.shoot(c, tokens, started.Add(s.within))
	if err != nil {
		return err
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
func (s *shot) shoot(c *crowd, tokens []string, until time.Time) (*tally, error) {
	t := &tally{status: make(map[int]int), latencies: hdrhistogram.New(1, 60_000_000, 3)}
	sent, waiting := 0, 0
	next := func(conn *client) {
		for sent < s.requests && time.Now().Before(until) {
			var err error
			if conn == nil {
				if conn, err = c.connect(); err != nil {
					sent, t.failed = sent+1, t.failed+1
					continue
				}
			}
			sent++
			if err = c.send(conn, tokens[(sent-1)%len(tokens)]); err == nil {
				waiting++
				return
			}
			t.failed++
			c.drop(conn)
			conn = nil
		}
	}
	for range s.connections {
		next(nil)
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
			conn := c.conns[event.Fd]
			status, err := conn.receive()
			if err == nil && status == 0 {
				continue
			}
			waiting--
			if err != nil {
				t.failed++
				c.drop(conn)
				conn = nil
			} else {
				t.latencies.RecordValue(time.Since(conn.begun).Microseconds())
				t.status[status]++
			}
			next(conn)
		}
	}
	return t, nil
}

func (s *shot) print(t *tally, took time.Duration, cpu cpuTime) {
	done, all := 0, t.latencies
	for _, n := range t.status {
		done += n
	}
	perRequest := func(used time.Duration) float64 { return float64(used.Microseconds()) / float64(max(done, 1)) }
	server := fmt.Sprintf("%6.1f µs server CPU/req", perRequest(cpu.server))
	if s.redis != "" {
		server += fmt.Sprintf(" + %5.1f µs Redis = %6.1f", perRequest(cpu.redis), perRequest(cpu.server+cpu.redis))
	}
	fmt.Printf("%-28s %8.0f req/s  %s  p50 %.2f ms  p99 %.2f ms  max %.1f ms  %v failed=%d\n",
		s.name, float64(done)/took.Seconds(), server,
		float64(all.ValueAtQuantile(50))/1000, float64(all.ValueAtQuantile(99))/1000, float64(all.Max())/1000, t.status, t.failed)
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
