package ledgermem

import (
	"seckill"
	"seckill/internal/ledger"
)

// change applies a stock change once per id and epoch. A refusal is recorded too, because a
// repeated call must be refused again.
func (r *round) change(sh *shard, w ledger.StockChange) ledger.VerdictCode {
	if first, ok := sh.changes[w.ID]; ok {
		return first
	}
	refused := sh.available+w.Delta < 0
	seq := r.nextSeq()
	r.append(rowChange, encodeChange(seq, sh.head(), w.ID, w.Delta, refused))
	return sh.change(&r.undo, w.ID, w.Delta, refused, seq)
}

// debit opens a record towards a peer. If no unit is free, it opens none: the reader of the
// reply could not tell a record without units from no record.
func (r *round) debit(sh *shard, w ledger.Debit) ledger.Transfer {
	rec := sh.out[w.To]
	units := min(w.Units, sh.available)
	if rec.Units == 0 && w.N == rec.N+1 && units > 0 {
		seq := r.nextSeq()
		t := ledger.Transfer{Peer: w.To, N: w.N, ID: w.ID, Units: units}
		r.append(rowDebit, encodeTransfer(seq, rowDebit, sh.head(), t))
		sh.debit(&r.undo, t, seq)
	}
	return sh.donor(w.To)
}

// donor returns the open record towards a peer, or the last number if none is open.
func (sh *shard) donor(peer int) ledger.Transfer {
	rec := sh.out[peer]
	if rec.Units == 0 {
		return ledger.Transfer{Peer: peer, N: rec.N}
	}
	return rec
}

func (r *round) credit(sh *shard, w ledger.Credit) (ledger.Transfer, ledger.Outcome) {
	last := sh.in[w.From]
	switch {
	case w.N > last.N+1:
		r.setSwitch(sh, false, sh.state)
		return ledger.Transfer{}, ledger.OutcomeLost
	case w.N == last.N+1:
		seq := r.nextSeq()
		t := ledger.Transfer{Peer: w.From, N: w.N, ID: w.ID, Units: w.Units}
		r.append(rowCredit, encodeTransfer(seq, rowCredit, sh.head(), t))
		sh.credit(&r.undo, t, seq)
		last = sh.in[w.From]
	}
	return ledger.Transfer{Peer: w.From, N: last.N, ID: last.ID}, ledger.OutcomeApplied
}

func (r *round) clear(sh *shard, w ledger.Clear) (ledger.Transfer, ledger.Outcome) {
	rec := sh.out[w.To]
	switch {
	case w.N > rec.N || w.N == rec.N && w.ID != rec.ID:
		r.setSwitch(sh, false, sh.state)
		return ledger.Transfer{}, ledger.OutcomeLost
	case w.N == rec.N && rec.Units > 0:
		seq := r.nextSeq()
		t := ledger.Transfer{Peer: w.To, N: w.N, ID: w.ID}
		r.append(rowClear, encodeTransfer(seq, rowClear, sh.head(), t))
		sh.clear(&r.undo, w.To, seq)
	}
	return sh.donor(w.To), ledger.OutcomeApplied
}

// setSwitch opens or closes the shard, or sets the state of its sale.
func (r *round) setSwitch(sh *shard, open bool, state seckill.SaleState) {
	if sh.open == open && sh.state == state {
		return
	}
	r.undo.figures(sh)
	seq := r.nextSeq()
	r.append(rowSwitch, encodeSwitch(seq, sh.head(), open, state))
	sh.open, sh.state, sh.changed = open, state, seq
}

// setState sets a state, unless one of a later version was set.
func (r *round) setState(sh *shard, state seckill.SaleState, version uint64) {
	if version < sh.stateVersion {
		return
	}
	before := sh.stateVersion
	r.undo.add(func() { sh.stateVersion = before })
	sh.stateVersion = version
	r.setSwitch(sh, sh.open, max(state, sh.instruction.State))
}

// instruct stores an instruction, unless the shard keeps one that is at least as strong, and
// returns the one that it keeps now.
func (r *round) instruct(want ledger.Shard, in seckill.Instruction) seckill.Instruction {
	if sh := r.state.shards[keyOf(want)]; sh != nil && in.State <= sh.instruction.State {
		return sh.instruction
	}
	r.keep(r.state.shardAt(&r.undo, keyOf(want), want.Group), in)
	return in
}

// settle removes the instruction that has this id.
func (r *round) settle(want ledger.Shard, id string) {
	if sh := r.state.shards[keyOf(want)]; sh != nil && id != "" && sh.instruction.ID == id {
		r.keep(sh, seckill.Instruction{})
	}
}

// keep stores the instruction that a shard keeps from now on.
func (r *round) keep(sh *shard, in seckill.Instruction) {
	seq := r.nextSeq()
	r.append(rowInstruct, encodeInstruct(seq, sh.head(), sh.group.id, in))
	r.state.instruct(&r.undo, sh, in, seq)
}
