package sale

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"seckill"
	"seckill/internal/ledger"
)

const memoryStripes = 64

// Memory knows which buyers the ledger may remember, by limit group: everyone
// who was accepted, found at the limit, or left without a certain answer. It
// is asked for every claim that meets a raised sold-out flag, so it answers
// from memory, with a lock per stripe.
//
// A buyer costs 8 bytes and the map's overhead, until the group's last sale
// ends. Buyers are kept as 64-bit hashes, the same on every instance, so that
// instances can tell each other: two that collide, be it on purpose, cost the
// second one a needless ledger call.
type Memory struct {
	groups atomic.Pointer[map[uint32]*groupMemory] // replaced whole
	mu     sync.Mutex                              // of who replaces it

	others doubt // that all other instances were heard
}

type groupMemory struct {
	doubt
	stripes [memoryStripes]memoryStripe
}

// doubt counts the times at which there was reason to doubt that all buyers are
// known, and has that count of when they were last read.
type doubt struct{ raised, settled atomic.Int64 }

func (d *doubt) stands() bool { return d.raised.Load() != d.settled.Load() }

type memoryStripe struct {
	mu     sync.RWMutex
	buyers map[uint64]struct{}
}

// NewMemory makes an empty memory.
func NewMemory() *Memory {
	m := &Memory{}
	m.groups.Store(&map[uint32]*groupMemory{})
	return m
}

// Learn remembers a buyer of a limit group whom the ledger, or the store that
// sells without one, may remember.
func (m *Memory) Learn(group uint32, buyer string) { m.Hear(group, seckill.HashBuyer(buyer)) }

// Hear remembers a buyer of whom the ledger has told.
func (m *Memory) Hear(group uint32, buyer uint64) {
	s := &m.group(group).stripes[buyer%memoryStripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buyers == nil {
		s.buyers = make(map[uint64]struct{})
	}
	s.buyers[buyer] = struct{}{}
}

// Doubt says that buyers of other instances may be unknown here. Until all are
// read anew anyone may be one of them: who has an order is better told busy
// than sold_out.
func (m *Memory) Doubt() { m.others.raised.Add(1) }

// Doubts is how often there was reason to doubt; read before the buyers are,
// it is what Trust takes.
func (m *Memory) Doubts() int64 { return m.others.raised.Load() }

// Trust says that all buyers were read since that many doubts.
func (m *Memory) Trust(doubts int64) { m.others.settled.Store(doubts) }

// DoubtGroup is Doubt of one group: its buyers could not be read, or its ledger is
// rebuilt, or was, and may remember buyers of whom nobody tells.
func (m *Memory) DoubtGroup(group uint32) { m.group(group).raised.Add(1) }

// GroupDoubts is Doubts of one group, for TrustGroup.
func (m *Memory) GroupDoubts(group uint32) int64 {
	if g := (*m.groups.Load())[group]; g != nil {
		return g.raised.Load()
	}
	return 0
}

// TrustGroup says that all buyers of a group were read since that many doubts.
func (m *Memory) TrustGroup(group uint32, doubts int64) {
	if g := (*m.groups.Load())[group]; g != nil {
		g.settled.Store(doubts)
	}
}

// InDoubt reports whether the buyers of a group are to be read anew.
func (m *Memory) InDoubt(group uint32) bool {
	g := (*m.groups.Load())[group]
	return m.others.stands() || g != nil && g.stands()
}

// MayHold reports whether the ledger, or the store, may remember the buyer.
func (m *Memory) MayHold(group uint32, buyer []byte) bool {
	return m.others.stands() || m.find(group, seckill.HashBuyer(buyer))
}

// MayHoldIn is MayHold of a string.
func (m *Memory) MayHoldIn(group uint32, buyer string) bool {
	return m.others.stands() || m.find(group, seckill.HashBuyer(buyer))
}

func (m *Memory) find(id uint32, hash uint64) bool {
	group := (*m.groups.Load())[id]
	if group == nil {
		return false
	}
	s := &group.stripes[hash%memoryStripes]
	s.mu.RLock()
	_, known := s.buyers[hash]
	s.mu.RUnlock()
	return known || group.stands()
}

// Forget drops a group: nobody asks about sales that are over.
func (m *Memory) Forget(group uint32) {
	if (*m.groups.Load())[group] == nil {
		return
	}
	m.replace(func(groups map[uint32]*groupMemory) { delete(groups, group) })
}

// Groups are those of which a buyer is remembered.
func (m *Memory) Groups() []uint32 { return slices.Collect(maps.Keys(*m.groups.Load())) }

// group finds or makes a group's memory.
func (m *Memory) group(id uint32) *groupMemory {
	if g := (*m.groups.Load())[id]; g != nil {
		return g
	}
	var made *groupMemory
	m.replace(func(groups map[uint32]*groupMemory) {
		if made = groups[id]; made == nil {
			made = new(groupMemory)
			groups[id] = made
		}
	})
	return made
}

func (m *Memory) replace(change func(map[uint32]*groupMemory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := maps.Clone(*m.groups.Load())
	change(next)
	m.groups.Store(&next)
}

// Unsettled reports whether a failed call may have reached the ledger: its
// buyers may be remembered there.
func Unsettled(err error) bool { return err != nil && !errors.Is(err, ledger.ErrNotApplied) }
