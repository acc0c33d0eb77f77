package reconcile

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

const (
	// rowsMost bounds the orders that are compared, by the memory that they take:
	// 24 bytes each.
	rowsMost = 3_000_000
	// suspectsMost bounds what is looked at a second time. Under traffic those are
	// the orders that came or went since the rows were read; who is beyond it is
	// compared the next time.
	suspectsMost = 20_000
	// judgeBatch is how many orders are read again at once.
	judgeBatch = 256
)

// comparison is of a product's orders with the marks that the ledger has of
// them, order by order, while traffic goes on (protocol 6). First all rows are
// read, then all marks. What does not match is only suspected: it may have come
// or gone in between. Those few are looked up one by one, in an order in which
// nothing that the engine does looks wrong; see judge.go.
type comparison struct {
	r       *Reconciler
	product *seckill.Product
	seed    maphash.Seed
	rows    []row // by number
	// whole is false if not all rows or not all marks were read: then a row that
	// no mark was seen for proves nothing.
	whole    bool
	suspects []suspect

	compared    int64
	differences []difference
}

// row is an order as the store has it: its number, and in one word a hash of
// buyer and key, the units, whether the ledger has to hold it or to know its key,
// and whether it was seen there.
type row struct {
	no   seckill.OrderNo
	word uint64
}

const (
	rowSeen   = 1 << 0
	rowMarked = 1 << 1
	rowKnown  = 1 << 2
	unitShift = 3
	unitBits  = 17 // units of one order, of which a mark has two bytes
	hashShift = unitShift + unitBits
)

// suspect is an order in a mark that matches no row.
type suspect struct {
	shard int
	mark  ledger.Mark
}

func newComparison(r *Reconciler, p *seckill.Product) *comparison {
	return &comparison{r: r, product: p, seed: maphash.MakeSeed(), whole: true}
}

// word is what must be the same on both sides, but the units of the dead.
func (c *comparison) word(buyer, key string, units int) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	_, _ = h.WriteString(buyer)
	_ = h.WriteByte(0)
	_ = h.WriteByte(byte(len(key))) // tells where the buyer ends
	_, _ = h.WriteString(key)
	return h.Sum64()<<hashShift | min(uint64(units), 1<<unitBits-1)<<unitShift
}

// readRows reads the store's orders, of which there are about as many.
func (c *comparison) readRows(ctx context.Context, about int64) error {
	if about > rowsMost {
		c.whole = false
		return nil
	}
	c.rows = make([]row, 0, about)
	err := c.r.Store.WalkOrders(ctx, c.product.ID, func(t store.Trace) error {
		if len(c.rows) == rowsMost {
			c.whole = false
			return nil
		}
		word := c.word(t.Buyer, t.Key, t.Quantity)
		if t.Marked {
			word |= rowMarked
		}
		if t.Known {
			word |= rowKnown
		}
		c.rows = append(c.rows, row{t.OrderNo, word})
		if t.Wrong != "" && !c.enough() {
			c.contradicts(seckill.HomeShard(c.product, t.Buyer), t.OrderNo, t.Buyer, "a row that the engine wrote", t.Wrong)
		}
		return nil
	})
	slices.SortFunc(c.rows, func(a, b row) int { return bytes.Compare(a.no[:], b.no[:]) })
	return err
}

// rowsOf is how many rows there are at most: each has a unit at least.
func rowsOf(f *store.Figures) int64 {
	return f.Pending + f.Paid + f.Cancelled + f.Failed + f.Refunded
}

// meet takes an order of a mark.
func (c *comparison) meet(shard int, m ledger.Mark) {
	if !c.matches(shard, m) {
		if len(c.suspects) == suspectsMost {
			return
		}
		c.suspects = append(c.suspects, suspect{shard, m})
	}
	c.compared++
}

// matches reports whether an order in a mark is what its row says, and notes
// that it was seen.
func (c *comparison) matches(shard int, m ledger.Mark) bool {
	at, found := slices.BinarySearchFunc(c.rows, m.OrderNo, func(r row, no seckill.OrderNo) int { return bytes.Compare(r.no[:], no[:]) })
	if !found || seckill.HomeShard(c.product, m.Buyer) != shard {
		return false
	}
	r := &c.rows[at]
	differs := c.word(m.Buyer, m.Key, m.Quantity) ^ r.word
	if m.Quantity == 0 {
		if differs>>hashShift != 0 {
			return false
		}
		if r.word&rowMarked == 0 { // else its key is known, but it is not held
			r.word |= rowSeen
		}
		return true
	}
	if differs>>unitShift != 0 {
		return false
	}
	r.word |= rowSeen
	return true
}

// unseen is the numbers of the orders that the ledger has to hold, or whose keys
// it has to know, and that it was not seen to.
func (c *comparison) unseen(has uint64) []seckill.OrderNo {
	if !c.whole {
		return nil
	}
	var nos []seckill.OrderNo
	for i := range c.rows {
		if c.rows[i].word&(has|rowSeen) == has && len(nos) < suspectsMost {
			nos = append(nos, c.rows[i].no)
		}
	}
	return nos
}

// difference is an order of which ledger and store say different things.
type difference struct {
	shard           int
	no              seckill.OrderNo
	buyer           string // whose mark it is in, or should be
	expected, found string
	// ofStore says that it is the store that contradicts itself, so that it is no
	// truth to recover from.
	ofStore bool
}

// detail is the form of a finding's text, for shard, number and buyer.
func (d *difference) detail() string {
	if d.ofStore {
		return "shard %d: order %s of buyer %q in the store"
	}
	return "shard %d: order %s in the mark of buyer %q"
}

func (c *comparison) differ(shard int, no seckill.OrderNo, buyer, expected, found string) {
	c.differences = append(c.differences, difference{shard: shard, no: no, buyer: buyer, expected: expected, found: found})
}

func (c *comparison) contradicts(shard int, no seckill.OrderNo, buyer, expected, found string) {
	c.differences = append(c.differences, difference{shard: shard, no: no, buyer: buyer, expected: expected, found: found, ofStore: true})
}

func (c *comparison) enough() bool { return len(c.differences) >= findingsMost }

// describe says what one side has of an order; of the key only that it is
// another.
func describe(buyer string, units int, note string) string {
	return fmt.Sprintf("%d units of buyer %q%s", units, buyer, note)
}
