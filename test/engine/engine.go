// Package engine runs the real binary for tests. It starts `seckill serve` as a
// child process with its own data directory and ports, waits until it is ready,
// stops or kills it, and starts it again on the same data and ports. It has
// typed clients for the shop API (buyer.go) and the operator API (operator.go);
// setting.go has settings for shared servers.
package engine

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seckill/internal/fault"
)

// Bounds for the child process. They are generous, so that a test does not fail
// on a busy machine.
const (
	ReadyWithin = 90 * time.Second // creating the tables syncs the disk many times
	StopWithin  = 30 * time.Second // above the engine's own deadline of 20 s
	pollEvery   = 5 * time.Millisecond
	logTail     = 16 << 10 // of the child's log in a failed test's output
)

// The secrets that every engine of a test is started with.
const (
	JWTSecret     = "test-jwt-secret-0123456789abcdef0123456789"
	SandboxSecret = "test-sandbox-secret-0123456789abcdef012345"
	TokenSecret   = "test-token-secret-0123456789abcdef01234567"
	AdminToken    = "test-admin-token-0123456789abcdef012345678"
)

// Options change the defaults of a test's engine.
type Options struct {
	// Settings are configuration keys and values, such as
	// "order.expire_after": "2s".
	Settings map[string]string
	// Roles are the roles of the process; none means all.
	Roles []string
	// Tags are build tags of another binary than the usual one; "" means none.
	Tags string
	// DataDir is where the data is; "" makes a directory that the test removes.
	DataDir string
	// Shell, if set, is a shell command that runs before the binary in the same
	// process, such as "ulimit -f 100".
	Shell string
}

// Engine is one instance of the engine over several lives of its process.
type Engine struct {
	DataDir  string
	ShopURL  string
	AdminURL string

	t    testing.TB
	opt  Options
	http *http.Client
	log  logBuffer

	mu   sync.Mutex
	life *life // nil while no process runs
}

// life is one process.
type life struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone and err is set
	err   error
}

// New prepares an engine without starting it. At the end of the test it kills a
// running process, and shows the log if the test failed.
func New(t testing.TB, opt Options) *Engine {
	t.Helper()
	if opt.DataDir == "" {
		opt.DataDir = t.TempDir()
	}
	// The map is the engine's own: Set and Unset change it.
	opt.Settings = maps.Clone(opt.Settings)
	if opt.Settings == nil {
		opt.Settings = make(map[string]string)
	}
	e := &Engine{DataDir: opt.DataDir, t: t, opt: opt, http: newHTTPClient()}
	e.ShopURL, e.AdminURL = "http://"+freeAddress(t), "http://"+freeAddress(t)
	t.Cleanup(func() {
		e.Kill()
		e.http.CloseIdleConnections()
		if t.Failed() {
			t.Logf("the engine's log ends with:\n%s", e.log.tail())
		}
	})
	return e
}

// Start prepares an engine and starts it.
func Start(t testing.TB, opt Options) *Engine {
	t.Helper()
	e := New(t, opt)
	e.Start()
	return e
}

// Start starts the process and waits until it is ready.
func (e *Engine) Start() {
	e.t.Helper()
	if err := e.TryStart(); err != nil {
		e.t.Fatalf("start the engine: %v", err)
	}
}

// StartArmed starts the process with a failpoint at which it dies; see package
// fault. The process may die before it is ready.
func (e *Engine) StartArmed(point string) {
	e.t.Helper()
	if err := e.launch(fault.EnvVar + "=" + point); err != nil {
		e.t.Fatalf("start the engine: %v", err)
	}
}

// TryStart starts the process and waits until it is ready, or has ended.
func (e *Engine) TryStart() error {
	if err := e.launch(); err != nil {
		return err
	}
	return e.WaitReady()
}

