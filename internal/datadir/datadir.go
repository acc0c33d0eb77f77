// Package datadir keeps a folder of one process: the lock that keeps others off,
// and names of files that outlive a power cut.
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
	// patience is how long a lock is waited for. A process that has just ended, or
	// a child that is being started and still shares our descriptors, may hold it
	// for an instant longer.
	patience = time.Second
	poll     = 10 * time.Millisecond
)

// ErrHeld says that another process has the lock.
var ErrHeld = errors.New("held by another process")

// Lock makes a second process that locks the file fail. It is held until the file
// is closed.
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
