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
// # Rule
//
// The rule is the generic cell rate algorithm (GCRA). An event passes unless some
// period that ends with it would then hold more than burst + rate · length events of
// its key. This equals an exact log of all sliding windows of every length, yet it
// stores one number per key. With the default burst of one second's events:
//
//   - Never too strict: a key that keeps to the rate in every sliding second is
//     never refused.
//   - Hardly too lax: at most twice the rate passes in one second, and only
//     after a second of rest. Over a minute it is 61/60 of the rate.
//
// # Instances
//
// Each instance counts for itself, and allows its share of the rate and of the
// burst (Share). A budget is stored as a length of time, which does not depend on the
// share: at half of the rate, an event takes twice as much of it. So if an instance
// comes or goes, no budget starts anew, and a half-used budget is still half used.

const (
	// DefaultCapacity is the number of keys remembered at once: 2.1 MiB.
	DefaultCapacity = 1 << 17
	// MaxCapacity guards against typing errors in the configuration (1 GiB).
	MaxCapacity = 1 << 26
	// MaxRate is one event per nanosecond, the resolution of the clock.
	MaxRate = 1e9
	// MinRate is one event in about 11 days. A lower rate would be a ban.
	MinRate = 1e-6
	// MaxBurst and MinRate keep burst times interval far from overflow.
	MaxBurst = 1 << 20
	// MinShare is the events per second that every instance allows a key, whatever
	// the number of instances, if the whole rate allows as many. A browser stays on
	// one connection, hence at one instance, and must get through there.
	MinShare = 1
	// MaxShares bounds the number of instances that Share accepts.
	MaxShares = 1 << 16

	// ways is the entries per set. 8 entries of 16 bytes fill two cache lines. With
	// 8, a table that is three quarters full rarely drops a key that matters.
	ways = 8
)

// Options configure a limiter.
type Options struct {
	// PerSecond is the rate of one key; 0 turns the limiter off.
	PerSecond float64
	// Burst is how many events may come at once after a rest; 0 means the events of
	// one second, at least 1.
	Burst int
	// Capacity is the number of remembered keys, rounded up to a power of two;
	// 0 means DefaultCapacity.
	Capacity int
}

// Limiter decides about events of keys. Each key has a theoretical arrival time
// (TAT): the instant at which its budget is full again. An event adds one interval
// to it. The event is refused if the TAT would then be more than the depth ahead.
//
// The table is a set-associative cache of (hash, TAT). A key can be in one of the
// eight entries of its set. If all are taken, a new key replaces the entry with the
// lowest TAT: a key with a full budget if there is one, else the least active key.
// So the most active keys are remembered longest. Keys are 64-bit hashes under a
// random seed: two keys share a budget with a chance of one in 2⁶⁴, and an attacker
// cannot choose such keys.
//
// It is safe for concurrent use. A nil Limiter is off.
type Limiter struct {
	whole int64 // nanoseconds between two events at the full rate; 0 is off
	depth int64 // the full budget: burst intervals
	// interval is the nanoseconds between two events at this instance's share.
	interval atomic.Int64
	sets     []set // a power of two
}

// set holds the entries for the same hash bits.
type set struct {
	sync.Mutex
	entries [ways]entry
}

// entry is empty when its hash is 0. tat is in Unix nanoseconds.
type entry struct {
	hash uint64
	tat  int64
}

// New makes a limiter with the full rate.
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
	// Rounded down, so that it is never too strict.
	l.whole = int64(float64(time.Second) / o.PerSecond)
	// Burst and interval at their worst (2²⁰ and 10¹⁵ ns) would overflow.
	l.depth = min(int64(o.Burst), math.MaxInt64/4/l.whole) * l.whole
	l.Share(1)
	return l, nil
}

// Share makes this instance allow an n-th of the rate and of the burst, but at least
// MinShare. It may be called at any time.
func (l *Limiter) Share(n int) {
	if l.off() {
		return
	}
	widest := max(l.whole, int64(time.Second/MinShare))
	if l.whole == widest {
		n = 1 // also prevents an overflow of the product
	}
	l.interval.Store(min(l.whole*int64(min(max(n, 1), MaxShares)), widest))
}

// Allow decides about one event of a key. If it refuses, retryAfter is the time until
// one event would pass.
func (l *Limiter) Allow(key uint64, now time.Time) (ok bool, retryAfter time.Duration) {
	if l.off() {
		return true, 0
	}
	at, interval := now.UnixNano(), l.interval.Load()
	tolerance := max(l.depth-interval, 0) // a rested key passes, however small the share is
	s := l.set(key)
	s.Lock()
	defer s.Unlock()
	e := s.find(key)

	// A TAT further ahead means that the clock was set back. The key then
	// waits one interval instead of the whole step.
	tat := min(max(e.tat, at), at+tolerance+interval)
	if wait := tat - tolerance - at; wait > 0 {
		e.tat = tat
		return false, time.Duration(wait)
	}
	e.tat = tat + interval
	return true, 0
}

// Spent reports whether Allow would refuse. It counts nothing.
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

// Owe counts n events of a key and refuses none. It returns the used part of the
// key's budget in events, at most Burst; 0 if the limiter is off. A key that keeps to
// the rate soon owes nothing. With a share of a half, one event counts as two.
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

// keySeed is random, so that an attacker cannot choose colliding keys.
var keySeed = maphash.MakeSeed()

// TextKey is the key of a text, such as a buyer.
func TextKey(text string) uint64 { return max(maphash.String(keySeed, text), 1) } // 0 marks an empty entry

// BytesKey is TextKey for a byte slice.
func BytesKey(text []byte) uint64 { return max(maphash.Bytes(keySeed, text), 1) }

// ProductKey is the key of a product.
func ProductKey(id uint32) uint64 {
	var key [4]byte
	binary.BigEndian.PutUint32(key[:], id)
	return BytesKey(key[:])
}

// AddrKey is the key of a network address. An IPv6 address counts by its /64, because
// a customer gets a whole /64: by full addresses, each customer would have 2⁶⁴
// budgets. IPv4 written as IPv6 counts as IPv4.
func AddrKey(addr netip.Addr) uint64 {
	if addr = addr.Unmap(); addr.Is4() {
		key := addr.As4()
		return BytesKey(key[:])
	}
	key := addr.As16()
	return BytesKey(key[:8])
}

// Seconds formats a wait for Retry-After: whole seconds, rounded up, at least one.
func Seconds(wait time.Duration) int64 {
	return max(1, int64((wait+time.Second-1)/time.Second))
}

func (l *Limiter) off() bool { return l == nil || l.whole == 0 }

// set returns the set of a key, from the high half of its hash. Entries compare all
// 64 bits.
func (l *Limiter) set(key uint64) *set { return &l.sets[key>>32&uint64(len(l.sets)-1)] }

// find returns the entry of a key. A new key takes the entry with the lowest TAT.
// Empty entries have TAT 0, lower than any present instant.
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
