package sale

import (
	"context"
	"sync"

	"seckill"
)

// locks has a lock for each key that somebody holds or waits for. The zero value
// is ready.
type locks struct {
	mu sync.Mutex
	of map[uint32]*lock
}

type lock struct {
	held  chan struct{}
	users int // who holds it or waits for it
}

// acquire takes the lock under a key.
func (l *locks) acquire(ctx context.Context, key uint32) (release func(), err error) {
	k := l.use(key)
	select {
	case k.held <- struct{}{}:
		return func() {
			<-k.held
			l.leave(key, k)
		}, nil
	case <-ctx.Done():
		l.leave(key, k)
		return nil, seckill.Errorf(seckill.CodeBusy, "another change of this product is going on: %w", ctx.Err())
	}
}

func (l *locks) use(key uint32) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.of[key]
	if k == nil {
		k = &lock{held: make(chan struct{}, 1)}
		if l.of == nil {
			l.of = make(map[uint32]*lock)
		}
		l.of[key] = k
	}
	k.users++
	return k
}

func (l *locks) leave(key uint32, k *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.users--; k.users == 0 {
		delete(l.of, key)
	}
}
