package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"seckill"
)

const (
	// verifiedBuckets times bucketWays are the tokens that are remembered:
	// 131,072 in 16 MiB. A crowd beyond it costs one signature per request of
	// those who were displaced, and nothing else.
	verifiedBuckets = 1 << 14
	bucketWays      = 8
)

// verified remembers tokens whose signature a key has been found to have made,
// in fixed memory. Only such tokens enter, so nobody can fill it who cannot
// sign. It is safe for concurrent use.
type verified struct {
	buckets []bucket // a power of two of them
}

// bucket is the tokens that share a place.
type bucket struct {
	sync.Mutex
	entries [bucketWays]entry
}

// entry is one token: 128 bytes without a pointer, which the collector need
// not look at. The zero entry is free: no key has the fingerprint 0.
type entry struct {
	token          [sha256.Size]byte // SHA-256 of the whole of it, signature included
	buyer          [seckill.MaxBuyerBytes]byte
	exp, notBefore int64
	length         uint64 // of the buyer
	fingerprint    uint64 // of the key
}

// newVerified makes a memory of some buckets, a power of two.
func newVerified(buckets int) *verified {
	return &verified{buckets: make([]bucket, buckets)}
}

// bucket is where a token is, if it is remembered. Tokens are told apart by
// their SHA-256, of whose bits nobody can choose enough to matter; comparing
// sums of verified tokens needs no constant time either, for the same reason.
func (v *verified) bucket(token *[sha256.Size]byte) *bucket {
	return &v.buckets[binary.LittleEndian.Uint64(token[:])&uint64(len(v.buckets)-1)]
}

// find copies out what is known of a token that the key of the fingerprint has
// signed. Dates are the caller's to check.
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

// keep remembers a token that the key of the fingerprint has signed. Tokens that
// expired by ended may be displaced: they are refused now.
func (v *verified) keep(token *[sha256.Size]byte, fingerprint uint64, c *claims, ended int64) {
	e := entry{token: *token, exp: c.exp, notBefore: c.notBefore(), fingerprint: fingerprint}
	e.length = uint64(copy(e.buyer[:], c.subject))
	bucket := v.bucket(token)
	bucket.Lock()
	defer bucket.Unlock()
	bucket.entries[place(&bucket.entries, &e, ended)] = e
}

// place is where to put an entry: over the same token, else over one that has
// expired, else over any, which the token's own bits choose.
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
