package queuetest

import (
	"context"
	"crypto/rand"
	"iter"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// ThroughLedger publishes by reserving. With the first entry of a product it installs and opens
// the product with plenty of stock. running returns the present ledger, so that publishing
// works after a restart.
func ThroughLedger(running func() ledger.Ledger) func(t *testing.T, entry seckill.Entry) {
	p := &publisher{running: running, installed: make(map[ledger.Shard]bool)}
	return p.publish
}

type publisher struct {
	running   func() ledger.Ledger
	mu        sync.Mutex
	installed map[ledger.Shard]bool
}

const plenty = 1 << 30

func (p *publisher) publish(t *testing.T, entry seckill.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	shard := ledger.Shard{Product: entry.ProductID, Group: entry.Group, Index: entry.Shard, Epoch: entry.Epoch}
	if !p.installed[shard] {
		p.install(ctx, t, shard, entry.Limit)
	}
	var process ledger.ProcessID // a new process for each call, because a call needs no state
	_, _ = rand.Read(process[:]) // never fails
	reply, err := p.running().Do(ctx, ledger.Request{
		Shard: shard,
		Call:  ledger.Call{Process: process, Number: 1},
		Write: ledger.Reserve{
			At: entry.At, PriceCents: entry.PriceCents, Currency: entry.Currency, Name: entry.Name, Claims: entry.Claims,
		},
	})
	if err != nil || reply.Outcome != ledger.OutcomeApplied {
		t.Errorf("reserve: outcome %d, %v", reply.Outcome, err)
		return
	}
	for _, verdict := range reply.Result.Verdicts {
		if verdict.Code != ledger.VerdictAccepted {
			t.Errorf("reserve: verdict %d", verdict.Code)
		}
	}
}

func (p *publisher) install(ctx context.Context, t *testing.T, shard ledger.Shard, limit int) {
	none := iter.Seq2[ledger.Mark, error](func(func(ledger.Mark, error) bool) {})
	if _, err := p.running().Install(ctx, ledger.Allotment{Shard: shard, Available: plenty, Limit: limit}, none); err != nil {
		t.Errorf("install: %v", err)
	}
	if ok, err := p.running().Open(ctx, shard); err != nil || !ok {
		t.Errorf("open: %v, %v", ok, err)
	}
	p.installed[shard] = true
}

const (
	// callTimeout bounds one call of a port. A healthy server needs a small part of it.
	callTimeout = 10 * time.Second
	// lag is how long another system may take to show a change.
	lag      = 5 * time.Second
	pollStep = 2 * time.Millisecond
	// quiet is how long a consumer listens to be sure that it gets nothing.
	quiet = 50 * time.Millisecond
	// receiveAll exceeds the claims of any subtest.
	receiveAll = 1 << 20
)
