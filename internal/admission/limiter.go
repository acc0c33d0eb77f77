package admission

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// A limiter bounds how often a key, such as a buyer or an address, may come. The
// limit slides, and the live instances divide it. Memory is fixed at the start and a
// decision allocates nothing, so a crowd of any size costs the same.
//

const (
	// DefaultCapacity is the number of keys remembered at once: 2.1 MiB.
	DefaultCapacity = 1 << 17
	// MaxCapacity keeps a typing error from taking the machine's memory (1 GiB).
	MaxCapacity = 1 << 26
	// MaxRate is where one nanosecond, the clock's step, is between two events.
	MaxRate = 1e9
	// MinRate is one event in about 11 days: beyond it a limit is a ban.
	MinRate = 1e-6
	// MaxBurst keeps burst times interval far from overflow together with MinRate.
	MaxBurst = 1 << 20
	// MinShare is the events a second that every instance allows a key, however
	// many instances there are, if the whole rate allows as many: a browser stays
	// on one connection, hence at one instance, and must get through there.
	MinShare = 1
	// MaxShares bounds the number of instances that are believed in.
	MaxShares = 1 << 16

	// ways entries of 16 bytes fill two cache lines, and are enough choice that a
	// table filled to three quarters seldom has to forget a key that counts.
	ways = 8
)

// Options say how often a key may come.
type Options struct {
	// PerSecond is the steady rate of one key; 0 turns the limiter off.
	PerSecond float64
	// Burst is how many may come at once after a rest; 0 means one second's
	// worth, at least 1.
	Burst int
	// Capacity is how many keys are remembered, rounded up to a power of two;
	// 0 means DefaultCapacity.
	Capacity int
}

// Limiter decides about events of keys. Each key has a theoretical arrival time
// (TAT), the instant at which it will have rested completely. An event moves it
// on by one interval, and is refused when it would then lie more than the
// budget's depth ahead.
//
// The table is a set-associative cache of (hash, TAT). A key may stand in one
// of the eight entries of its set; when all are taken, the one with the lowest
// TAT is forgotten, which is a key that has rested completely if there is one,
// and otherwise the key that has asked least: those who ask most are remembered
// longest. Keys are kept as 64-bit hashes under a random seed: two keys share
// their budget with a chance of one in 2⁶⁴, and nobody can aim at it.
//
// It is safe for concurrent use. A nil Limiter is off.
type Limiter struct {
	whole int64 // nanoseconds between two events at the whole rate; 0 is off
	depth int64 // the whole budget: burst of them
	// interval is the nanoseconds between two events at this instance's share.
	interval atomic.Int64
	sets     []set // a power of two
}

// set is the entries in which a key may stand.
type set struct {
	sync.Mutex
	entries [ways]entry
}

// entry is empty when its hash is 0. tat is in Unix nanoseconds.
type entry struct {
	hash uint64
	tat  int64
}

// New makes a limiter that has the whole rate to itself.
func New(o Options) (*Limiter, error) {
	if o.PerSecond == 0 {
		return &Limiter{}, nil
	}
	if o.Burst == 0 {
		o.Burst = int(min(max(math.Ceil(o.PerSecond), 1), MaxBurst))
	}
	if o.Capacity == 0 {
		o.Capacity = DefaultCapacity
	}
	switch {
	case !(o.PerSecond >= MinRate && o.PerSecond <= MaxRate): // catches NaN too
		return nil, fmt.Errorf("rate limit: %v per second is not 0 and not in %v to %v", o.PerSecond, MinRate, MaxRate)
	case o.Burst < 1 || o.Burst > MaxBurst:
		return nil, fmt.Errorf("rate limit: burst %d is not in 1 to %d", o.Burst, MaxBurst)
	case o.Capacity < 1 || o.Capacity > MaxCapacity:
		return nil, fmt.Errorf("rate limit: capacity %d is not in 1 to %d", o.Capacity, MaxCapacity)
	}
	sets := 1
	for sets*ways < o.Capacity {
		sets *= 2
	}
	l := &Limiter{sets: make([]set, sets)}
	// Rounded down: never too strict is promised to the nanosecond.
	l.whole = int64(float64(time.Second) / o.PerSecond)
	// Burst and interval at their worst (2²⁰ and 10¹⁵ ns) would overflow.
	l.depth = min(int64(o.Burst), math.MaxInt64/4/l.whole) * l.whole
	l.Share(1)
	return l, nil
}

