// Package front tests the real binary under a crowd. Under overload it sells as
// much as it can and refuses the rest at once. After sold-out it refuses from
// memory, without Redis and MySQL.
package front

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"seckill/test/engine"
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	defer func() {
		if built.dir != "" {
			os.RemoveAll(built.dir)
		}
	}()
	return engine.Main(m)
}

// built is the load generator bench/fire, compiled at its first use. It is a
// process with one thread, so that the server gets the rest of the machine.
var built struct {
	sync.Once
	dir string
	err error
}

func generator(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "seckill-fire-"); built.err != nil {
			return
		}
		if out, err := exec.Command("go", "build", "-o", built.dir, "seckill/bench/fire").CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build the generator: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "fire")
}

// flow is an open-loop load: requests do not wait for earlier answers.
type flow struct {
	product   uint32
	perSecond float64
	lasts     time.Duration
	first     int // number of its first buyer
	buyers    int // distinct; 0 is one per request
}

func (f flow) requests() int { return int(f.perSecond * f.lasts.Seconds()) }

// kind is one kind of answer, as bench/fire prints it.
type kind struct {
	Count     int     `json:"count"`
	PerSecond float64 `json:"per_second"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Max       float64 `json:"max_ms"`
}

// seen counts the answers of a crowd, by "accepted" or the code of a refusal.
type seen struct {
	Answers map[string]kind `json:"answers"`
	Failed  int             `json:"failed"`
}

// connections bounds a crowd: the requests that wait for the ledger, and some
// more.
const connections = 500

// fire sends a crowd and returns after the last answer.
func fire(t *testing.T, e *engine.Engine, f flow) (s seen) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), generator(t), "-json",
		"-url", fmt.Sprintf("%s/api/v1/products/%d/orders", e.ShopURL, f.product),
		"-rate", fmt.Sprint(f.perSecond), "-n", fmt.Sprint(f.requests()), "-c", fmt.Sprint(connections),
		"-first", fmt.Sprint(f.first), "-buyers", fmt.Sprint(f.buyers))
	cmd.Env = append(os.Environ(), "SECKILL_AUTH_JWT_SECRET="+engine.JWTSecret)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("fire: %v", err)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("read %q: %v", out, err)
	}
	return s
}

// metric is one metric of an engine; 0 if it is missing.
func metric(t *testing.T, e *engine.Engine, name string) float64 {
	t.Helper()
	value, err := e.Metric(t.Context(), name)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return value
}