func (e *Engine) launch(env ...string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.life != nil {
		return errors.New("it runs already")
	}
	args := []string{tagged(e.t, e.opt.Tags), "serve"}
	if len(e.opt.Roles) > 0 {
		args = append(args, "--roles="+strings.Join(e.opt.Roles, ","))
	}
	if e.opt.Shell != "" {
		args = append([]string{"/bin/sh", "-c", e.opt.Shell + ` && exec "$0" "$@"`}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(e.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &e.log, &e.log
	// The child must end if the test process is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	one := &life{cmd: cmd, ended: make(chan struct{})}
	e.life = one
	go func() {
		one.err = cmd.Wait()
		close(one.ended)
	}()
	return nil
}

// Environ is the child's environment: that of the test without SECKILL
// settings, plus the settings of this engine.
func (e *Engine) Environ() []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "SECKILL_") {
			env = append(env, pair)
		}
	}
	settings := map[string]string{
		"data_dir": e.DataDir, "log.level": "info",
		"shop.listen": strings.TrimPrefix(e.ShopURL, "http://"), "admin.listen": strings.TrimPrefix(e.AdminURL, "http://"),
		"auth.jwt_secret": JWTSecret, "payment.sandbox_secret": SandboxSecret, "token.secret": TokenSecret, "admin.token": AdminToken,
		"reconcile.every": "0", "shop.drain": "0",
	}
	for key, value := range e.opt.Settings {
		settings[key] = value
	}
	for key, value := range settings {
		env = append(env, "SECKILL_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))+"="+value)
	}
	return env
}

// Set changes a setting for the next start.
func (e *Engine) Set(key, value string) { e.opt.Settings[key] = value }

// Unset takes a setting back for the next start.
func (e *Engine) Unset(key string) { delete(e.opt.Settings, key) }

func (e *Engine) current() *life {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.life
}

func (e *Engine) forget(one *life) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.life == one {
		e.life = nil
	}
}

// Running reports whether the process lives.
func (e *Engine) Running() bool {
	one := e.current()
	if one == nil {
		return false
	}
	select {
	case <-one.ended:
		return false
	default:
		return true
	}
}

// Kill kills the process as kill -9 does, and returns when it is gone.
func (e *Engine) Kill() {
	one := e.current()
	if one == nil {
		return
	}
	one.cmd.Process.Kill() // fails only for a process that is gone
	<-one.ended
	e.forget(one)
}

// Signal sends a signal and does not wait.
func (e *Engine) Signal(signal os.Signal) {
	e.t.Helper()
	one := e.current()
	if one == nil {
		e.t.Fatal("no process runs")
	}
	if err := one.cmd.Process.Signal(signal); err != nil {
		e.t.Fatalf("signal the engine: %v", err)
	}
}

// Stop sends SIGTERM, as an operator does, and waits for the end. It returns
// nil for exit code 0.
func (e *Engine) Stop() error {
	e.t.Helper()
	e.Signal(syscall.SIGTERM)
	return e.WaitEnd(StopWithin)
}

// MustStop is Stop for a test that wants exit code 0.
func (e *Engine) MustStop() {
	e.t.Helper()
	if err := e.Stop(); err != nil {
		e.t.Fatalf("stop the engine: %v", err)
	}
}

// WaitEnd waits until the process ends by itself. It returns nil for exit code
// 0.
func (e *Engine) WaitEnd(within time.Duration) error {
	e.t.Helper()
	one := e.current()
	if one == nil {
		return errors.New("no process runs")
	}
	select {
	case <-one.ended:
		e.forget(one)
		return one.err
	case <-time.After(within):
		e.t.Fatalf("the engine did not end within %s", within)
		return nil
	}
}

// Log is the log of all processes of this engine.
func (e *Engine) Log() string { return e.log.text() }

// logBuffer collects the output of the child.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *logBuffer) tail() string {
	text := b.text()
	if len(text) > logTail {
		text = "…" + text[len(text)-logTail:]
	}
	return text
}
