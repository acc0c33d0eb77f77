// Package loopback reserves addresses for the servers and engines of tests.
package loopback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	// The ports are below the range from which connections take theirs: a
	// client that dials a server which is down must not be given the server's
	// own port.
	firstPort = 15000
	portCount = 15000
	attempts  = 200
)

// Reserve finds a loopback address that is the caller's alone until it is
// released or the process ends, also while nothing listens there: packages are
// tested side by side, and a client that reached another test's server would
// believe what it says. A lock on a file named after the port reserves it among
// all test processes.
func Reserve() (address string, release func(), err error) {
	dir := filepath.Join(os.TempDir(), "seckill-test-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", nil, fmt.Errorf("reserve a port: %w", err)
	}
	for range attempts {
		port := strconv.Itoa(firstPort + rand.IntN(portCount))
		lock, err := os.OpenFile(filepath.Join(dir, port), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return "", nil, fmt.Errorf("reserve a port: %w", err)
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			lock.Close()
			continue
		}
		address := net.JoinHostPort("127.0.0.1", port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			lock.Close()
			continue
		}
		l.Close()
		held.add(lock)
		return address, func() { held.remove(lock) }, nil
	}
	return "", nil, errors.New("reserve a port: none is free")
}
