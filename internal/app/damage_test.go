package app

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"seckill/internal/alert"
	"seckill/internal/ledger"
	"seckill/test/rig"
	"seckill/test/server"
)

// raised is the log of an instance.
type raised struct {
	mu  sync.Mutex
	log strings.Builder
}

func (r *raised) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(line)
}

func (r *raised) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// A backup of the store that is older than a loss of Redis: by its streams,
// which began anew, nobody could tell who is older.
func TestAStoreBehindItsLedgersEpochIsAlerted(t *testing.T) {
	t.Parallel()
	var told raised
	a, err := New(onRedis(t, server.Redis(t, server.RedisOptions{})), Options{Logger: slog.New(slog.NewTextHandler(&told, nil))})
	rig.Must(t, err)
	runs(t, a)
	a.parts.opens(t)
	p, err := a.parts.store.Product(t.Context(), 1)
	rig.Must(t, err)
	p.Epoch += 2 // as a newer store had it
	rig.Until(t, "the ledger is above its store", func() bool {
		epoch, err := a.parts.ledger.Install(t.Context(), ledger.Allotment{
			Shard: ledger.ShardOf(&p, 0), Available: 5, Limit: p.PerUserLimit, State: p.State,
		}, nil)
		return err == nil && epoch == p.Epoch
	})
	rig.Until(t, "the store goes above it", func() bool { return a.parts.catalog.Find(1).Terms().Epoch == p.Epoch+1 })
	text := told.text()
	if strings.Count(text, `msg="alert: `) != 1 || !strings.Contains(text, alert.StoreOlder.Text+": the ledger is of epoch 3, the store has opened 1;") {
		t.Errorf("raised %s", text)
	}
}
