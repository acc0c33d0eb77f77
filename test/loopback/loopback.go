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
	// The ports are below the range of ephemeral ports. Otherwise a client that
	// dials a stopped server could get the server's port as its own.
	firstPort = 15000
	portCount = 15000
	attempts  = 200
)

// Reserve finds a loopback address for the caller alone, until it is released
// or the process ends, also while no server listens. Packages are tested in
// parallel, and a client must not reach another test's server. A lock on a file
// named after the port reserves it among all test processes.
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
