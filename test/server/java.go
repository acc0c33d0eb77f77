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

// needJava returns the path of java. Without java it skips the test.
func needJava(t testing.TB) string {
	t.Helper()
	return need(t, "java")
}

// needJars returns the folder with the jars of a broker. It skips the test if
// the jars cannot be fetched.
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

// fetched keeps the result of each fetch, so that a machine without a network
// waits only once per process.
var fetched = struct {
	sync.Mutex
	results map[broker.Kind]fetchedJars
}{results: map[broker.Kind]fetchedJars{}}

type fetchedJars struct {
	dir string
	err error
}

// javaArgs are the arguments of a Java process that leaves files only in dir.
// It runs for a minute or two, too short for the second compiler to help.
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

// javaBroker is the process of a broker and the processes that it needs.
type javaBroker struct {
	jars string
	dir  string
	// blank is a copy of the data before the first start; "" means no data.
	blank string
	// before are started first and run as long as the broker exists.
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

// begin starts the processes that do not run, and resumes paused ones.
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
			_ = c.end(syscall.SIGKILL) // the processes end with this one anyway
		}
	}
	for _, leave := range b.leave {
		leave()
	}
}

// Broker is a test's view of a message broker. Faults affect the process that
// stores the messages.
type Broker struct {
	Process
	machine *javaBroker
}

// newBroker starts a broker for the time of the test.
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

// Wipe deletes all data of a stopped broker, like a lost disk. After the next
// start it has no topics, no messages and no consumer offsets.
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
