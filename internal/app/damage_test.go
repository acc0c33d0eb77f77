package app

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"seckill/internal/alert"
	"seckill/internal/ledger"
	"seckill/test/rig"
	"seckill/test/server"
)

// raised is what an alerter counts and logs.
type raised struct {
	mu    sync.Mutex
	kinds []alert.Kind
	log   strings.Builder
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

func (r *raised) count(kind alert.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds = append(r.kinds, kind)
}

func (r *raised) all() []alert.Kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.kinds)
}

// A backup of the store that is older than a loss of Redis: by its streams,
// which began anew, nobody could tell who is older.
func TestAStoreBehindItsLedgersEpochIsAlerted(t *testing.T) {
	t.Parallel()
	var told raised
	a := started(t, onRedis(t, server.Redis(t, server.RedisOptions{})), func(p *parts) {
		p.alerter = alert.New("", slog.New(slog.NewTextHandler(&told, nil)), told.count)
	})
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
	if got := told.all(); !slices.Equal(got, []alert.Kind{alert.StoreOlder}) || !strings.Contains(told.text(), "the ledger is of epoch 3, the store has opened 1;") {
		t.Errorf("raised %v: %s", got, told.text())
	}
}

// Whichever key of a product somebody writes over: the product is rebuilt, and
// an operator hears of it, by its cause. A ledger that is only lost is rebuilt
// as well, and is no damage.
func TestAKeyThatWasOverwrittenIsAlerted(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{})
	var told raised
	a := started(t, onRedis(t, redis), func(p *parts) {
		p.alerter = alert.New("", slog.New(slog.NewTextHandler(&told, nil)), told.count)
	})
	a.parts.opens(t)
	product := a.parts.catalog.Find(1)
	calls := func() (n int) {
		for _, kind := range told.all() {
			switch kind {
			case alert.MustRecover:
				n++
			case alert.RebuiltAgain: // by this test
			default:
				t.Errorf("%s was raised", kind)
			}
		}
		return n
	}
	rebuilt := func(what string, harm func()) (alerts int) {
		t.Helper()
		epoch, before := product.Terms().Epoch, calls()
		harm()
		rig.Until(t, what+" is rebuilt", func() bool {
			p, err := a.parts.store.Product(t.Context(), 1)
			rig.Must(t, err)
			live, err := a.parts.ledger.Read(t.Context(), product.Shard(0))
			now := product.Terms().Epoch
			return err == nil && now > epoch && p.Epoch == now && live.Epoch == now && live.Open && !p.Rebuilding
		})
		return calls() - before
	}
	shard := strings.Fields(redis.Must("KEYS", "seckill:{b*}:shard:1:0"))[0]
	for _, kind := range []string{"shard", "lane", "group", "mark"} {
		key := strings.Replace(shard, ":shard:", ":"+kind+":", 1)
		if rebuilt(kind, func() { redis.Must("SET", key, "something else") }) == 0 {
			t.Errorf("nobody heard that %s was overwritten", kind)
		}
	}
	const cause = "the ledger is damaged: something else is in the place of shard 0; the product is being recovered by itself"
	if text := told.text(); !strings.Contains(text, cause) {
		t.Errorf("the log says %s", text)
	}
	if n := rebuilt("what is lost", redis.FlushAll); n != 0 {
		t.Errorf("%d alerts call a lost ledger damaged: %s", n, told.text())
	}
}
