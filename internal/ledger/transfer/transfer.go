// Package transfer moves units of one product between its shards (protocol 2):
// an empty shard takes from a rich one, by debit, credit and clear.
//
// Nothing here remembers anything. What is under way stands in the ledger, as
// an open record of the donor; every step may be repeated, come late or be done
// by anybody, so a process may die at any instant, and whoever meets its record
// finishes it.
package transfer

import (
	"context"
	"fmt"

	"seckill"
	"seckill/internal/fault"
	"seckill/internal/ledger"
)

// Reader reads one shard.
type Reader interface {
	Read(ctx context.Context, shard ledger.Shard) (ledger.Figures, error)
}

// Mover moves units.
type Mover struct {
	shards Reader
	lanes  ledger.Writer
	random func() uint64 // for the ids of transfers
}

// New makes a mover.
func New(shards Reader, lanes ledger.Writer, random func() uint64) *Mover {
	return &Mover{shards: shards, lanes: lanes, random: random}
}

// move debits up to units from one shard, after its transfer number last to the
// other, and finishes what is then open between the two: this transfer, or one
// that somebody else began. It returns what the receiver has free after it,
// unless nothing moved.
func (m *Mover) move(ctx context.Context, p *seckill.Product, from, to int, last uint64, units int64) (free int64, moved bool, err error) {
	result, err := m.lanes.Do(ctx, ledger.ShardOf(p, from), ledger.Debit{To: to, N: last + 1, ID: m.random(), Units: units})
	if err != nil {
		return 0, false, fmt.Errorf("debit shard %d: %w", from, err)
	}
	if result.Transfer.Units == 0 {
		return 0, false, nil // sold meanwhile, or moved by somebody else
	}
	fault.Point("transfer.after_debit")
	free, err = m.finish(ctx, p, from, result.Transfer)
	return free, err == nil, err
}

// finish does what is left of a transfer whose record is open: the donor said
// so, now or at any time before. It returns what the receiver has free then.
func (m *Mover) finish(ctx context.Context, p *seckill.Product, from int, record ledger.Transfer) (free int64, err error) {
	to := record.Peer
	credited, err := m.lanes.Do(ctx, ledger.ShardOf(p, to), ledger.Credit{From: from, N: record.N, ID: record.ID, Units: record.Units})
	if err != nil {
		return 0, fmt.Errorf("credit shard %d: %w", to, err)
	}
	fault.Point("transfer.after_credit")
	// What the receiver said, not what this process knows: if the receiver has
	// gone on, or the donor has forgotten, this is how the donor learns.
	said := credited.Transfer
	if _, err := m.lanes.Do(ctx, ledger.ShardOf(p, from), ledger.Clear{To: to, N: said.N, ID: said.ID}); err != nil {
		return credited.Free, fmt.Errorf("clear shard %d: %w", from, err)
	}
	return credited.Free, nil
}
