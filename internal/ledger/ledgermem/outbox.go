package ledgermem

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"seckill"
	"seckill/internal/queue"
)

// stream is the one stream of the embedded queue.
const stream = "journal"

// item is one unacknowledged entry in the outbox's index. It takes 64 bytes, and 8 in its
// product's list.
type item struct {
	seq, tag uint64
	at       int64 // Unix nanoseconds
	product  uint32
	claims   uint32
	owner    uint32 // serial of its consumer; 0 for none
	acked    bool   // then it is a gap, until the index is packed
	body     []byte // the body of its row
}

func (it *item) id() queue.ID { return queue.ID{Stream: stream, Seq: it.seq, Tag: it.tag} }

// productFigures has the sums of one product's unacknowledged entries.
type productFigures struct {
	entries, claims int64
	seqs            []uint64 // in order; acknowledged ones are removed when they reach the front
}

// outbox is the index of unacknowledged entries and their consumers. The scribe publishes and
// settles entries, and consumers take and return them.
type outbox struct {
	mu        sync.Mutex
	items     []item // by seq, with gaps
	gaps      int
	next      int      // earlier items are with a consumer, returned, or gaps
	returned  []uint64 // returned by consumers, in order
	products  map[uint32]*productFigures
	total     productFigures
	consumers map[uint32]*consumer
	serial    uint32
	wake      chan struct{} // closed and replaced when an entry becomes available
	closed    bool
}

func newOutbox() *outbox {
	return &outbox{
		products:  map[uint32]*productFigures{},
		consumers: map[uint32]*consumer{},
		wake:      make(chan struct{}),
	}
}

func (o *outbox) signal() {
	close(o.wake)
	o.wake = make(chan struct{})
}

// close ends every waiting Receive.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.signal()
}

func (o *outbox) publish(entries []item) {
	if len(entries) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, it := range entries {
		o.items = append(o.items, it)
		p := o.products[it.product]
		if p == nil {
			p = &productFigures{}
			o.products[it.product] = p
		}
		p.seqs = append(p.seqs, it.seq)
		for _, f := range []*productFigures{p, &o.total} {
			f.entries++
			f.claims += int64(it.claims)
		}
	}
	o.signal()
}

// find returns the item with this number, or nil if it is acknowledged or unknown.
func (o *outbox) find(seq uint64) *item {
	i, ok := slices.BinarySearchFunc(o.items, seq, func(it item, seq uint64) int { return cmp.Compare(it.seq, seq) })
	if !ok || o.items[i].acked {
		return nil
	}
	return &o.items[i]
}

// pending returns those of the ids whose entries are unacknowledged.
func (o *outbox) pending(ids []queue.ID) (seqs []uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range ids {
		if it := o.find(id.Seq); it != nil && it.id() == id {
			seqs = append(seqs, id.Seq)
		}
	}
	return seqs
}

func (o *outbox) settle(seqs []uint64) {
	if len(seqs) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, seq := range seqs {
		it := o.find(seq)
		if it == nil { // given twice in one round
			continue
		}
		if c := o.consumers[it.owner]; c != nil {
			delete(c.inflight, seq)
		} else if i, ok := slices.BinarySearch(o.returned, seq); ok {
			o.returned = slices.Delete(o.returned, i, i+1)
		}
		it.acked, it.body, it.owner = true, nil, 0
		o.gaps++
		p := o.products[it.product]
		for _, f := range []*productFigures{p, &o.total} {
			f.entries--
			f.claims -= int64(it.claims)
		}
		o.forward(it.product, p)
	}
	o.pack()
}

// forward drops acknowledged numbers from the front of a product's list, so that the first one
// is the oldest unacknowledged entry.
func (o *outbox) forward(product uint32, p *productFigures) {
	if p.entries == 0 {
		delete(o.products, product)
		return
	}
	for len(p.seqs) > 0 && o.find(p.seqs[0]) == nil {
		p.seqs = p.seqs[1:]
	}
}

