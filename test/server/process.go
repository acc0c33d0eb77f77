package server

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Bounds of start and stop. They are generous, so that a test does not fail on
// a busy machine.
const (
	readyWithin = 60 * time.Second
	stopWithin  = 30 * time.Second
	pollEvery   = 5 * time.Millisecond
	logTail     = 8 << 10 // of a server's log in a failed test's output
	logName     = "server.log"
)

// Process is a test's view of a server process that can be restarted. Its
// methods fail the test on an error, so call them from the test's goroutine.
type Process struct {
	t     testing.TB
	child *child
}

// child is the process that the views of all tests share.
type child struct {
	name  string // for messages
	dir   string
	path  string
	args  []string
	env   []string     // added to the environment of this process
	ready func() error // sends a real request
	// patience replaces readyWithin for a server that starts slowly.
	patience time.Duration

	mu    sync.Mutex
	cmd   *exec.Cmd // nil while no process runs
	ended chan struct{}
}

// Start starts the server on the same port and the same data, and waits until
// it answers.
func (p *Process) Start() {
	p.t.Helper()
	if err := p.child.start(); err != nil {
		p.t.Fatalf("start %s: %v\n%s", p.child.name, err, p.child.tail())
	}
}

// Kill ends the server with SIGKILL, paused or not, and waits until it has
// ended. It does nothing if the server does not run.
func (p *Process) Kill() {
	p.t.Helper()
	if err := p.child.end(syscall.SIGKILL); err != nil {
		p.t.Fatalf("kill %s: %v", p.child.name, err)
	}
}

// Stop ends the server with SIGTERM, as an operator does, and waits until it
// has ended.
func (p *Process) Stop() {
	p.t.Helper()
	if err := p.child.end(syscall.SIGTERM); err != nil {
		p.t.Fatalf("stop %s: %v\n%s", p.child.name, err, p.child.tail())
	}
}

// Pause freezes the server with SIGSTOP, and returns when its last thread has
// stopped. The kernel still accepts connections and bytes, but the server does
// not answer.
func (p *Process) Pause() {
	p.t.Helper()
	if err := p.child.signal(syscall.SIGSTOP); err != nil {
		p.t.Fatalf("pause %s: %v", p.child.name, err)
	}
	poll(p.t, p.child.name+" to freeze", func() error { return frozen(p.PID()) })
}

// frozen returns nil if every thread of a process is stopped.
func frozen(pid int) error {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // it ended
		}
		// The state follows the name, and the name may contain any character except
		// a line end.
		if _, after, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte{' '}); len(after) > 0 && after[0] != 'T' {
			return fmt.Errorf("a thread is in state %c", after[0])
		}
	}
	return nil
}

// Resume continues a paused server. It then processes the requests that were
// sent meanwhile.
func (p *Process) Resume() {
	p.t.Helper()
	if err := p.child.signal(syscall.SIGCONT); err != nil {
		p.t.Fatalf("resume %s: %v", p.child.name, err)
	}
}

// Dir is where the server's data is.
func (p *Process) Dir() string { return p.child.dir }

// PID is the process id; 0 if no process runs.
func (p *Process) PID() int {
	p.child.mu.Lock()
	defer p.child.mu.Unlock()
	if p.child.cmd == nil {
		return 0
	}
	return p.child.cmd.Process.Pid
}

// Log is the server's log since its first start.
func (p *Process) Log() string {
	text, _ := os.ReadFile(filepath.Join(p.child.dir, logName))
	return string(text)
}

// manage kills the server at the end of the test and shows its log if the test
// failed.
func (p *Process) manage() {
	p.t.Cleanup(func() {
		p.Kill()
		if p.t.Failed() {
			p.t.Logf("log of %s:\n%s", p.child.name, p.child.tail())
		}
	})
}

// watch shows the log of a shared server if it ended during the test.
func (p *Process) watch() {
	p.t.Cleanup(func() {
		if p.t.Failed() && p.PID() == 0 {
			p.t.Logf("%s, which tests share, is down; its log:\n%s", p.child.name, p.child.tail())
		}
	})
}

func (c *child) start() error {
	c.mu.Lock()
	if c.cmd != nil {
		c.mu.Unlock()
		return errors.New("it runs already")
	}
	log, err := os.OpenFile(filepath.Join(c.dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.mu.Unlock()
		return err
	}
	defer log.Close()
	cmd := exec.Command(c.path, c.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, log, log
	if len(c.env) > 0 {
		cmd.Env = append(os.Environ(), c.env...)
	}
	// A group of its own keeps the terminal's Ctrl-C from it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := fork(cmd); err != nil {
		c.mu.Unlock()
		return err
	}
	ended := make(chan struct{})
	c.cmd, c.ended = cmd, ended
	c.mu.Unlock()
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		c.mu.Lock()
		if c.cmd == cmd {
			c.cmd = nil
		}
		c.mu.Unlock()
		close(ended)
	}()
	return c.waitReady(ended)
}

// waitReady polls until the server answers.
func (c *child) waitReady(ended <-chan struct{}) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	patience := max(c.patience, readyWithin)
	late := time.After(patience)
	for {
		err := c.ready()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it ended by itself")
		case <-late:
			return fmt.Errorf("not ready within %s: %w", patience, err)
		case <-tick.C:
		}
	}
}

func (c *child) signal(sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return errors.New("it does not run")
	}
	return c.cmd.Process.Signal(sig)
}

func (c *child) end(sig syscall.Signal) error {
	c.mu.Lock()
	cmd, ended := c.cmd, c.ended
	c.mu.Unlock()
	if cmd == nil {
		return nil
	}
	if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-ended:
		return nil
	case <-time.After(stopWithin):
		return fmt.Errorf("not gone within %s", stopWithin)
	}
}

func (c *child) tail() string {
	text, err := os.ReadFile(filepath.Join(c.dir, logName))
	if err != nil {
		return err.Error()
	}
	if len(text) > logTail {
		return "…" + string(text[len(text)-logTail:])
	}
	return string(text)
}

// fork starts cmd from the one thread that starts all children. The kernel
// sends Pdeathsig when the thread that forked ends, not the process, so that
// thread must be one that never ends.
func fork(cmd *exec.Cmd) error {
	result := make(chan error)
	forks() <- func() { result <- cmd.Start() }
	return <-result
}

var forks = sync.OnceValue(func() chan<- func() {
	requests := make(chan func())
	go func() {
		runtime.LockOSThread()
		for request := range requests {
			request()
		}
	}()
	return requests
})
