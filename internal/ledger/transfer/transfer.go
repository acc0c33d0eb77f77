// Package transfer moves units of one product between its shards (protocol 2). A shard without
// units takes from one with many, by debit, credit and clear.
//
// This package keeps no state. An open record of the donor, in the ledger, is the state of a
// transfer. Any process may send any step, repeated or late. So a process may die at any time,
// and another one that finds the record finishes the transfer.
//
// transfer.go has the steps, survey.go reads all shards, bring.go decides what to move,
// finisher.go finishes transfers of dead processes.
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
	random func() uint64 // makes the ids of transfers
}

// New makes a mover.
func New(shards Reader, lanes ledger.Writer, random func() uint64) *Mover {
	return &Mover{shards: shards, lanes: lanes, random: random}
}

// move debits up to units from one shard, and finishes the transfer that is then open between
// the two: this one, or one that another process began. last is the number of the last debit.
// It returns the receiver's free units, unless nothing moved.
func (m *Mover) move(ctx context.Context, p *seckill.Product, from, to int, last uint64, units int64) (free int64, moved bool, err error) {
	result, err := m.lanes.Do(ctx, ledger.ShardOf(p, from), ledger.Debit{To: to, N: last + 1, ID: m.random(), Units: units})
	if err != nil {
		return 0, false, fmt.Errorf("debit shard %d: %w", from, err)
	}
	if result.Transfer.Units == 0 {
		return 0, false, nil // sold since, or moved by another process
	}
	fault.Point("transfer.after_debit")
	free, err = m.finish(ctx, p, from, result.Transfer)
	return free, err == nil, err
}

// finish completes a transfer whose record was open at the donor, now or at any time before. It
// returns the receiver's free units.
func (m *Mover) finish(ctx context.Context, p *seckill.Product, from int, record ledger.Transfer) (free int64, err error) {
	to := record.Peer
	credited, err := m.lanes.Do(ctx, ledger.ShardOf(p, to), ledger.Credit{From: from, N: record.N, ID: record.ID, Units: record.Units})
	if err != nil {
		return 0, fmt.Errorf("credit shard %d: %w", to, err)
	}
	fault.Point("transfer.after_credit")
	// Send the receiver's answer, not this process's knowledge: if the receiver is further on,
	// or the donor has forgotten the record, the donor learns it here.
	said := credited.Transfer
	if _, err := m.lanes.Do(ctx, ledger.ShardOf(p, from), ledger.Clear{To: to, N: said.N, ID: said.ID}); err != nil {
		return credited.Free, fmt.Errorf("clear shard %d: %w", from, err)
	}
	return credited.Free, nil
}
