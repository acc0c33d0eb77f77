package outage

import (
	"context"
	"fmt"
	"testing"
	"time"

	"seckill/test/market"
)

// tornBound is in what time the engine has rebuilt by itself after Redis is back:
// the count of every sale, a second cut to be sure, and the rebuild.
const tornBound = 45 * time.Second

// A power cut can leave an append-only file that ends inside a script. Redis cuts
// it behind the last whole command, and applies those before it with the next EXEC
// at the load after that one: half of a script. The engine finds either half, and
// rebuilds the product without an operator, with reconcile.repair off.
func TestTornScript_ProductIsRebuiltByItself(t *testing.T) {
	for name, tear := range map[string]func(b *books, product uint32){
		"an entry is waited for that is in no stream": func(b *books, product uint32) {
			b.redis.Must("ZADD", b.damaged("open", product), "1000", "1000-7")
		},
		"a mark is there, and its figures are not": func(b *books, product uint32) {
			b.redis.Must("EVAL", `redis.call('HINCRBY', KEYS[1], 'marked', -1) redis.call('HINCRBY', KEYS[1], 'orders', -1)
				redis.call('HINCRBY', KEYS[1], 'available', 1)`, "1", b.key("shard", product))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBooks(t)
			const product = 1
			b.sale(product)
			before := b.epoch(product)
			tear(b, product)
			b.redis.Kill()
			b.redis.Start()
			began := time.Now()
			market.Eventually(t, "the product is rebuilt", func(context.Context) bool { return b.epoch(product) > before })
			if took := time.Since(began); took > tornBound {
				t.Errorf("it took %s", took)
			}
			b.mended(product, 3)
			b.Confirmed(b.Buy(product, 1))
			b.mended(product, 4)
		})
	}
}

// epoch is that of a product's ledger as the store has it; 0 if it cannot be read.
func (b *books) epoch(product uint32) uint64 {
	b.t.Helper()
	f, err := b.Operator().Stats(b.t.Context(), product)
	if err != nil {
		b.t.Log(fmt.Errorf("epoch: %w", err))
		return 0
	}
	return f.Epoch
}
