package ledgerredis

import (
	"slices"
	"testing"
)

// slotOf returns the slot of a key with this hash tag: CRC-16/XMODEM, as in the Redis Cluster
// specification.
func slotOf(tag string) int {
	crc := uint16(0)
	for _, b := range []byte(tag) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc) % 16384
}

func TestBucketOf_ShardsOfAProductAreSpreadOverMasters(t *testing.T) {
	tag := func(bucket int) string {
		name := keyspace{}.bucket(bucket, "")
		return string(name[1:slices.Index(name, '}')])
	}
	if got := slotOf("123456789"); got != 0x31C3 { // the specification's example
		t.Fatalf("slotOf is %#x", got)
	}
	for product := range uint32(1000) {
		for _, shards := range []int{2, 4} {
			ranges := make(map[int]bool) // by master, if each has a range of slots
			for i := range shards {
				ranges[slotOf(tag(bucketOf(product, i)))*shards/16384] = true
			}
			if len(ranges) != shards {
				t.Fatalf("the %d shards of product %d lie in %d of %d ranges", shards, product, len(ranges), shards)
			}
		}
	}
}

func TestBucketOf_EveryBucketIsUsedOnce(t *testing.T) {
	used := make(map[int]bool)
	for i := range buckets {
		used[bucketOf(7, i)] = true
	}
	if len(used) != buckets {
		t.Errorf("%d of %d buckets are used", len(used), buckets)
	}
}
