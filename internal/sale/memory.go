package sale

import (
	"errors"
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"

	"seckill/internal/ledger"
)

const memoryStripes = 64

// Memory knows which buyers the ledger may remember, by limit group: everyone
// who was accepted, found at the limit, or left without a certain answer. It
// is asked for every claim that meets a raised sold-out flag, so it answers
// from memory, with a lock per stripe.
//
// A buyer costs 8 bytes and the map's overhead, until the group's last sale
// ends. Buyers are kept as 64-bit hashes: two that collide cost the second one
// a needless ledger call.
type Memory struct {
	seed   maphash.Seed
	groups atomic.Pointer[map[uint32]*groupMemory] // replaced whole
	mu     sync.Mutex                              // of who replaces it
}

type groupMemory struct{ stripes [memoryStripes]memoryStripe }

type memoryStripe struct {
	mu     sync.RWMutex
	buyers map[uint64]struct{}
}

// NewMemory makes an empty memory.
func NewMemory() *Memory {
	m := &Memory{seed: maphash.MakeSeed()}
	m.groups.Store(&map[uint32]*groupMemory{})
	return m
}

// Note remembers a buyer of a limit group.
func (m *Memory) Note(group uint32, buyer string) {
	hash := maphash.String(m.seed, buyer)
	s := &m.group(group).stripes[hash%memoryStripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buyers == nil {
		s.buyers = make(map[uint64]struct{})
	}
	s.buyers[hash] = struct{}{}
}

// MayHold reports whether the ledger may remember the buyer.
func (m *Memory) MayHold(shard ledger.Shard, buyer []byte) bool {
	group := (*m.groups.Load())[shard.Group]
	if group == nil {
		return false
	}
	hash := maphash.Bytes(m.seed, buyer)
	s := &group.stripes[hash%memoryStripes]
	s.mu.RLock()
	_, noted := s.buyers[hash]
	s.mu.RUnlock()
	return noted
}

// Forget drops a group: nobody asks about sales that are over.
func (m *Memory) Forget(group uint32) {
	m.replace(func(groups map[uint32]*groupMemory) { delete(groups, group) })
}

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
