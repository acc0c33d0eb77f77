// Fire sends a bounded number of purchase requests over loopback and prints
// one line: rate, latency percentiles, and CPU time per request of the server
// process (from /proc), which is steadier than the rate on a shared machine.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// tally is what one connection saw.
type tally struct {
	status    map[int]int
	failed    int
	latencies *hdrhistogram.Histogram
}

func (s *shot) measure(target *url.URL, tokens []string) error {
	before, err := s.cpu()
	if err != nil {
		return err
	}
	var next atomic.Int64
	tallies := make([]tally, s.connections)
	started := time.Now()
	var wg sync.WaitGroup
	for i := range tallies {
		wg.Go(func() { tallies[i] = s.shoot(target, tokens, &next, started.Add(s.within)) })
	}
	wg.Wait()
	took := time.Since(started)
	after, err := s.cpu()
	if err != nil {
		return err
	}
	s.print(tallies, took, cpuTime{after.server - before.server, after.redis - before.redis})
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

// shoot sends until the count or the time is used up.
func (s *shot) shoot(target *url.URL, tokens []string, next *atomic.Int64, until time.Time) tally {
	t := tally{status: make(map[int]int), latencies: hdrhistogram.New(1, 60_000_000, 3)}
	c := &client{target: target}
	defer c.close()
	for {
		i := next.Add(1) - 1
		if i >= int64(s.requests) || time.Now().After(until) {
			return t
		}
		begun := time.Now()
		status, err := c.buy(tokens[i%int64(len(tokens))])
		if err != nil {
			t.failed++
			c.close()
			continue
		}
		t.latencies.RecordValue(time.Since(begun).Microseconds())
		t.status[status]++
	}
}

func (s *shot) print(tallies []tally, took time.Duration, cpu cpuTime) {
	all := hdrhistogram.New(1, 60_000_000, 3)
	status := make(map[int]int)
	done, failed := 0, 0
	for _, t := range tallies {
		all.Merge(t.latencies)
		failed += t.failed
		for code, n := range t.status {
			status[code] += n
			done += n
		}
	}
	perRequest := func(used time.Duration) float64 { return float64(used.Microseconds()) / float64(max(done, 1)) }
	server := fmt.Sprintf("%6.1f µs server CPU/req", perRequest(cpu.server))
	if s.redis != "" {
		server += fmt.Sprintf(" + %5.1f µs Redis = %6.1f", perRequest(cpu.redis), perRequest(cpu.server+cpu.redis))
	}
	fmt.Printf("%-28s %8.0f req/s  %s  p50 %.2f ms  p99 %.2f ms  max %.1f ms  %v failed=%d\n",
		s.name, float64(done)/took.Seconds(), server,
		float64(all.ValueAtQuantile(50))/1000, float64(all.ValueAtQuantile(99))/1000, float64(all.Max())/1000, status, failed)
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
