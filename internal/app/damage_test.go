package app

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"seckill/internal/alert"
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
	rebuilt := func(what string, harm func()) (alerts int) {
		t.Helper()
		epoch, before := product.Terms().Epoch, len(told.all())
		harm()
		rig.Until(t, what+" is rebuilt", func() bool {
			p, err := a.parts.store.Product(t.Context(), 1)
			rig.Must(t, err)
			live, err := a.parts.ledger.Read(t.Context(), product.Shard(0))
			now := product.Terms().Epoch
			return err == nil && now > epoch && p.Epoch == now && live.Epoch == now && live.Open && !p.Rebuilding
		})
		return len(told.all()) - before
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
	for _, kind := range told.all() {
		if kind != alert.MustRecover {
			t.Errorf("%s was raised", kind)
		}
	}
}