// pack drops gaps: those at the front at once, the others when they are half of the index. So
// one stuck entry does not keep memory for all entries behind it.
func (o *outbox) pack() {
	front := 0
	for front < len(o.items) && o.items[front].acked {
		front++
	}
	o.items = o.items[front:]
	o.gaps -= front
	o.next = max(o.next-front, 0)
	if o.gaps <= len(o.items)/2 {
		return
	}
	before := 0
	for i := range min(o.next, len(o.items)) {
		if o.items[i].acked {
			before++
		}
	}
	o.items = slices.DeleteFunc(slices.Clone(o.items), func(it item) bool { return it.acked })
	o.next, o.gaps = o.next-before, 0
}

// takeBatch gives a consumer the oldest free entries with at most max claims together, or one
// entry with more.
func (o *outbox) takeBatch(c *consumer, max int) (taken []item) {
	claims := 0
	fits := func(it *item) bool {
		claims += int(it.claims)
		return len(taken) == 0 || claims <= max
	}
	take := func(it *item) {
		taken = append(taken, *it)
		it.owner = c.serial
		c.inflight[it.seq] = struct{}{}
	}
	for len(o.returned) > 0 {
		it := o.find(o.returned[0])
		if !fits(it) {
			return taken
		}
		take(it)
		o.returned = o.returned[1:]
	}
	for ; o.next < len(o.items); o.next++ {
		it := &o.items[o.next]
		if it.acked {
			continue
		}
		if !fits(it) {
			return taken
		}
		take(it)
	}
	return taken
}

// returnEntries makes a consumer's entries available again.
func (o *outbox) returnEntries(c *consumer, seqs []uint64) {
	for _, seq := range seqs {
		if _, ok := c.inflight[seq]; !ok {
			continue
		}
		delete(c.inflight, seq)
		o.find(seq).owner = 0
		i, _ := slices.BinarySearch(o.returned, seq)
		o.returned = slices.Insert(o.returned, i, seq)
	}
	o.signal()
}

// join adds a consumer with a name that no other consumer has.
func (o *outbox) join(l *Ledger, name string) (*consumer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, errStopped
	}
	for _, c := range o.consumers {
		if c.name == name {
			return nil, fmt.Errorf("consumer %q exists already", name)
		}
	}
	o.serial++
	c := &consumer{ledger: l, name: name, serial: o.serial, inflight: map[uint64]struct{}{}}
	o.consumers[c.serial] = c
	return c, nil
}

// leave removes a consumer and returns its entries, once.
func (o *outbox) leave(c *consumer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.consumers[c.serial] == nil {
		return
	}
	o.returnEntries(c, slices.Collect(maps.Keys(c.inflight)))
	delete(o.consumers, c.serial)
}

// entryOf returns the entry of a row with this claim alone, or the zero entry if it is
// acknowledged.
func (o *outbox) entryOf(seq uint64, no seckill.OrderNo) (seckill.Entry, error) {
	o.mu.Lock()
	it := o.find(seq)
	if it == nil {
		o.mu.Unlock()
		return seckill.Entry{}, nil
	}
	body := it.body
	o.mu.Unlock()
	entry, _, err := decodeEntry(seq, body)
	if err != nil || !keepOnly(&entry, no) {
		return seckill.Entry{}, err
	}
	return entry, nil
}

// keepOnly removes all claims but the one with this number, and reports whether the entry has it.
func keepOnly(e *seckill.Entry, no seckill.OrderNo) bool {
	e.Claims = slices.DeleteFunc(e.Claims, func(c seckill.Claim) bool { return c.OrderNo != no })
	return len(e.Claims) > 0
}

// oldest returns at most most of a product's items, in order.
func (o *outbox) oldest(product uint32, most int) (items []item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.products[product]
	if p == nil {
		return nil
	}
	for _, seq := range p.seqs {
		if len(items) == most {
			break
		}
		if it := o.find(seq); it != nil {
			items = append(items, *it)
		}
	}
	return items
}

func (o *outbox) stats(product uint32) queue.Stats {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, oldest := &o.total, (*item)(nil)
	if product != 0 {
		if f = o.products[product]; f == nil {
			return queue.Stats{}
		}
		oldest = o.find(f.seqs[0])
	} else if len(o.items) > 0 {
		oldest = &o.items[0] // pack leaves no gap at the front
	}
	s := queue.Stats{Entries: f.entries, Reservations: f.claims}
	if oldest != nil {
		s.Oldest = time.Unix(0, oldest.at)
	}
	return s
}

// waiting lists the products with unacknowledged entries.
func (o *outbox) waiting() []uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.products))
}
