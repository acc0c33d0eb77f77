package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"seckill/test/broker"
)

// Bounds of brokers. A Java process starts slowly on a loaded machine.
const (
	jarsWithin       = 10 * time.Minute
	brokerPatience   = 3 * time.Minute
	brokerAskTimeout = 2 * time.Second
	toolWithin       = time.Minute
	toolHeap         = "-Xmx128m"
	dataName         = "data"
)

// needJava is the path of java; without it the test is skipped.
func needJava(t testing.TB) string {
	t.Helper()
	return need(t, "java")
}

// needJars is the folder with the jars of a broker. A test that cannot have them
// is skipped.
func needJars(t testing.TB, kind broker.Kind) string {
	t.Helper()
	needJava(t)
	fetched.Lock()
	defer fetched.Unlock()
	result, known := fetched.results[kind]
	if !known {
		ctx, cancel := context.WithTimeout(context.Background(), jarsWithin)
		defer cancel()
		result.dir, result.err = broker.Jars(ctx, kind)
		fetched.results[kind] = result
	}
	switch {
	case errors.Is(result.err, broker.ErrMissing):
		t.Skip(result.err)
	case result.err != nil:
		t.Fatal(result.err)
	}
	return result.dir
}

// fetched remembers what became of each fetch: a machine without a network
// should wait for it once in a process.
var fetched = struct {
	sync.Mutex
	results map[broker.Kind]fetchedJars
}{results: map[broker.Kind]fetchedJars{}}

type fetchedJars struct {
	dir string
	err error
}

// javaArgs are the arguments of a Java process that leaves files in dir alone. It
// lives for a minute or two: it ends before the second compiler pays.
func javaArgs(jars, dir string, more ...string) []string {
	return append([]string{
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto",
		"-XX:ErrorFile=" + filepath.Join(dir, "crash.log"), "-XX:HeapDumpPath=" + dir,
		"-Djava.io.tmpdir=" + dir, "-Duser.home=" + dir, "-Djava.net.preferIPv4Stack=true",
		"-cp", filepath.Join(jars, "*"),
	}, more...)
}

// brokerMachine is a broker without a test.
type brokerMachine interface{ base() *javaBroker }

// javaBroker is the process of a broker with all that it needs around it.
type javaBroker struct {
	jars string
	dir  string
	// blank is a copy of the data before the first life; "" is no data at all.
	blank string
	// before run as long as the broker exists, and are started first.
	before []*child
	main   *child
	leave  []func()
}

func (b *javaBroker) base() *javaBroker { return b }

// newJavaBroker makes a folder and reserves addresses.
func newJavaBroker(kind broker.Kind, jars string, addresses ...*string) (*javaBroker, error) {
	b := &javaBroker{jars: jars}
	for _, address := range addresses {
		home, err := newPlace(string(kind), b.dir)
		if err != nil {
			b.end()
			return nil, err
		}
		b.dir, *address = home.dir, home.address
		b.leave = append(b.leave, home.leave)
	}
	return b, nil
}

// begin starts what does not run, and resumes what was paused.
func (b *javaBroker) begin() error {
	for _, c := range append(b.before, b.main) {
		if c.signal(syscall.SIGCONT) == nil {
			continue
		}
		if err := c.start(); err != nil {
			return fmt.Errorf("%s: %w\n%s", c.name, err, c.tail())
		}
	}
	return nil
}

// end kills the processes and removes their files.
func (b *javaBroker) end() {
	for _, c := range append(b.before, b.main) {
		if c != nil {
			_ = c.end(syscall.SIGKILL) // nothing outlives this process anyway
		}
	}
	for _, leave := range b.leave {
		leave()
	}
}

// Broker is a message broker as one test sees it. Faults hit the process that
// has the messages.
type Broker struct {
	Process
	machine *javaBroker
}

// newBroker has a broker live as long as the test.
func newBroker(t testing.TB, machine *javaBroker) Broker {
	t.Helper()
	t.Cleanup(machine.end)
	for _, c := range machine.before {
		(&Process{t, c}).Start()
	}
	b := Broker{Process{t, machine.main}, machine}
	b.manage()
	b.Start()
	return b
}

// sharedBroker is a view of a broker that tests share.
func sharedBroker(t testing.TB, machine *javaBroker) Broker {
	b := Broker{Process{t, machine.main}, machine}
	b.watch()
	return b
}

// Wipe deletes all data of a broker that does not run, as a lost disk does. The
// next life has no topics, no messages and no positions of consumers.
func (b *Broker) Wipe() {
	b.t.Helper()
	if b.PID() != 0 {
		b.t.Fatalf("wipe %s: it runs", b.child.name)
	}
	data := filepath.Join(b.machine.dir, dataName)
	if err := os.RemoveAll(data); err != nil {
		b.t.Fatalf("wipe %s: %v", b.child.name, err)
	}
	if b.machine.blank == "" {
		return
	}
	if err := os.CopyFS(data, os.DirFS(b.machine.blank)); err != nil {
		b.t.Fatalf("wipe %s: %v", b.child.name, err)
	}
}

// tool runs a program from the broker's own jars and returns what it printed.
func (b *Broker) tool(class string, args ...string) string {
	b.t.Helper()
	out, err := b.machine.run(nil, class, args...)
	if err != nil {
		b.t.Fatalf("%s: %v", b.child.name, err)
	}
	return out
}

// run runs a program from the broker's own jars.
func (b *javaBroker) run(options []string, class string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), toolWithin)
	defer cancel()
	all := javaArgs(b.jars, b.dir, toolHeap)
	all = append(append(append(all, options...), class), args...)
	cmd := exec.CommandContext(ctx, "java", all...)
	cmd.Dir = b.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := fork(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", class, err, problems.Bytes(), out.Bytes())
	}
	return out.String(), nil
}
