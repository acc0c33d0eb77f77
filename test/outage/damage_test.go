package outage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"seckill"
	"seckill/test/engine"
	"seckill/test/market"
)

// something is put in the place of a key, or of a field of it.
const something = "something else"

// Whatever somebody writes over in Redis, in the middle of a sale: instances
// start, the engine finds it and recovers by itself, no promise is lost, and no
// unit is sold twice.
func TestAKeyThatIsOverwrittenIsFoundAndMended(t *testing.T) {
	b := openBooks(t)
	product := uint32(0)
	for _, c := range []struct {
		name   string
		damage func(key func(kind string) string)
	}{
		{"shard", func(key func(string) string) { b.redis.Must("SET", key("shard"), something) }},
		{"lane", func(key func(string) string) { b.redis.Must("SET", key("lane"), something) }},
		{"group", func(key func(string) string) { b.redis.Must("SET", key("group"), something) }},
		{"group gone", func(key func(string) string) { b.redis.Must("DEL", key("group")) }},
		{"mark", func(key func(string) string) { b.redis.Must("SET", key("mark"), something) }},
		{"open", func(key func(string) string) { b.redis.Must("SET", key("open"), something) }},
		{"queue", func(key func(string) string) { b.redis.Must("SET", key("queue"), something) }},
		{"out", func(key func(string) string) { b.redis.Must("SET", key("out"), something) }},
		{"out and queue", func(key func(string) string) {
			b.redis.Must("SET", key("out"), something)
			b.redis.Must("SET", key("queue"), something)
		}},
		{"a figure", func(key func(string) string) { b.redis.Must("HSET", key("shard"), "marked", something) }},
	} {
		product++
		t.Run(c.name, func(t *testing.T) {
			b.T, b.t = t, t
			b.sale(product)
			b.worker.MustStop()
			claim := b.Buy(product, 2) // it waits in the queue
			b.Lose(product)
			shard := b.key("shard", product)
			tag := shard[:strings.Index(shard, "}")+1]
			c.damage(func(kind string) string {
				switch kind {
				case "out", "queue":
					return tag + ":" + kind
				case "open":
					return fmt.Sprintf("%s:open:%d", tag, product)
				}
				return b.key(kind, product)
			})
			engine.Start(t, engine.Options{Settings: b.settings, Roles: []string{engine.RoleShop}})
			b.worker.Start()
			market.Eventually(t, "the order is written", func(ctx context.Context) bool {
				order, err := b.Read(ctx, claim)
				return err == nil && order.Status == "pending"
			})
			market.Eventually(t, "nothing is lost, and nothing sold twice", func(ctx context.Context) bool {
				f, err := b.Operator().Stats(ctx, product)
				return err == nil && f.Ledger.Available == 15 && f.Ledger.Reserved == 5 && f.Queue.Depth == 0
			})
			market.Eventually(t, "the books are balanced", func(ctx context.Context) bool {
				report, err := b.Operator().Reconcile(ctx, product, false)
				return err == nil && isBalanced(report)
			})
			again := b.NewClaim(claim.Buyer, product, engine.Purchase{Quantity: 1, Key: "another"})
			err := market.UntilAnswered(t, "buy beyond the limit", func(ctx context.Context) error { return b.Send(ctx, again) })
			if code := engine.CodeOf(err); code != seckill.CodeAlreadyPurchased {
				t.Errorf("who has two of two bought another: %v", err)
			}
			b.Confirmed(b.Buy(product, 1))
		})
	}
}
