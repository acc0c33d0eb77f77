package ledgermem

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"iter"
	"slices"

	"seckill/internal/ledger"
)

// Install replaces the product's figures and marks on one shard by those of a new epoch,
// closed, over a lower epoch only. The caller's goroutine makes the stripes and writes them as
// snapshots, some per round, so that other calls do not wait for a million marks. The stripes
// are not read before the row that makes their epoch the shard's. Stripes of a failed install
// are deleted by the next successful one.
func (l *Ledger) Install(ctx context.Context, a ledger.Allotment, marks iter.Seq2[ledger.Mark, error]) (uint64, error) {
	in, err := gather(a, marks)
	if err != nil {
		return 0, fmt.Errorf("install: %w", err)
	}
	select { // two installs of one epoch must not mix their stripes
	case l.installing <- struct{}{}:
	case <-ctx.Done():
		return 0, fmt.Errorf("install: %w", notExecuted(ctx.Err()))
	}
	defer func() { <-l.installing }()
	epoch, err := l.install(ctx, in)
	if err != nil {
		return 0, fmt.Errorf("install: %w", err)
	}
	return epoch, nil
}

func (l *Ledger) install(ctx context.Context, in *newEpoch) (epoch uint64, err error) {
	err = l.submit(ctx, func(r *round) error {
		if sh := r.state.shards[in.key()]; sh != nil {
			epoch = sh.epoch
		}
		return nil
	})
	if err != nil || epoch >= in.Shard.Epoch {
		return epoch, err
	}
	// Delete the stripes of a failed attempt at this epoch.
	if err := l.sweep(ctx, in.key(), in.Shard.Epoch, in.Shard.Epoch); err != nil {
		return 0, err
	}
	for from := 0; from < len(in.stripes); {
		var save chore
		if save, from = in.saveSome(from); save != nil {
			if err := l.chore(ctx, save); err != nil {
				return 0, err
			}
			wake(l.checkpointAt)
		}
	}
	err = l.submit(ctx, func(r *round) error {
		r.install(in)
		return nil
	})
	return in.Shard.Epoch, err
}

// newEpoch is the content of a shard after Install.
type newEpoch struct {
	ledger.Allotment
	stripes       []stripe
	units, orders int64 // of the marks
}

func (in *newEpoch) key() shardKey { return keyOf(in.Shard) }

// gather distributes the marks over stripes. The marks of one buyer are sorted by number, which
// means by age.
func gather(a ledger.Allotment, marks iter.Seq2[ledger.Mark, error]) (*newEpoch, error) {
	if err := a.Check(); err != nil {
		return nil, notExecuted(err)
	}
	in := &newEpoch{Allotment: a}
	var all []ledger.Mark
	if marks != nil {
		for m, err := range marks {
			if err != nil {
				return nil, fmt.Errorf("read marks: %w", err)
			}
			if err := m.Check(); err != nil {
				return nil, notExecuted(err)
			}
			all = append(all, m)
			in.units += int64(m.Quantity)
			if m.Quantity > 0 {
				in.orders++
			}
		}
	}
	slices.SortStableFunc(all, func(a, b ledger.Mark) int { return bytes.Compare(a.OrderNo[:], b.OrderNo[:]) })
	in.stripes = make([]stripe, stripesFor(a.Available+int64(len(all))))
	var texts textArena
	for i := range all {
		m := &all[i]
		if i > 0 && m.OrderNo == all[i-1].OrderNo {
			return nil, notExecuted(fmt.Errorf("%w: order %s is given twice", ledger.ErrBadCall, m.OrderNo))
		}
		st := &in.stripes[stripeOf(m.Buyer, len(in.stripes))]
		old := st.marks[m.Buyer]
		st.put(texts.keep(m.Buyer), old.with(order{no: m.OrderNo, key: texts.keep(m.Key), quantity: uint32(m.Quantity)}))
	}
	return in, nil
}

// saveSome encodes some stripes from one on. It returns the chore that writes them, if there
// are any, and the next stripe. Snapshots of an install have row number 0, because they are
// older than any row of their epoch.
func (in *newEpoch) saveSome(from int) (save chore, next int) {
	var keys []pieceKey
	var bodies [][]byte
	for size := 0; from < len(in.stripes) && size < stepBytes; from++ {
		if marks := in.stripes[from].marks; len(marks) > 0 {
			key := pieceKey{in.key(), in.Shard.Epoch, from}
			body := encodeStripe(key, 0, marks)
			keys, bodies = append(keys, key), append(bodies, body)
			size += len(body)
		}
	}
	if len(keys) == 0 {
		return nil, from
	}
	return func(ctx context.Context, conn *sql.Conn) error {
		for i := range keys {
			if err := putSnapshot(ctx, conn, keys[i], 0, bodies[i]); err != nil {
				return err
			}
		}
		return nil
	}, from
}

// install makes the new epoch the shard's.
func (r *round) install(in *newEpoch) *shard {
	seq := r.nextSeq()
	r.append(rowInstall, encodeInstall(seq, in))
	return r.state.install(&r.undo, in, seq)
}
