package shard

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// witness records when claims were sent to the ledger and when returns were
// confirmed. A unit is certainly free before the claim and after the return.
type witness struct {
	ledger.Ledger
	mu   sync.Mutex
	sent map[seckill.OrderNo]time.Time
	back map[seckill.OrderNo]time.Time
}

func newWitness(l ledger.Ledger) *witness {
	return &witness{Ledger: l, sent: make(map[seckill.OrderNo]time.Time), back: make(map[seckill.OrderNo]time.Time)}
}

func (w *witness) Do(ctx context.Context, req ledger.Request) (ledger.Reply, error) {
	if reserve, ok := req.Write.(ledger.Reserve); ok {
		w.noteSent(reserve)
	}
	reply, err := w.Ledger.Do(ctx, req)
	if release, ok := req.Write.(ledger.Release); ok && err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, order := range release.Orders {
			w.back[order.OrderNo] = time.Now()
		}
	}
	return reply, err
}

// noteSent records when a claim was last sent. A refused claim is sent again,
// and only the last request can sell.
func (w *witness) noteSent(reserve ledger.Reserve) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for i := range reserve.Claims {
		w.sent[reserve.Claims[i].OrderNo] = now
	}
}

var errDead = errors.New("this instance is dead")

// line is an instance's connection to the ledger. After the instance died in
// the middle of a transfer, none of its calls reaches the ledger.
type line struct {
	*witness
	stall *stall
	steps atomic.Int64 // transfer steps until the instance dies; 0 for never
}

func (l *line) Do(ctx context.Context, req ledger.Request) (ledger.Reply, error) {
	if l.stall.dead.Load() {
		return ledger.Reply{}, errDead
	}
	reply, err := l.witness.Do(ctx, req)
	switch req.Write.(type) {
	case ledger.Debit, ledger.Credit:
		if l.steps.Load() > 0 && l.steps.Add(-1) == 0 {
			l.stall.dead.Store(true)
		}
	}
	if l.stall.dead.Load() {
		return ledger.Reply{}, errDead
	}
	return reply, err
}

func (l *line) Read(ctx context.Context, shard ledger.Shard) (ledger.Figures, error) {
	if l.stall.dead.Load() {
		return ledger.Figures{}, errDead
	}
	return l.witness.Read(ctx, shard)
}
