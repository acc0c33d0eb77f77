package storesql

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"seckill"
)

// The stock log and the orders are compared order by order: two streams of
// perhaps millions of rows, each in an order of its own. Nothing is sorted or
// kept for that. Each row of the log adds the hash of its order number and units
// to a sum, each order subtracts what it should have there, and the sum is 0 at
// the end if both say the same; if they do not, with a chance of 2⁻⁶⁴. The hash
// has a seed of its own in every check: nobody can choose changes that cancel
// out.
//
// There are many sums, each of the numbers that fall into its bucket. Only to
// name what differs are the streams read once more, and only the numbers of the
// buckets that differ are held then.

// sumBuckets leaves 500 of 2 million orders to a bucket, and is 96 KiB of sums.
const sumBuckets = 4096

// byKind has a place for each of the types of rows that name an order; that at
// 0 is none's.
type byKind[T any] [logReturned + 1]T

var orderKinds = [...]int{logSold, logReturned}

// unitSums are the sums of the log less those of the orders.
type unitSums struct {
	seed    maphash.Seed
	buckets [sumBuckets]byKind[uint64]
	entry   []byte // for reuse
}

func newUnitSums() *unitSums { return &unitSums{seed: maphash.MakeSeed()} }

// add adds a row of the log.
func (u *unitSums) add(l *stockLogRow) {
	if l.ofOrder() {
		u.buckets[u.bucket(l.orderNo)][l.kind] += u.hash(l.orderNo, l.quantity)
	}
}

// subtract subtracts the rows that the order should have there.
func (u *unitSums) subtract(o *orderUnits) {
	bucket, hash := u.bucket(o.orderNo), u.hash(o.orderNo, o.quantity)
	for _, kind := range orderKinds {
		if o.logged(kind) {
			u.buckets[bucket][kind] -= hash
		}
	}
}

func (u *unitSums) bucket(no []byte) int { return int(maphash.Bytes(u.seed, no) % sumBuckets) }

func (u *unitSums) hash(no []byte, units int64) uint64 {
	u.entry = binary.LittleEndian.AppendUint64(append(u.entry[:0], no...), uint64(units))
	return maphash.Bytes(u.seed, u.entry)
}

// differing are at most limit buckets in which there is something to find.
func (u *unitSums) differing(limit int) map[int]bool {
	found := make(map[int]bool)
	for bucket := range u.buckets {
		if len(found) < limit && u.buckets[bucket] != (byKind[uint64]{}) {
			found[bucket] = true
		}
	}
	return found
}

// nameDifferences reads log and orders once more, and says which numbers of
// the buckets differ.
func nameDifferences(ctx context.Context, r *session, product uint32, sums *unitSums, buckets map[int]bool, f *findings) error {
	numbers := make(map[string]*numberRows)
	of := func(no []byte) *numberRows {
		n := numbers[string(no)]
		if n == nil && buckets[sums.bucket(no)] {
			n = new(numberRows)
			numbers[string(no)] = n
		}
		return n
	}
	err := eachStockLog(ctx, r, product, func(l *stockLogRow) error {
		if l.ofOrder() {
			of(l.orderNo).found(l)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := eachOrderUnits(ctx, r, product, func(o *orderUnits) { of(o.orderNo).expect(o) }); err != nil {
		return err
	}
	for _, no := range slices.Sorted(maps.Keys(numbers)) {
		if err := numbers[no].check(no, f); err != nil {
			return err
		}
	}
	return nil
}

// numberRows are the rows of one order number: those in the log, and those
// that the order should have there. A nil is of another bucket.
type numberRows struct {
	log, want byKind[logRows]
	last      byKind[int64]        // seq in the log
	status    *seckill.OrderStatus // nil if the product has no such order
}

// logRows are rows of one kind. As at most one is wanted, two are the same if
// they are equal.
type logRows struct{ count, units int64 }

func (l logRows) String() string {
	switch l.count {
	case 0:
		return "no row"
	case 1:
		return fmt.Sprintf("1 row, quantity %d", l.units)
	}
	return fmt.Sprintf("%d rows, quantity %d in all", l.count, l.units)
}

func (n *numberRows) found(l *stockLogRow) {
	if n == nil {
		return
	}
	n.log[l.kind].count++
	n.log[l.kind].units += l.quantity
	n.last[l.kind] = l.seq
}

func (n *numberRows) expect(o *orderUnits) {
	if n == nil {
		return
	}
	status := o.status
	n.status = &status
	for _, kind := range orderKinds {
		if o.logged(kind) {
			n.want[kind] = logRows{1, o.quantity}
		}
	}
}

// check compares the rows of the number no; empty is none.
func (n *numberRows) check(no string, f *findings) error {
	for _, kind := range orderKinds {
		if n.log[kind] == n.want[kind] {
			continue
		}
		detail := fmt.Sprintf("rows of type %d in the stock log that name ", kind)
		switch {
		case n.status != nil:
			detail += fmt.Sprintf("order %s, which is %s", no, n.status)
		case no != "":
			detail += fmt.Sprintf("order %q, which the product does not have", no)
		default:
			detail += "no order"
		}
		if n.log[kind].count > 0 {
			detail += fmt.Sprintf("; the last is stock log %d", n.last[kind])
		}
		if err := f.add(n.want[kind], n.log[kind], "%s", detail); err != nil {
			return err
		}
	}
	return nil
}
