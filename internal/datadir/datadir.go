// Package datadir protects a folder of one process: a lock excludes other
// processes, and Sync makes the names of new files durable.
package datadir

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"seckill/internal/background"
)

const (
	// patience is how long Lock waits. A process that has just ended, or a child
	// that is being started with our file descriptors, may hold the lock a moment longer.
	patience = time.Second
	poll     = 10 * time.Millisecond
)

// ErrHeld: another process has the lock.
var ErrHeld = errors.New("held by another process")

// Lock locks a file for one process. The lock is held until the file is closed.
func Lock(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		if background.Pause(ctx, poll) != nil {
			f.Close()
			return nil, ErrHeld
		}
	}
	return f, nil
}

// Sync makes the names of new files in a folder durable.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
