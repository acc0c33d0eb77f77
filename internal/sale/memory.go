package sale

import (
	"hash/maphash"
	"sync"

	"seckill/internal/ledger"
)

const memoryStripes = 256

// Memory knows which buyers the ledger may remember, by limit group: everyone
// who was accepted, found at the limit, or left without a certain answer. It
// is asked for every claim that meets a raised sold-out flag, so it answers
// from memory, with a lock per stripe.
//
// A buyer costs 8 bytes and the map's overhead. Buyers are kept as 64-bit
// hashes: two that collide cost the second one a needless ledger call.
type Memory struct {
	seed    maphash.Seed
	stripes [memoryStripes]memoryStripe
}

type memoryStripe struct {
	mu     sync.RWMutex
	buyers map[uint64]struct{}
}

// NewMemory makes an empty memory.
func NewMemory() *Memory {
	m := &Memory{seed: maphash.MakeSeed()}
	for i := range m.stripes {
		m.stripes[i].buyers = make(map[uint64]struct{})
	}
	return m
}

// Note remembers a buyer of a limit group.
func (m *Memory) Note(group uint32, buyer string) {
	hash := maphash.String(m.seed, buyer) ^ spread(group)
	s := &m.stripes[hash%memoryStripes]
	s.mu.Lock()
	s.buyers[hash] = struct{}{}
	s.mu.Unlock()
}

// MayHold reports whether the ledger may remember the buyer.
func (m *Memory) MayHold(shard ledger.Shard, buyer []byte) bool {
	hash := maphash.Bytes(m.seed, buyer) ^ spread(shard.Group)
	s := &m.stripes[hash%memoryStripes]
	s.mu.RLock()
	_, found := s.buyers[hash]
	s.mu.RUnlock()
	return found
}

// spread makes groups differ in all bits.
func spread(group uint32) uint64 { return uint64(group) * 0x9E3779B97F4A7C15 }
