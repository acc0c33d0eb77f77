package loopback

import (
	"os"
	"sync"
)

// held are the locks of this process. An *os.File that nobody refers to is
// closed by the garbage collector, and its lock with it.
var held locks

type locks struct {
	mu    sync.Mutex
	files map[*os.File]struct{}
}

func (l *locks) add(f *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files == nil {
		l.files = map[*os.File]struct{}{}
	}
	l.files[f] = struct{}{}
}

func (l *locks) remove(f *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.files, f)
	f.Close()
}
