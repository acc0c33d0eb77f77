//go:build unix

package socket

import (
	"errors"
	"net"
	"syscall"
)

// writeNow hands a text to the kernel, if it takes all of it: its buffer holds
// many of them, so that who leaves it full has not read for long.
func (b *bare) writeNow(text []byte) (n int, err error) {
	raw, rawErr := b.Conn.(*net.TCPConn).SyscallConn()
	if rawErr != nil {
		return 0, rawErr
	}
	rawErr = raw.Write(func(fd uintptr) bool {
		for {
			if n, err = syscall.Write(int(fd), text); !errors.Is(err, syscall.EINTR) {
				return true // never wait
			}
		}
	})
	switch {
	case rawErr != nil:
		return 0, rawErr
	case errors.Is(err, syscall.EAGAIN), err == nil && n < len(text):
		return max(n, 0), ErrSlow
	}
	return max(n, 0), err
}

// gone looks whether there is something to read, without taking it.
func (b *bare) gone() bool {
	raw, err := b.Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return true
	}
	waits := false
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		waits = errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
		return true
	})
	return err != nil || !waits
}
