package ledgermem

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// Marks of an install arrive in chunks, each a row of its own, so that a
// million of them never holds the scribe for long.
const (
	installChunk   = 2048
	abandonTimeout = time.Second
	stagedStripes  = 256 // at least, when there is more than one chunk
)

var errSuperseded = errors.New("another install of the shard took over")

// Install replaces the product's figures and marks on one shard by those of a
// new epoch, closed, over a lower epoch only.
func (l *Ledger) Install(ctx context.Context, a ledger.Allotment, marks iter.Seq2[ledger.Mark, error]) (uint64, error) {
	if err := checkAllotment(a); err != nil {
		return 0, fmt.Errorf("install: %w", notExecuted(err))
	}
	in := installer{ledger: l, allotment: a}
	epoch, err := in.run(ctx, marks)
	if err != nil {
		in.abandon(ctx)
		return 0, fmt.Errorf("install: %w", err)
	}
	return epoch, nil
}

func checkAllotment(a ledger.Allotment) error {
	if a.Shard.Product == 0 || a.Shard.Index < 0 || a.Shard.Index > maxIndex || a.Shard.Epoch == 0 ||
		a.Available < 0 || a.Available > maxUnits || a.Limit < 0 || a.Limit > maxQuantity ||
		a.State < seckill.SaleOpen || a.State > seckill.SaleEnded {
		return fmt.Errorf("%w: allotment %+v", ledger.ErrBadCall, a)
	}
	return nil
}

// installer is one Install under way. staged is its staging, once a chunk has
// been written; only the scribe looks into it.
type installer struct {
	ledger    *Ledger
	allotment ledger.Allotment
	staged    *staging
}

func (in *installer) run(ctx context.Context, marks iter.Seq2[ledger.Mark, error]) (uint64, error) {
	var found uint64
	err := in.ledger.submit(ctx, func(r *round) error {
		if sh := r.state.shards[keyOf(in.allotment.Shard)]; sh != nil {
			found = sh.epoch
		}
		return nil
	})
	if err != nil || found >= in.allotment.Shard.Epoch {
		return found, err
	}
	var chunk []ledger.Mark
	if marks != nil {
		for m, err := range marks {
			if err != nil {
				return 0, fmt.Errorf("read marks: %w", err)
			}
			if err := checkMark(m); err != nil {
				return 0, notExecuted(err)
			}
			if len(chunk) == installChunk {
				if err := in.stage(ctx, chunk); err != nil {
					return 0, err
				}
				chunk = chunk[:0]
			}
			chunk = append(chunk, m)
		}
	}
	return in.finish(ctx, chunk)
}

func checkMark(m ledger.Mark) error {
	if m.OrderNo.IsZero() || m.Quantity < 0 || m.Quantity > maxQuantity || m.Quantity == 0 && m.Key == "" || len(m.Key) > maxTextBytes {
		return fmt.Errorf("%w: mark of order %s, quantity %d", ledger.ErrBadCall, m.OrderNo, m.Quantity)
	}
	return checkBuyer(m.Buyer)
}

// begin makes the staging that this install writes to.
func (in *installer) begin(seq uint64, stripes int) *staging {
	head := rowHead{key: keyOf(in.allotment.Shard), epoch: in.allotment.Shard.Epoch}
	return newStaging(stageHead{rowHead: head, id: seq, stripes: stripes}, seq)
}

func newStaging(h stageHead, first uint64) *staging {
	return &staging{stageHead: h, first: first, stripes: make([]stripe, h.stripes)}
}

// stage writes a chunk of marks that the shard does not show yet.
func (in *installer) stage(ctx context.Context, marks []ledger.Mark) error {
	return in.ledger.submit(ctx, func(r *round) error {
		seq := r.nextSeq()
		st := in.staged
		if st == nil {
			st = in.begin(seq, max(stripesFor(in.allotment.Available), stagedStripes))
			in.staged = st
			r.state.staged[st.key] = st
		}
		if r.state.staged[st.key] != st {
			return notExecuted(errSuperseded)
		}
		// A failed chunk fails the install: the staging is dropped, not undone.
		drop := func() { r.state.unstage(st) }
		if err := r.stageMarks(st, marks, seq); err != nil {
			drop()
			return notExecuted(err)
		}
		r.append(rowStage, encodeStage(seq, st.written(seq), marks))
		r.undo.add(drop)
		return nil
	})
}

// written is the head as the row has it: a row that is itself the first names
// no other.
func (st *staging) written(seq uint64) stageHead {
	h := st.stageHead
	if h.id == seq {
		h.id = 0
	}
	return h
}

func (s *state) unstage(st *staging) {
	if s.staged[st.key] == st {
		delete(s.staged, st.key)
	}
}

func (r *round) stageMarks(st *staging, marks []ledger.Mark, seq uint64) error {
	for i := range marks {
		m := &marks[i]
		raw := rawMark{no: m.OrderNo, quantity: uint32(m.Quantity), buyer: []byte(m.Buyer), key: []byte(m.Key)}
		if err := r.state.stage(st, raw, seq); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the last chunk and makes the new epoch the shard's.
func (in *installer) finish(ctx context.Context, marks []ledger.Mark) (epoch uint64, err error) {
	a := in.allotment
	err = in.ledger.submit(ctx, func(r *round) error {
		if sh := r.state.shards[keyOf(a.Shard)]; sh != nil && sh.epoch >= a.Shard.Epoch {
			if in.staged != nil {
				r.state.unstage(in.staged)
			}
			epoch = sh.epoch
			return nil
		}
		seq := r.nextSeq()
		st := in.staged
		if st == nil {
			st = in.begin(seq, stripesFor(a.Available+int64(len(marks))))
		} else if r.state.staged[st.key] != st {
			return notExecuted(errSuperseded)
		}
		if err := r.stageMarks(st, marks, seq); err != nil {
			r.state.unstage(st)
			return notExecuted(err)
		}
		r.append(rowInstall, encodeInstall(seq, st.written(seq), a, marks))
		epoch = r.state.install(&r.undo, a, st, seq).epoch
		return nil
	})
	return epoch, err
}

// abandon forgets what was staged; what it leaves in the file is dropped by
// the next compaction, or at the next start.
func (in *installer) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	// An error means that the ledger is stopping, or that the file fails: then
	// the next install of the shard, or the next start, drops the staging.
	_ = in.ledger.submit(ctx, func(r *round) error {
		if in.staged != nil {
			r.state.unstage(in.staged)
		}
		return nil
	})
}
