package ledgermem

import (
	"math/bits"
	"slices"
	"strings"

	"seckill"
)

// order is one order in a buyer's mark. A dead order with a key stays with quantity 0, because
// its key is known until the epoch ends. A dead order without a key is removed.
type order struct {
	no       seckill.OrderNo
	key      string
	row      uint64 // its outbox entry; 0 if an install wrote it
	quantity uint32
}

func (o *order) live() bool { return o.quantity > 0 }

// mark is a buyer's orders of one product on one shard, oldest first. Most buyers have one
// order, which is stored inline. The slice behind more is not changed in place once another
// copy shares it, so an old copy of a mark can undo a change.
type mark struct {
	first order
	more  *[]order
}

func (m *mark) empty() bool { return m.first.no.IsZero() }

// at returns the i-th order, or nil.
func (m *mark) at(i int) *order {
	switch {
	case i == 0 && !m.empty():
		return &m.first
	case i > 0 && m.more != nil && i <= len(*m.more):
		return &(*m.more)[i-1]
	}
	return nil
}

func (m *mark) size() int {
	switch {
	case m.empty():
		return 0
	case m.more == nil:
		return 1
	}
	return 1 + len(*m.more)
}

func (m *mark) liveUnits() (units int64) {
	for i := range m.size() {
		units += int64(m.at(i).quantity)
	}
	return units
}

func (m *mark) returned() (orders int) {
	for i := range m.size() {
		if !m.at(i).live() {
			orders++
		}
	}
	return orders
}

// byKey returns the order with the key, live or dead.
func (m *mark) byKey(key string) *order {
	if key == "" {
		return nil
	}
	for i := range m.size() {
		if o := m.at(i); o.key == key {
			return o
		}
	}
	return nil
}

// find returns the index of the live order with this number, or -1.
func (m *mark) find(no seckill.OrderNo) int {
	for i := range m.size() {
		if o := m.at(i); o.no == no && o.live() {
			return i
		}
	}
	return -1
}

// with returns the mark with one more order, the newest.
func (m mark) with(o order) mark {
	if m.empty() {
		m.first = o
		return m
	}
	var grown []order
	if m.more != nil {
		grown = *m.more
	}
	grown = append(grown, o) // beyond the length of older copies
	m.more = &grown
	return m
}

// without returns the mark after the release of its i-th order. It copies the slice behind more
// first, unless own says that the caller has copied it already.
func (m mark) without(i int, own bool) mark {
	if m.more != nil && !own {
		more := slices.Clone(*m.more)
		m.more = &more
	}
	switch o := m.at(i); {
	case o.key != "":
		o.quantity = 0
		return m
	case m.more == nil:
		return mark{}
	case i == 0:
		m.first, i = (*m.more)[0], 1
	}
	if *m.more = slices.Delete(*m.more, i-1, i); len(*m.more) == 0 {
		m.more = nil
	}
	return m
}

// stripe has the marks of one part of a shard's buyers. The compactor writes marks stripe by
// stripe.
type stripe struct {
	marks   map[string]mark
	changed uint64 // last row that changed it
	saved   uint64 // its snapshot contains rows up to here
}

func (s *stripe) put(buyer string, m mark) {
	if m.empty() {
		delete(s.marks, buyer)
		return
	}
	if s.marks == nil {
		s.marks = make(map[string]mark)
	}
	s.marks[buyer] = m
}

// unitsPerStripe keeps a stripe's snapshot below about 100 KB for one-unit orders. The scribe
// encodes one in well under a millisecond.
const unitsPerStripe = 1024

// stripesFor returns the number of stripes for so many units, a power of two.
func stripesFor(units int64) int {
	n := min(max(units/unitsPerStripe, 1), maxStripes)
	return 1 << (bits.Len64(uint64(n) - 1))
}

// stripeOf returns a buyer's stripe. Files depend on the hash, so it must not change within a
// format version. It mixes more than FNV-1a, because a home shard is FNV-1a modulo the shards.
func stripeOf[T string | []byte](buyer T, stripes int) int {
	hash := uint64(14695981039346656037)
	for i := range len(buyer) {
		hash = (hash ^ uint64(buyer[i])) * 1099511628211
	}
	hash = (hash ^ hash>>29) * 0x9E3779B97F4A7C15
	return int(hash >> 40 & uint64(stripes-1))
}

// textArena copies texts into shared chunks. Marks live as long as the epoch, so one allocation
// per text would only waste memory and garbage collection. A caller's string could keep a whole
// request in memory.
type textArena struct{ chunk strings.Builder }

const arenaChunk = 8 << 10

func (a *textArena) keep(text string) string {
	if text == "" {
		return ""
	}
	if a.chunk.Len()+len(text) > a.chunk.Cap() {
		a.chunk = strings.Builder{}
		a.chunk.Grow(max(arenaChunk, len(text)))
	}
	from := a.chunk.Len()
	a.chunk.WriteString(text)
	return a.chunk.String()[from:]
}
