package ledgermem

import (
	"fmt"
	"maps"
	"slices"

	"seckill"
	"seckill/internal/ledger"
)

// figures are a shard's plain numbers. They are copied as a whole for undo.
type figures struct {
	epoch     uint64
	open      bool
	state     seckill.SaleState
	limit     int
	allotted  int64
	available int64
	marked    int64
	orders    int64
	sent      int64
	received  int64
	releases  uint64
}

// record is what a shard keeps for one process (protocol 1). It grows with the verdicts that
// the process has not received, which a lane bounds.
type record struct {
	last uint64
	kept []ledger.Kept
}

// group is the shards of one index whose products share a limit. A claim searches each of them,
// so its cost grows with the number of products. A group is meant for the variants of one
// product.
type group struct {
	id     uint32
	shards []*shard
}

// shard is one shard of one product.
type shard struct {
	key   shardKey
	group *group
	figures
	changes map[string]ledger.VerdictCode // by change id, of this epoch
	out     map[int]ledger.Transfer       // by receiver: the last one; it has units while it is open
	in      map[int]ledger.Transfer       // by donor: the last credit
	stripes []stripe
	records map[ledger.ProcessID]*record

	// instruction waits for the store. Its ID is "" if there is none.
	instruction seckill.Instruction

	// stateVersion is the version of the state. It is not stored, because no call from before a
	// restart can still arrive.
	stateVersion uint64

	changed uint64 // last row that changed the figures
	saved   uint64 // the figures' snapshot contains rows up to here
}

func (sh *shard) head() rowHead { return rowHead{key: sh.key, epoch: sh.epoch} }

func (sh *shard) stripe(buyer string) *stripe {
	return &sh.stripes[stripeOf(buyer, len(sh.stripes))]
}

func (sh *shard) mark(buyer string) mark { return sh.stripe(buyer).marks[buyer] }

type groupKey struct {
	id    uint32
	index uint32
}

// state is owned by the scribe. Its methods record the replaced values in the undo log. Loading
// passes a nil log.
type state struct {
	shards map[shardKey]*shard
	groups map[groupKey]*group
	texts  textArena
}

func newState() *state {
	return &state{
		shards: map[shardKey]*shard{},
		groups: map[groupKey]*group{},
	}
}

// undoLog undoes a round, in reverse order.
type undoLog struct{ steps []undoStep }

// undoStep restores a mark, which is the most frequent step, or calls fn.
type undoStep struct {
	fn     func()
	stripe *stripe
	buyer  string
	old    mark
}

func (u *undoLog) add(fn func()) {
	if u != nil {
		u.steps = append(u.steps, undoStep{fn: fn})
	}
}

func (u *undoLog) mark(s *stripe, buyer string, old mark) {
	if u != nil {
		u.steps = append(u.steps, undoStep{stripe: s, buyer: buyer, old: old})
	}
}

// figures records the shard's present numbers.
func (u *undoLog) figures(sh *shard) {
	if u != nil {
		old := sh.figures
		u.add(func() { sh.figures = old })
	}
}

func (u *undoLog) revert() {
	for _, step := range slices.Backward(u.steps) {
		if step.fn != nil {
			step.fn()
			continue
		}
		step.stripe.put(step.buyer, step.old)
	}
	u.clear()
}

func (u *undoLog) clear() {
	clear(u.steps)
	u.steps = u.steps[:0]
}

// addOrder adds an accepted order to the buyer's mark. The caller changes the figures.
func (s *state) addOrder(u *undoLog, st *stripe, buyer string, o order, row uint64) {
	old := st.marks[buyer]
	if old.empty() {
		buyer = s.texts.keep(buyer)
	}
	o.key = s.texts.keep(o.key)
	u.mark(st, buyer, old)
	st.put(buyer, old.with(o))
	st.changed = row
}

// dropOrder releases the live order with this number, and returns its units, or 0 if the mark
// does not have it. again means that the same row has released another order of the buyer. Then
// the mark is a copy already, and the log has the old one.
func (s *state) dropOrder(u *undoLog, st *stripe, buyer string, no seckill.OrderNo, row uint64, again bool) int64 {
	old := st.marks[buyer]
	i := old.find(no)
	if i < 0 {
		return 0
	}
	units := int64(old.at(i).quantity)
	if !again {
		u.mark(st, buyer, old)
	}
	st.put(buyer, old.without(i, again))
	st.changed = row
	return units
}

func (sh *shard) reserve(orders, units int64, row uint64) {
	sh.available -= units
	sh.marked += units
	sh.orders += orders
	sh.changed = row
}

func (sh *shard) release(orders, units int64, row uint64) {
	sh.available += units
	sh.marked -= units
	sh.orders -= orders
	sh.releases += uint64(orders)
	sh.changed = row
}

func (sh *shard) change(u *undoLog, id string, delta int64, refused bool, row uint64) ledger.VerdictCode {
	verdict := ledger.VerdictApplied
	if refused {
		verdict = ledger.VerdictRefused
	} else {
		sh.available += delta
		sh.allotted += delta
	}
	if sh.changes == nil {
		sh.changes = map[string]ledger.VerdictCode{}
	}
	sh.changes[id] = verdict
	u.add(func() { delete(sh.changes, id) })
	sh.changed = row
	return verdict
}

