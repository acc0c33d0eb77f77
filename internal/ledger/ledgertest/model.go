package ledgertest

import (
	"maps"
	"slices"

	"seckill"
	"seckill/internal/ledger"
)

// Model is the contract of the ledger as a simple program: one state, no concurrency, no
// durability. The property test compares adapters with it. Reference makes an adapter of it.
type Model struct {
	shards map[place]*modelShard
	outbox []seckill.Entry

	instructions map[place]seckill.Instruction // those that the store does not have yet
}

// place identifies a shard without its epoch, which is state.
type place struct {
	product uint32
	index   int
}

type modelShard struct {
	group   uint32
	figures ledger.Figures // Out, In and LastOut stay empty: see the maps
	orders  []modelOrder   // live, oldest first
	keys    map[buyerKey]seckill.OrderNo
	changes map[string]ledger.VerdictCode
	records map[ledger.ProcessID]*modelRecord
	out, in map[int]ledger.Transfer // the last, by peer
	open    map[int]bool            // by peer: the record in out is open
	stated  uint64                  // the version of the state
}

// instructed returns the instruction of a shard, also of one that was never installed.
func (m *Model) instructed(s ledger.Shard) seckill.Instruction {
	return m.instructions[place{s.Product, s.Index}]
}

type modelOrder struct {
	no       seckill.OrderNo
	buyer    string
	quantity int
	key      string
}

type buyerKey struct{ buyer, key string }

type modelRecord struct {
	last uint64
	kept []ledger.Kept
}

// NewModel returns a ledger without installs.
func NewModel() *Model {
	return &Model{shards: make(map[place]*modelShard), instructions: make(map[place]seckill.Instruction)}
}

// Outbox returns all entries ever written, oldest first.
func (m *Model) Outbox() []seckill.Entry { return m.outbox }

func (m *Model) at(s ledger.Shard) *modelShard { return m.shards[place{s.Product, s.Index}] }

// group returns the shards that share marks: those of one limit group with the same index.
func (m *Model) group(s ledger.Shard) []*modelShard {
	var all []*modelShard
	for p, shard := range m.shards {
		if shard.group == s.Group && p.index == s.Index {
			all = append(all, shard)
		}
	}
	return all
}

func (m *Model) Install(a ledger.Allotment, marks []ledger.Mark) uint64 {
	if there := m.at(a.Shard); there != nil && there.figures.Epoch >= a.Shard.Epoch {
		return there.figures.Epoch
	}
	shard := &modelShard{
		group: a.Shard.Group,
		figures: ledger.Figures{
			Epoch: a.Shard.Epoch, State: max(a.State, m.instructed(a.Shard).State), Limit: a.Limit,
			Allotted: a.Available, Available: a.Available,
		},
		keys:    make(map[buyerKey]seckill.OrderNo),
		changes: make(map[string]ledger.VerdictCode),
		records: make(map[ledger.ProcessID]*modelRecord),
		out:     make(map[int]ledger.Transfer),
		in:      make(map[int]ledger.Transfer),
		open:    make(map[int]bool),
	}
	for _, mark := range marks {
		shard.figures.Allotted += int64(mark.Quantity)
		shard.mark(modelOrder{mark.OrderNo, mark.Buyer, mark.Quantity, mark.Key})
	}
	m.shards[place{a.Shard.Product, a.Shard.Index}] = shard
	return a.Shard.Epoch
}

// marks returns the shard's live orders, and its dead ones with a key.
func (m *Model) marks(s ledger.Shard) (all []ledger.Mark) {
	shard := m.at(s)
	if shard == nil {
		return nil
	}
	live := make(map[seckill.OrderNo]bool)
	for _, o := range shard.orders {
		live[o.no] = true
		all = append(all, ledger.Mark{Buyer: o.buyer, OrderNo: o.no, Quantity: o.quantity, Key: o.key})
	}
	for k, no := range shard.keys {
		if !live[no] {
			all = append(all, ledger.Mark{Buyer: k.buyer, OrderNo: no, Key: k.key})
		}
	}
	return all
}

func (m *Model) Open(s ledger.Shard) bool {
	shard := m.at(s)
	if shard == nil || shard.figures.Epoch != s.Epoch {
		return false
	}
	shard.figures.Open = true
	return true
}

func (m *Model) Close(s ledger.Shard) {
	if shard := m.at(s); shard != nil && shard.figures.Epoch <= s.Epoch {
		shard.figures.Open = false
	}
}

