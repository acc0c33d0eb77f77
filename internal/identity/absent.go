package identity

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	// maxAbsent bounds the names of keys that are asked for in vain. Beyond it a
	// name is not remembered, and the answer stays open: strangers who invent
	// names may delay a "no", and never bring one about.
	maxAbsent = 4096
	// absentFor is how long a name is remembered; a set is fresh for half of it.
	absentFor = 2 * KeysSpacing
)

// absent remembers when names of keys that a set does not have were asked for.
// The shop may publish a key at any moment and sign with it at once: only a set
// whose fetch began after the name was seen can say that there is none. It is
// safe for concurrent use.
type absent struct {
	seed maphash.Seed
	mu   sync.Mutex
	seen map[uint64]time.Duration // by hash, since Keys.began
	// swept is when what is too old was dropped last.
	swept time.Duration
}

func newAbsent() *absent {
	return &absent{seed: maphash.MakeSeed(), seen: make(map[uint64]time.Duration, maxAbsent)}
}

// settled reports whether a set in which a key was not found can be believed.
// Once it is no longer fresh, the question is a new one.
func (a *absent) settled(set *keySet, alg algorithm, kid []byte, now time.Duration) bool {
	var h maphash.Hash
	h.SetSeed(a.seed)
	_ = h.WriteByte(byte(alg))
	_, _ = h.Write(kid)
	name := h.Sum64()

	a.mu.Lock()
	defer a.mu.Unlock()
	seen, known := a.seen[name]
	if known && seen >= set.fetched {
		return false // it is being fetched for
	}
	if known && set.fresh(now) {
		return true
	}
	if known || len(a.seen) < maxAbsent || a.sweep(now) {
		a.seen[name] = now
	}
	return false
}

// sweep makes room, once in a while: a flood must not have it look each time.
func (a *absent) sweep(now time.Duration) bool {
	if now-a.swept < KeysSpacing {
		return false
	}
	a.swept = now
	for name, seen := range a.seen {
		if now-seen >= absentFor {
			delete(a.seen, name)
		}
	}
	return len(a.seen) < maxAbsent
}