// Share has this instance allow an n-th of the rate and of the burst, but no
// less than MinShare. It may be called at any time.
func (l *Limiter) Share(n int) {
	if l.off() {
		return
	}
	widest := max(l.whole, int64(time.Second/MinShare))
	if l.whole == widest {
		n = 1 // and a product of the two could overflow
	}
	l.interval.Store(min(l.whole*int64(min(max(n, 1), MaxShares)), widest))
}

// Allow decides about one event of a key. When it refuses, retryAfter is how long the
// key has to rest until one event would pass.
func (l *Limiter) Allow(key uint64, now time.Time) (ok bool, retryAfter time.Duration) {
	if l.off() {
		return true, 0
	}
	at, interval := now.UnixNano(), l.interval.Load()
	tolerance := max(l.depth-interval, 0) // a key that has rested passes, however thin the share is
	s := l.set(key)
	s.Lock()
	defer s.Unlock()
	e := s.find(key)

	// A TAT further ahead than any decision leaves it means that the clock was
	// set back: the key then waits one interval instead of the whole step.
	tat := min(max(e.tat, at), at+tolerance+interval)
	if wait := tat - tolerance - at; wait > 0 {
		e.tat = tat
		return false, time.Duration(wait)
	}
	e.tat = tat + interval
	return true, 0
}

// Spent reports whether Allow would refuse, and counts nothing.
func (l *Limiter) Spent(key uint64, now time.Time) bool {
	if l.off() {
		return false
	}
	at, interval := now.UnixNano(), l.interval.Load()
	tolerance := max(l.depth-interval, 0)
	s := l.set(key)
	s.Lock()
	defer s.Unlock()
	for i := range s.entries {
		if e := &s.entries[i]; e.hash == key {
			return min(e.tat, at+tolerance+interval)-tolerance > at
		}
	}
	return false
}

// Owe counts n events of a key and refuses none. It returns how many events the
// key has not rested off, at most Burst; 0 when the limiter is off. A key that
// keeps to the rate owes nothing for long. A share counts as in Allow: at the half
// of two instances one event owes two.
func (l *Limiter) Owe(key uint64, n int, now time.Time) float64 {
	if l.off() {
		return 0
	}
	at := now.UnixNano()
	s := l.set(key)
	s.Lock()
	defer s.Unlock()
	e := s.find(key)
	e.tat = min(max(e.tat, at)+int64(n)*l.interval.Load(), at+l.depth)
	return float64(e.tat-at) / float64(l.whole)
}

// keySeed is drawn at the start, so that nobody can aim at another's key.
var keySeed = maphash.MakeSeed()

// TextKey is the key of a text, such as a buyer.
func TextKey(text string) uint64 { return max(maphash.String(keySeed, text), 1) } // 0 marks an empty entry

// BytesKey is TextKey of a text that is not a string yet.
func BytesKey(text []byte) uint64 { return max(maphash.Bytes(keySeed, text), 1) }

// ProductKey is the key of a product.
func ProductKey(id uint32) uint64 {
	var key [4]byte
	binary.BigEndian.PutUint32(key[:], id)
	return BytesKey(key[:])
}

// AddrKey is the key of a network address. An IPv6 address counts by its /64,
// because that is what one customer is given: by the full address, everybody would
// have 2⁶⁴ budgets. IPv4 written as IPv6 is IPv4.
func AddrKey(addr netip.Addr) uint64 {
	if addr = addr.Unmap(); addr.Is4() {
		key := addr.As4()
		return BytesKey(key[:])
	}
	key := addr.As16()
	return BytesKey(key[:8])
}

// Seconds is a wait as Retry-After tells it: whole seconds, at least one, never
// too few.
func Seconds(wait time.Duration) int64 {
	return max(1, int64((wait+time.Second-1)/time.Second))
}

func (l *Limiter) off() bool { return l == nil || l.whole == 0 }

// set is where a key may stand. It comes from the high half of the hash, and an
// entry is told by all 64 bits.
func (l *Limiter) set(key uint64) *set { return &l.sets[key>>32&uint64(len(l.sets)-1)] }

// find is the entry of a key; a new key takes the one with the lowest TAT. Empty
// entries have TAT 0, lower than any instant of this century.
func (s *set) find(key uint64) *entry {
	lowest := &s.entries[0]
	for i := range s.entries {
		e := &s.entries[i]
		if e.hash == key {
			return e
		}
		if e.tat < lowest.tat {
			lowest = e
		}
	}
	*lowest = entry{hash: key}
	return lowest
}
