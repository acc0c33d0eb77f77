package ledgertest

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// Reference is the model as an adapter, in memory and without durability. It tests the suite,
// and packages that use the port.
type Reference struct {
	mu    sync.Mutex
	model *Model
	queue *ReferenceQueue
}

// NewReference returns an empty ledger.
func NewReference() *Reference {
	return &Reference{model: NewModel(), queue: newReferenceQueue()}
}

// Queue returns the ledger's outbox as a queue.
func (r *Reference) Queue() *ReferenceQueue { return r.queue }

func (r *Reference) Do(ctx context.Context, req ledger.Request) (ledger.Reply, error) {
	if err := ctx.Err(); err != nil {
		return ledger.Reply{}, err
	}
	if err := req.Check(); err != nil {
		return ledger.Reply{}, fmt.Errorf("%w: %w", ledger.ErrNotExecuted, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.model.outbox)
	reply := r.model.Do(req)
	for _, entry := range r.model.outbox[before:] {
		r.queue.publish(entry)
	}
	return reply, nil
}

func (r *Reference) Heartbeat(ctx context.Context, beats []ledger.Beat) ([]ledger.Outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	outcomes := make([]ledger.Outcome, len(beats))
	for i, beat := range beats {
		outcomes[i] = r.model.Beat(beat)
	}
	return outcomes, ctx.Err()
}

func (r *Reference) Install(ctx context.Context, a ledger.Allotment, marks iter.Seq2[ledger.Mark, error]) (uint64, error) {
	var all []ledger.Mark
	if marks != nil {
		for mark, err := range marks {
			if err != nil {
				return 0, err
			}
			if mark.Quantity < 0 || mark.Quantity == 0 && mark.Key == "" {
				return 0, fmt.Errorf("%w: %w: mark of order %s, quantity %d", ledger.ErrNotExecuted, ledger.ErrBadCall, mark.OrderNo, mark.Quantity)
			}
			all = append(all, mark)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.model.Install(a, all), ctx.Err()
}

func (r *Reference) Open(ctx context.Context, shard ledger.Shard) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.model.Open(shard), ctx.Err()
}

func (r *Reference) Close(ctx context.Context, shard ledger.Shard) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.model.Close(shard)
	return ctx.Err()
}

func (r *Reference) SetState(ctx context.Context, shard ledger.Shard, state seckill.SaleState, version uint64) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.model.SetState(shard, state, version), ctx.Err()
}

func (r *Reference) Instruct(ctx context.Context, shard ledger.Shard, in seckill.Instruction) (seckill.Instruction, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ledger.CheckInstruction(&in); err != nil {
		return seckill.Instruction{}, err
	}
	return r.model.Instruct(shard, in), ctx.Err()
}

func (r *Reference) Settle(ctx context.Context, shard ledger.Shard, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.model.Settle(shard, id)
	return ctx.Err()
}

func (r *Reference) Read(ctx context.Context, shard ledger.Shard) (ledger.Figures, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.model.Read(shard), ctx.Err()
}

func (r *Reference) Held(ctx context.Context, shard ledger.Shard, buyer string) ([]ledger.Holding, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.model.Held(shard, buyer)
	for i := range held {
		held[i].Entry = r.queue.carrying(shard.Product, held[i].OrderNo)
	}
	return held, ctx.Err()
}

func (r *Reference) Audit(ctx context.Context, shard ledger.Shard) (ledger.Audit, error) {
	read := func() (ledger.Figures, []ledger.Mark) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.model.Read(shard), r.model.marks(shard)
	}
	before, marks := read()
	counted := ledger.Audit{Epoch: before.Epoch, Marked: before.Marked, Live: before.Orders}
	for _, m := range marks {
		if m.Quantity > 0 {
			counted.Units, counted.Orders = counted.Units+int64(m.Quantity), counted.Orders+1
		}
	}
	after, _ := read()
	if after.Epoch != before.Epoch {
		return ledger.Audit{}, ctx.Err()
	}
	counted.Steady = after.Marked == before.Marked && after.Orders == before.Orders && after.Releases == before.Releases
	return counted, ctx.Err()
}

// Intact is always true, because the queue has all its entries.
func (r *Reference) Intact(ctx context.Context, _ ledger.Shard) (bool, error) { return true, ctx.Err() }

// Now returns this machine's time.
func (r *Reference) Now(ctx context.Context) (time.Time, error) { return time.Now(), ctx.Err() }

// Outbox returns all entries ever written, oldest first.
func (r *Reference) Outbox() []seckill.Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.model.Outbox()
}