func (sh *shard) debit(u *undoLog, t ledger.Transfer, row uint64) {
	setPeer(u, &sh.out, t)
	sh.available -= t.Units
	sh.sent += t.Units
	sh.changed = row
}

func (sh *shard) credit(u *undoLog, t ledger.Transfer, row uint64) {
	setPeer(u, &sh.in, t)
	sh.available += t.Units
	sh.received += t.Units
	sh.changed = row
}

func (sh *shard) clear(u *undoLog, peer int, row uint64) {
	t := sh.out[peer]
	t.Units = 0
	setPeer(u, &sh.out, t)
	sh.changed = row
}

// setPeer stores a transfer in a map, which it creates if needed.
func setPeer(u *undoLog, peers *map[int]ledger.Transfer, t ledger.Transfer) {
	if *peers == nil {
		*peers = map[int]ledger.Transfer{}
	}
	own := *peers
	old, had := own[t.Peer]
	u.add(func() {
		if had {
			own[t.Peer] = old
		} else {
			delete(own, t.Peer)
		}
	})
	own[t.Peer] = t
}

// join moves the shard into the group's list.
func (s *state) join(u *undoLog, sh *shard, id uint32) {
	old := sh.group
	if old != nil && old.id == id {
		return
	}
	key := groupKey{id: id, index: sh.key.index}
	g := s.groups[key]
	if g == nil {
		g = &group{id: id}
		s.groups[key] = g
		u.add(func() { delete(s.groups, key) })
	}
	move := func(from, to *group) {
		if from != nil {
			from.shards = slices.DeleteFunc(slices.Clone(from.shards), func(x *shard) bool { return x == sh })
		}
		if to != nil {
			to.shards = append(slices.Clip(to.shards), sh)
		}
		sh.group = to
	}
	move(old, g)
	u.add(func() { move(g, old) })
}

// shardAt returns a shard of the group. It creates one without an install if needed.
func (s *state) shardAt(u *undoLog, key shardKey, group uint32) *shard {
	sh := s.shards[key]
	if sh == nil {
		sh = &shard{key: key, stripes: make([]stripe, 1)}
		s.shards[key] = sh
		u.add(func() { delete(s.shards, key) })
	}
	s.join(u, sh, group)
	return sh
}

// instruct stores an instruction, or none, and applies its state if the shard is installed.
func (s *state) instruct(u *undoLog, sh *shard, in seckill.Instruction, row uint64) {
	u.figures(sh)
	old := sh.instruction
	u.add(func() { sh.instruction = old })
	sh.instruction, sh.changed = in, row
	if sh.epoch > 0 {
		sh.state = max(sh.state, in.State)
	}
}

// install makes the allotment and the marks the shard's new epoch. An instruction stays.
func (s *state) install(u *undoLog, in *newEpoch, row uint64) *shard {
	sh := s.shardAt(u, in.key(), in.Shard.Group)
	old := *sh
	u.add(func() { *sh = old })
	sh.figures = figures{
		epoch: in.Shard.Epoch, state: max(in.State, sh.instruction.State), limit: in.Limit,
		allotted: in.Available + in.units, available: in.Available, marked: in.units, orders: in.orders,
	}
	sh.changes, sh.out, sh.in, sh.records, sh.stateVersion = nil, nil, nil, nil, 0
	sh.stripes = in.stripes
	sh.changed = row
	return sh
}

// balance checks the invariants of a healthy shard.
func (f *figures) balance() error {
	switch {
	case f.available < 0 || f.marked < 0 || f.orders < 0 || f.sent < 0 || f.received < 0:
		return fmt.Errorf("negative figures: available %d, marked %d, orders %d", f.available, f.marked, f.orders)
	case f.available+f.marked != f.allotted+f.received-f.sent:
		return fmt.Errorf("available %d + marked %d is not allotted %d + received %d - sent %d",
			f.available, f.marked, f.allotted, f.received, f.sent)
	}
	return nil
}

// read returns the shard's figures for the port.
func (sh *shard) read() ledger.Figures {
	f := ledger.Figures{
		Epoch: sh.epoch, Open: sh.open, State: sh.state, Limit: sh.limit,
		Allotted: sh.allotted, Available: sh.available, Marked: sh.marked, Orders: sh.orders,
		Sent: sh.sent, Received: sh.received, Releases: sh.releases, Instruction: sh.instruction,
	}
	for peer, t := range sh.out {
		f.LastOut = append(f.LastOut, ledger.Transfer{Peer: peer, N: t.N, ID: t.ID})
		if t.Units > 0 {
			f.Out = append(f.Out, t)
		}
	}
	f.In = slices.Collect(maps.Values(sh.in))
	byPeer := func(a, b ledger.Transfer) int { return a.Peer - b.Peer }
	slices.SortFunc(f.Out, byPeer)
	slices.SortFunc(f.In, byPeer)
	slices.SortFunc(f.LastOut, byPeer)
	return f
}
