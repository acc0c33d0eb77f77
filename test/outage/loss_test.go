package outage

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
)

// recoverWithin bounds the time from a loss to the first order of the rebuilt
// ledger: a recovery drains and re-offers for some seconds first.
const recoverWithin = 20 * time.Second

// A ledger that loses what it said is noticed by whoever calls it next. The
// product is busy until it is rebuilt, which the site does by itself; nobody
// buys twice, nothing is oversold, and what instances remember ends as an
// order or as a failure that its buyer can read.
func TestRedisForgets(t *testing.T) {
	for name, loss := range map[string]struct {
		strike func(ctx context.Context, s *site)
		want   func(s *site, ctx context.Context, before map[uint32]uint64)
	}{
		"everything": {func(_ context.Context, s *site) { s.redis.FlushAll() }, (*site).wantRebuilt},
		"the time since a backup": {func(ctx context.Context, s *site) {
			backup := s.redis.Snapshot()
			market.Pause(ctx, warmUp)
			s.redis.Kill()
			s.redis.Restore(backup)
			s.redis.Start()
		}, (*site).wantNoticed},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, plan{})
			s.during(func(ctx context.Context) {
				market.Pause(ctx, warmUp)
				before := s.epochs(ctx)
				s.Lose(s.ledgered()...)
				loss.strike(ctx, s)
				loss.want(s, ctx, before)
				market.Pause(ctx, afterwards)
			})
			s.recoversOnRequest()
			s.keepsItsPromises()
		})
	}
}

// ledgered are the site's products that have a ledger.
func (s *site) ledgered() (ids []uint32) {
	for _, id := range inLedger {
		if _, open := s.Products[id]; open {
			ids = append(ids, id)
		}
	}
	return ids
}

// epochs are the present epochs of the products that have a ledger.
func (s *site) epochs(ctx context.Context) map[uint32]uint64 {
	s.t.Helper()
	epochs := make(map[uint32]uint64)
	for _, id := range s.ledgered() {
		market.UntilAnswered(s.t, "read a product", func(context.Context) error {
			p, err := s.Operator().Product(ctx, id)
			epochs[id] = p.Epoch
			return err
		})
	}
	return epochs
}

// wantRebuilt waits until every product has a higher epoch than before.
func (s *site) wantRebuilt(ctx context.Context, before map[uint32]uint64) {
	s.t.Helper()
	s.wantEpochs(ctx, before, len(before))
}

// wantNoticed waits until a product has a higher epoch than before. Which, the
// crowd decides: of a product about which nobody heard anything in the lost
// time, nothing was lost.
func (s *site) wantNoticed(ctx context.Context, before map[uint32]uint64) {
	s.t.Helper()
	s.wantEpochs(ctx, before, 1)
}

func (s *site) wantEpochs(ctx context.Context, before map[uint32]uint64, atLeast int) {
	s.t.Helper()
	lost, rebuilt := time.Now(), 0
	market.Eventually(s.t, "the ledger is rebuilt", func(context.Context) bool {
		rebuilt = 0
		for id, epoch := range before {
			if p, err := s.Operator().Product(ctx, id); err == nil && p.Epoch > epoch {
				rebuilt++
			}
		}
		return rebuilt >= atLeast
	})
	took := time.Since(lost)
	s.t.Logf("%d ledgers were rebuilt within %v", rebuilt, took)
	if took > recoverWithin {
		s.t.Errorf("the loss was mended only after %v", took)
	}
}

// recoversOnRequest recovers a product by the command, as an operator does.
func (s *site) recoversOnRequest() {
	s.t.Helper()
	s.Rebuild(asyncOne)
	before := s.epochs(s.t.Context())[asyncOne]
	command := exec.CommandContext(s.t.Context(), engine.Binary(s.t), "recover", "--yes", "--admin", s.engines[0].AdminURL, strconv.Itoa(int(asyncOne)))
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "SECKILL_ADMIN_TOKEN=" + engine.AdminToken, "SECKILL_DATA_DIR=" + s.t.TempDir()}
	if out, err := command.CombinedOutput(); err != nil {
		s.t.Errorf("seckill recover: %v: %s", err, out)
	}
	if now := s.epochs(s.t.Context())[asyncOne]; now <= before {
		s.t.Errorf("after seckill recover the epoch is %d, was %d", now, before)
	}
}
