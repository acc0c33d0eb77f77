package ledgermem

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/fault"
	"seckill/internal/ledger"
)

const killedEnv = "LEDGERMEM_KILLED_JOURNAL"

// killedBatches is more than any point needs. Compaction starts by itself, on a busy machine
// after many batches.
const killedBatches = 10_000

// TestKilledChild is the child process of TestKilledAtEachPoint. It prints the order number of
// every answer.
func TestKilledChild(t *testing.T) {
	path := os.Getenv(killedEnv)
	if path == "" {
		return // runs as a child only
	}
	l := start(t, path, Options{CompactRows: 5})
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	install(t, l, shard, 1_000_000, 1_000_000)
	for n := range killedBatches {
		batch := claims(10+n*10, 3)
		reserve(t, l, shard, uint64(n+1), batch)
		for _, c := range batch {
			fmt.Println("answered", c.OrderNo, c.Buyer)
		}
	}
}

// Every answered order is there after a kill, at each point (I4).
func TestKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{
		"ledger.before_commit:12", "ledger.after_commit:12", "ledger.before_commit:60", "ledger.after_commit:61",
		"ledger.compact.between:1", "ledger.compact.between:3",
	} {
		t.Run(spec, func(t *testing.T) {
			path := newPath(t)
			answered := runKilled(t, path, spec)
			l := start(t, path, Options{})
			shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
			f, err := l.Read(t.Context(), shard)
			if err != nil || f.Orders < int64(len(answered)) || f.Orders > int64(len(answered))+3 {
				t.Fatalf("%d orders after %d answers, %v", f.Orders, len(answered), err)
			}
			for no, buyer := range answered {
				held, err := l.Held(t.Context(), shard, buyer)
				if err != nil || len(held) != 1 || held[0].OrderNo != no || held[0].Entry.ProductID != 1 {
					t.Fatalf("%s of %s is held as %+v, %v", no, buyer, held, err)
				}
			}
			stats, err := l.Queue().Stats(t.Context(), 1)
			if err != nil || stats.Reservations != f.Orders {
				t.Fatalf("queue %+v, orders %d, %v", stats, f.Orders, err)
			}
		})
	}
}

func runKilled(t *testing.T, path, spec string) map[seckill.OrderNo]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledChild$", "-test.v")
	cmd.Env = append(os.Environ(), killedEnv+"="+path, fault.EnvVar+"="+spec)
	out, err := cmd.Output()
	if err == nil {
		t.Fatal("the child was not killed")
	}
	answered := map[seckill.OrderNo]string{}
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	for lines.Scan() {
		var number, buyer string
		if n, _ := fmt.Sscanf(lines.Text(), "answered %s %s", &number, &buyer); n != 2 {
			continue
		}
		no, err := seckill.ParseOrderNo(number)
		if err != nil {
			t.Fatal(err)
		}
		answered[no] = buyer
	}
	if len(answered) == 0 {
		t.Fatalf("no call was answered before %s: %s", spec, out)
	}
	return answered
}
