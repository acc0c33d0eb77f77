// Package broker gets the jars of the message brokers that tests run. A pom.xml
// per broker names exact versions; Maven copies the jars into the user's cache
// folder once.
package broker

import (
	"context"
	"embed"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Kind is a broker, named as its folder here.
type Kind string

// The brokers.
const (
	Kafka    Kind = "kafka"
	RocketMQ Kind = "rocketmq"
	Pulsar   Kind = "pulsar"
)

// Kinds are all brokers.
var Kinds = []Kind{Kafka, RocketMQ, Pulsar}

// ErrMissing means that this machine cannot get the jars: it has no Maven, or
// Maven does not reach a repository.
var ErrMissing = errors.New("MISSING")

// lockPoll is how often a lock of another process is tried again.
const lockPoll = 50 * time.Millisecond

//go:embed */pom.xml
var poms embed.FS

// Dir is the folder that holds the cached jars of all brokers.
func Dir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder: %w", err)
	}
	dir := filepath.Join(cache, "seckill", "broker")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder of brokers: %w", err)
	}
	return dir, nil
}

// Jars returns the folder with all jars of a broker, and fetches them if they
// are not cached. The folder appears complete or not at all. Processes that need
// the same jars at once fetch them once.
func Jars(ctx context.Context, kind Kind) (string, error) {
	pom, err := poms.ReadFile(path.Join(string(kind), "pom.xml"))
	if err != nil {
		return "", fmt.Errorf("read the pom of %s: %w", kind, err)
	}
	var project struct {
		Version string `xml:"version"`
	}
	if err := xml.Unmarshal(pom, &project); err != nil {
		return "", fmt.Errorf("read the pom of %s: %w", kind, err)
	}
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	name := string(kind) + "-" + project.Version
	jars := filepath.Join(dir, name)
	if exists(jars) {
		return jars, nil
	}
	unlock, err := Lock(ctx, filepath.Join(dir, name+".lock"))
	if err != nil {
		return "", fmt.Errorf("fetch the jars of %s: %w", name, err)
	}
	defer unlock()
	if exists(jars) {
		return jars, nil
	}
	if err := fetch(ctx, name, pom, jars); err != nil {
		return "", err
	}
	return jars, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// fetch copies the jars into a temporary folder beside their place, and renames
// it when all are there.
func fetch(ctx context.Context, name string, pom []byte, jars string) error {
	maven, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("%w: mvn", ErrMissing)
	}
	work, err := os.MkdirTemp(filepath.Dir(jars), name+".tmp-")
	if err != nil {
		return fmt.Errorf("fetch the jars of %s: %w", name, err)
	}
	defer os.RemoveAll(work)
	file, got := filepath.Join(work, "pom.xml"), filepath.Join(work, "jar")
	if err := os.WriteFile(file, pom, 0o600); err != nil {
		return fmt.Errorf("fetch the jars of %s: %w", name, err)
	}
	cmd := exec.CommandContext(ctx, maven, "--batch-mode", "--quiet", "--file", file,
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+got)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: jars of %s (mvn: %w: %s)", ErrMissing, name, err, firstLine(out))
	}
	if err := os.Rename(got, jars); err != nil {
		return fmt.Errorf("fetch the jars of %s: %w", name, err)
	}
	return nil
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

// Lock takes a lock on a file, which it creates, and waits for it no longer than
// ctx lives. The lock is held until unlock is called or the process ends.
func Lock(ctx context.Context, name string) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		// flock without LOCK_NB would not end with ctx.
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("lock %s, which another process holds: %w", name, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