func (m *Model) SetState(s ledger.Shard, state seckill.SaleState, version uint64) bool {
	shard := m.at(s)
	if shard == nil || shard.figures.Epoch != s.Epoch {
		return false
	}
	if version >= shard.stated {
		shard.figures.State, shard.stated = max(state, m.instructed(s).State), version
	}
	return true
}

// Instruct keeps an instruction if it is stronger than the kept one, and returns the one that
// is kept now.
func (m *Model) Instruct(s ledger.Shard, in seckill.Instruction) seckill.Instruction {
	if in.State > m.instructed(s).State {
		m.instructions[place{s.Product, s.Index}] = in
	}
	if shard := m.at(s); shard != nil {
		shard.figures.State = max(shard.figures.State, m.instructed(s).State)
	}
	return m.instructed(s)
}

func (m *Model) Settle(s ledger.Shard, id string) {
	if m.instructed(s).ID == id {
		delete(m.instructions, place{s.Product, s.Index})
	}
}

func (m *Model) Read(s ledger.Shard) ledger.Figures {
	shard := m.at(s)
	if shard == nil {
		return ledger.Figures{Instruction: m.instructed(s)}
	}
	figures := shard.figures
	figures.Instruction = m.instructed(s)
	for _, peer := range slices.Sorted(maps.Keys(shard.out)) {
		figures.LastOut = append(figures.LastOut, ledger.Transfer{Peer: peer, N: shard.out[peer].N})
		if shard.open[peer] {
			figures.Out = append(figures.Out, shard.out[peer])
		}
	}
	for _, peer := range slices.Sorted(maps.Keys(shard.in)) {
		figures.In = append(figures.In, shard.in[peer])
	}
	return figures
}

// Held returns the buyer's live orders of the product on the shard, newest first, without their
// entries.
func (m *Model) Held(s ledger.Shard, buyer string) []ledger.Holding {
	shard := m.at(s)
	if shard == nil {
		return nil
	}
	var held []ledger.Holding
	for _, order := range slices.Backward(shard.orders) {
		if order.buyer == buyer {
			held = append(held, ledger.Holding{OrderNo: order.no, Quantity: order.quantity, Key: order.key})
		}
	}
	return held
}

func (m *Model) Beat(b ledger.Beat) ledger.Outcome {
	shard := m.at(b.Shard)
	switch {
	case shard == nil || shard.figures.Epoch != b.Shard.Epoch:
		return ledger.OutcomeEpoch
	case !shard.figures.Open:
		return ledger.OutcomeClosed
	case b.Seen > shard.record(b.Process).last:
		shard.figures.Open = false
		return ledger.OutcomeLost
	}
	return ledger.OutcomeApplied
}

// Do decides a numbered call, rule by rule.
func (m *Model) Do(req ledger.Request) ledger.Reply {
	shard := m.at(req.Shard)
	if shard == nil {
		return ledger.Reply{Outcome: ledger.OutcomeEpoch}
	}
	reply := ledger.Reply{Epoch: shard.figures.Epoch}
	if shard.figures.Epoch != req.Shard.Epoch {
		reply.Outcome = ledger.OutcomeEpoch
		return reply
	}
	if !shard.figures.Open {
		reply.Outcome = ledger.OutcomeClosed
		return reply
	}
	record := shard.record(req.Call.Process)
	if req.Call.Seen > record.last {
		shard.figures.Open = false
		reply.Outcome = ledger.OutcomeLost
		return reply
	}
	record.kept = slices.DeleteFunc(slices.Clone(record.kept), func(k ledger.Kept) bool { return k.Number <= req.Call.Seen })
	switch {
	case req.Call.Number <= record.last:
		reply.Outcome = ledger.OutcomeStale
	case req.Write == nil:
		record.last = req.Call.Number
		reply.Outcome, reply.Kept = ledger.OutcomeApplied, record.kept
	case req.Call.Number != record.last+1:
		reply.Outcome = ledger.OutcomeGap
	default:
		result, lost := m.apply(req.Shard, shard, req.Write)
		if lost {
			shard.figures.Open = false
			reply.Outcome = ledger.OutcomeLost
			return reply
		}
		result.Free = shard.figures.Available
		record.last = req.Call.Number
		record.kept = append(record.kept, ledger.Kept{Number: req.Call.Number, Result: result})
		reply.Outcome, reply.Result = ledger.OutcomeApplied, result
	}
	return reply
}

func (s *modelShard) record(p ledger.ProcessID) *modelRecord {
	if s.records[p] == nil {
		s.records[p] = &modelRecord{}
	}
	return s.records[p]
}
