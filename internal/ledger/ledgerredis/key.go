package ledgerredis

import (
	"strconv"

	"seckill/internal/ledger"
)

// buckets is the number of parts of the ledger. It can never change: the bucket of a shard
// depends on it, and keys outlive programs.
const buckets = 64

// spread lists the buckets so that neighbours have distant slots in a Cluster: two in a row are
// in different halves, four in a row in different quarters. Masters usually have ranges of
// slots, so the shards of one product are on different masters.
var spread = [buckets]uint8{
	26, 24, 27, 25, 57, 59, 56, 58, 31, 33, 30, 32, 48, 46, 0, 47,
	39, 28, 38, 29, 9, 55, 41, 54, 13, 15, 12, 14, 5, 7, 4, 6,
	22, 20, 23, 21, 40, 51, 8, 50, 17, 19, 16, 18, 1, 3, 49, 2,
	35, 37, 34, 36, 44, 42, 45, 43, 53, 11, 52, 10, 62, 60, 63, 61,
}

// bucketOf returns the bucket of a shard. It hashes the group (Fibonacci hashing), because
// shops number products consecutively, and many products have one shard.
func bucketOf(group uint32, index int) int {
	return int(spread[(uint64(group*0x9E3779B9>>26)+uint64(index))%buckets])
}

// keyspace makes keys. Every key has its bucket's hash tag.
type keyspace struct {
	prefix string
}

func (k keyspace) bucket(bucket int, name string) []byte {
	b := make([]byte, 0, len(k.prefix)+len(name)+40)
	b = append(b, k.prefix...)
	b = append(b, "{b"...)
	b = strconv.AppendInt(b, int64(bucket), 10)
	b = append(b, "}:"...)
	return append(b, name...)
}

// at appends id and index to a name.
func (k keyspace) at(bucket int, name string, id uint32, index int) string {
	b := k.bucket(bucket, name)
	b = append(strconv.AppendUint(b, uint64(id), 10), ':')
	return string(strconv.AppendInt(b, int64(index), 10))
}

func (k keyspace) shard(s ledger.Shard) string {
	return k.at(bucketOf(s.Group, s.Index), "shard:", s.Product, s.Index)
}

func (k keyspace) lane(s ledger.Shard) string {
	return k.at(bucketOf(s.Group, s.Index), "lane:", s.Product, s.Index)
}

func (k keyspace) group(s ledger.Shard) string {
	return k.at(bucketOf(s.Group, s.Index), "group:", s.Group, s.Index)
}

func (k keyspace) mark(s ledger.Shard) string {
	return k.at(bucketOf(s.Group, s.Index), "mark:", s.Group, s.Index)
}

func (k keyspace) out(bucket int) string { return string(k.bucket(bucket, "out")) }

func (k keyspace) queue(bucket int) string { return string(k.bucket(bucket, "queue")) }

func (k keyspace) open(bucket int, product uint32) string {
	return string(strconv.AppendUint(k.bucket(bucket, "open:"), uint64(product), 10))
}

// workers and relays are the keys with the heartbeats of live consumers.
func (k keyspace) workers() string { return string(k.bucket(0, "workers")) }
func (k keyspace) relays() string  { return string(k.bucket(0, "relays")) }

// trial returns a key that exists only while rights are tested.
func (k keyspace) trial(bucket int, kind string) string {
	return string(append(k.bucket(bucket, "trial:"), kind...))
}
