package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"seckill"
)

const (
	// verifiedBuckets × bucketWays is the number of remembered tokens: 131,072
	// in 16 MiB. If more buyers come, each request of a displaced token costs one
	// more signature check.
	verifiedBuckets = 1 << 14
	bucketWays      = 8
)

// verified remembers tokens whose signature was checked with a public key, in
// fixed memory. Only genuine tokens enter, so an attacker without a key cannot
// fill it. It is safe for concurrent use.
type verified struct {
	buckets []bucket // a power of two of them
}

// bucket holds the tokens with the same hash bits.
type bucket struct {
	sync.Mutex
	entries [bucketWays]entry
}

// entry is one token: 128 bytes without a pointer, so the garbage collector does
// not scan it. The zero entry is free: no key has the fingerprint 0.
type entry struct {
	token          [sha256.Size]byte // SHA-256 of the whole token, signature included
	buyer          [seckill.MaxBuyerBytes]byte
	exp, notBefore int64
	length         uint64 // of the buyer
	fingerprint    uint64 // of the key
}

// newVerified makes a memory with this number of buckets, a power of two.
func newVerified(buckets int) *verified {
	return &verified{buckets: make([]bucket, buckets)}
}

// bucket returns the bucket of a token, given by its SHA-256. An attacker cannot
// choose enough bits of it to fill one bucket, or to gain from the timing of the
// comparison.
func (v *verified) bucket(token *[sha256.Size]byte) *bucket {
	return &v.buckets[binary.LittleEndian.Uint64(token[:])&uint64(len(v.buckets)-1)]
}

// find copies the entry of a token that the key with this fingerprint has signed.
// The caller checks the dates.
func (v *verified) find(token *[sha256.Size]byte, fingerprint uint64, found *entry) bool {
	bucket := v.bucket(token)
	bucket.Lock()
	defer bucket.Unlock()
	for i := range bucket.entries {
		if e := &bucket.entries[i]; e.fingerprint == fingerprint && e.token == *token {
			*found = *e
			return true
		}
	}
	return false
}

// keep remembers a token that the key with this fingerprint has signed. It may
// replace tokens that expired by ended: they are refused now.
func (v *verified) keep(token *[sha256.Size]byte, fingerprint uint64, c *claims, ended int64) {
	e := entry{token: *token, exp: c.exp, notBefore: c.notBefore(), fingerprint: fingerprint}
	e.length = uint64(copy(e.buyer[:], c.subject))
	bucket := v.bucket(token)
	bucket.Lock()
	defer bucket.Unlock()
	bucket.entries[place(&bucket.entries, &e, ended)] = e
}

// place returns the index for an entry: the same token, else an expired entry,
// else an index from the token's own bits.
func place(bucket *[bucketWays]entry, e *entry, ended int64) int {
	at := int(e.token[sha256.Size-1]) % bucketWays
	for i := range bucket {
		switch old := &bucket[i]; {
		case old.token == e.token:
			return i
		case old.fingerprint == 0 || old.exp <= ended:
			at = i
		}
	}
	return at
}
