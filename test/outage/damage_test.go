package outage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"seckill/test/market"
)

// damage is something that is put in the place of keys of a product.
type damage struct {
	name string
	do   func(b *books, product uint32)
}

// damages are one of every kind of key, and some of their likes.
func damages() []damage {
	over := func(kinds ...string) damage {
		return damage{strings.Join(kinds, " and "), func(b *books, product uint32) {
			for _, kind := range kinds {
				b.redis.Must("SET", b.damaged(kind, product), "something else")
			}
		}}
	}
	return []damage{
		over("shard"), over("lane"), over("group"), over("mark"), over("open"), over("queue"), over("out"), over("out", "queue"),
		{"group gone", func(b *books, product uint32) { b.redis.Must("DEL", b.damaged("group", product)) }},
		{"a figure", func(b *books, product uint32) {
			b.redis.Must("HSET", b.damaged("shard", product), "marked", "something else")
		}},
		{"an epoch far above", func(b *books, product uint32) {
			b.redis.Must("HSET", b.damaged("shard", product), "epoch", "4000000")
		}},
	}
}

// damaged is the key of a kind that a product has, or shares with its bucket.
func (b *books) damaged(kind string, product uint32) string {
	b.t.Helper()
	shard := strings.Fields(b.redis.Must("KEYS", fmt.Sprintf("%s*:{b*}:shard:%d:0", b.prefix, product)))[0]
	tag := shard[:strings.Index(shard, "}")+1]
	switch kind {
	case "out", "queue":
		return tag + ":" + kind
	case "open":
		return fmt.Sprintf("%s:open:%d", tag, product)
	}
	return fmt.Sprintf("%s:%s:%d:0", tag, kind, product)
}

// mended waits until the product's books are in order, with so many units sold.
func (b *books) mended(product uint32, sold int64) {
	b.t.Helper()
	market.Eventually(b.t, "nothing is lost, and nothing sold twice", func(ctx context.Context) bool {
		f, err := b.Operator().Stats(ctx, product)
		return err == nil && f.Ledger.Available == 20-sold && f.Ledger.Reserved == sold && f.Queue.Depth == 0
	})
	market.Eventually(b.t, "the books are balanced", func(ctx context.Context) bool {
		report, err := b.Operator().Reconcile(ctx, product, false)
		return err == nil && isBalanced(report)
	})
}

// written waits until a promise has become an order.
func (b *books) written(claim *market.Claim) {
	b.t.Helper()
	market.Eventually(b.t, "the order is written", func(ctx context.Context) bool {
		order, err := b.Read(ctx, claim)
		return err == nil && order.Status == "pending"
	})
}

// Whatever somebody writes over in Redis, one after the other: the product sells
// on, without an operator.
func TestASaleOutlivesEveryOverwrittenKey(t *testing.T) {
	t.Parallel()
	b := openBooks(t)
	const product = 1
	b.sale(product)
	b.Lose(product)
	sold := int64(3)
	for _, d := range damages() {
		d.do(b, product)
		b.written(b.Buy(product, 1))
		sold++
		b.mended(product, sold)
	}
}
