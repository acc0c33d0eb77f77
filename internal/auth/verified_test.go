package auth

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"unsafe"
)

func sumOf(i int) *[sha256.Size]byte {
	sum := sha256.Sum256(fmt.Append(nil, "token ", i))
	return &sum
}

func claimsOf(i int, exp int64) *claims {
	return &claims{subject: fmt.Append(nil, "buyer ", i), exp: exp, nbf: -1, iat: -1}
}

func TestVerified_EntryIs128Bytes(t *testing.T) {
	if size := unsafe.Sizeof(entry{}); size != 128 {
		t.Errorf("%d bytes", size)
	}
}

func TestVerified_FoundOnlyUnderItsKey(t *testing.T) {
	v := newVerified(16)
	v.keep(sumOf(1), 7, claimsOf(1, 100), 0)
	var found entry
	if !v.find(sumOf(1), 7, &found) || string(found.buyer[:found.length]) != "buyer 1" || found.exp != 100 || found.notBefore != -1 {
		t.Errorf("found %+v", found)
	}
	if v.find(sumOf(1), 8, &found) || v.find(sumOf(1), 0, &found) || v.find(sumOf(2), 7, &found) || v.find(&[sha256.Size]byte{}, 0, &found) && found.length > 0 {
		t.Error("found something else")
	}
	// Another key takes the same place.
	v.keep(sumOf(1), 8, claimsOf(1, 100), 0)
	if v.find(sumOf(1), 7, &found) || !v.find(sumOf(1), 8, &found) {
		t.Error("the key did not change")
	}
}

// However many tokens come, the memory does not grow. The newest token is found, and
// expired entries are replaced first.
func TestVerified_MemoryIsBounded(t *testing.T) {
	v := newVerified(2)
	const room = 2 * bucketWays
	var found entry
	for i := range 100 * room {
		v.keep(sumOf(i), 1, claimsOf(i, 1000), 0)
		if !v.find(sumOf(i), 1, &found) || string(found.buyer[:found.length]) != fmt.Sprint("buyer ", i) {
			t.Fatalf("token %d is not found", i)
		}
	}
	kept := 0
	for i := range 100 * room {
		if v.find(sumOf(i), 1, &found) {
			kept++
		}
	}
	if kept != room {
		t.Errorf("%d tokens are remembered, want %d", kept, room)
	}
	bucket := &v.buckets[0].entries
	bucket[3].exp = 10
	for i := range bucketWays {
		if at := place(bucket, &entry{token: [sha256.Size]byte{sha256.Size - 1: byte(i)}}, 10); at != 3 {
			t.Errorf("an entry that counts was displaced at %d, not the expired one", at)
		}
	}
}

func TestVerified_ConcurrentUse(t *testing.T) {
	v := newVerified(8)
	var crowd sync.WaitGroup
	for worker := range 8 {
		crowd.Go(func() {
			var found entry
			for i := range 2000 {
				i %= 100 + worker
				if v.find(sumOf(i), 1, &found) && string(found.buyer[:found.length]) != fmt.Sprint("buyer ", i) {
					t.Errorf("token %d is %q's", i, found.buyer[:found.length])
				}
				v.keep(sumOf(i), 1, claimsOf(i, 1000), 0)
			}
		})
	}
	crowd.Wait()
}
