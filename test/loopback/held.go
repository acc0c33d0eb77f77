package loopback

import (
	"os"
	"sync"
)

// held are the locks of this process. The garbage collector closes an *os.File
// without references, and that would release its lock.
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
