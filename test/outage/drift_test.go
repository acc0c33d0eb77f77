package outage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"seckill/internal/api"
	"seckill/test/engine"
	"seckill/test/market"
	"seckill/test/server"
)

// books is a site at rest whose books are tampered with: by hand, in Redis and
// in the tables.
type books struct {
	*market.Book
	t      *testing.T
	redis  *server.RedisServer
	maria  *server.MariaServer
	dsn    string
	prefix string
	front  *engine.Engine
	worker *engine.Engine
}

func openBooks(t *testing.T) *books {
	t.Helper()
	return openBooksOn(t, server.RedisOptions{})
}

func openBooksOn(t *testing.T, redis server.RedisOptions) *books {
	t.Helper()
	b := &books{t: t, redis: server.Redis(t, redis), maria: server.SharedMariaDB(t)}
	b.dsn = b.maria.NewDatabase(t)
	settings := engine.Join(engine.OnRedis(b.redis.Addr()), engine.OnStore(b.dsn), map[string]string{
		"reconcile.deadline": "3s", "worker.batch_wait": "5ms", "log.level": "warn",
	})
	b.prefix = settings["redis.prefix"]
	b.front = engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop, engine.RoleAdmin}})
	b.worker = engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleWorker}})
	b.Book = market.Shared(t, []*engine.Engine{b.front, b.worker})
	return b
}

// sale opens a sale in which something of everything has happened, and waits
// for rest.
func (b *books) sale(product uint32) {
	b.t.Helper()
	b.Open(engine.Product{ID: product, Stock: 20, PerUserLimit: 2})
	var claims []*market.Claim
	for range 4 {
		claims = append(claims, b.Buy(product, 1))
	}
	b.Pay(claims[0])
	order := b.Confirmed(claims[1])
	if _, err := b.Operator().Cancel(b.t.Context(), order.OrderNo); err != nil {
		b.t.Fatal(err)
	}
	for _, c := range claims {
		b.Confirmed(c)
	}
	market.Eventually(b.t, "the sale is at rest and balanced", func(ctx context.Context) bool {
		f, err := b.Operator().Stats(ctx, product)
		return err == nil && f.Ledger.Available == 17 && f.Ledger.Reserved == 3 && f.Queue.Depth == 0
	})
}

// key finds the one key of a kind that a product has in Redis.
func (b *books) key(kind string, product uint32) string {
	b.t.Helper()
	found := strings.Fields(b.redis.Must("KEYS", fmt.Sprintf("%s*:{b*}:%s:%d:0", b.prefix, kind, product)))
	if len(found) != 1 {
		b.t.Fatalf("keys of kind %s: %q", kind, found)
	}
	return found[0]
}

// exec changes the tables.
func (b *books) exec(statement string, product uint32) {
	b.t.Helper()
	database := b.dsn[strings.LastIndex(b.dsn, "/")+1:]
	statement = strings.NewReplacer("{db}", database, "{product}", fmt.Sprint(product)).Replace(statement)
	if err := b.maria.Exec(statement); err != nil {
		b.t.Fatal(err)
	}
}

// count reconciles until the verdict is certain.
func (b *books) count(product uint32, repair bool) api.Report {
	b.t.Helper()
	report, err := b.Operator().Reconcile(b.t.Context(), product, repair)
	if err != nil {
		b.t.Fatal(err)
	}
	return report
}

func promisesOf(r api.Report) (found []string) {
	for _, v := range r.Violations {
		if !slices.Contains(found, v.Promise) {
			found = append(found, v.Promise)
		}
	}
	slices.Sort(found)
	return found
}

func isBalanced(r api.Report) bool { return r.Balanced != nil && *r.Balanced }

// Drift by hand in Redis and in the tables is found under the number of the
// promise that it breaks, and mended where there is one safe direction.
func TestDriftByHandIsFoundAndMendedWhereThatIsSafe(t *testing.T) {
	t.Parallel()
	b := openBooks(t)
	product := uint32(0)
	for _, c := range []struct {
		name   string
		damage func(product uint32)
		want   string
		mended bool
	}{
		{"a free unit too many in Redis", func(p uint32) {
			b.worker.MustStop() // its keeper would mend it first: see below
			b.redis.Must("HINCRBY", b.key("shard", p), "available", "1")
		}, "I5", true},
		{"a sold unit too few in Redis", func(p uint32) {
			b.worker.MustStop()
			b.redis.Must("HINCRBY", b.key("shard", p), "marked", "-1")
		}, "I3 I5", true},
		{"a sold unit that is free again in Redis", func(p uint32) {
			// At once: the keeper would see a shard that does not balance.
			b.redis.Must("EVAL", `redis.call('HINCRBY', KEYS[1], 'marked', -1) redis.call('HINCRBY', KEYS[1], 'available', 1)`, "1", b.key("shard", p))
		}, "I3", true},
		{"a mark that is gone", func(p uint32) {
			mark := b.key("mark", p)
			b.redis.Must("HDEL", mark, strings.Fields(b.redis.Must("HKEYS", mark))[0])
		}, "I3", true},
		{"all marks gone", func(p uint32) { b.redis.Must("DEL", b.key("mark", p)) }, "I3", true},
		{"stock that is gone", func(p uint32) {
			b.exec(`UPDATE {db}.tb_seckill_product SET stock = stock - 1 WHERE id = {product}`, p)
		}, "I1 I6", false},
		{"a buyer's record that is gone", func(p uint32) {
			b.exec(`DELETE FROM {db}.tb_user_seckill WHERE product_id = {product} LIMIT 1`, p)
		}, "I3", true},
	} {
		product++
		t.Run(c.name, func(t *testing.T) {
			b.T, b.t = t, t
			b.sale(product)
			c.damage(product)
			found := b.count(product, false)
			if got := strings.Join(promisesOf(found), " "); isBalanced(found) || got != c.want {
				t.Errorf("found %q: %+v; want %s", got, found, c.want)
			}
			mended := b.count(product, true)
			if isBalanced(mended) != c.mended {
				t.Errorf("after the repair: %+v", mended)
			}
			if c.mended && !isBalanced(b.count(product, false)) {
				t.Error("the repair does not last")
			}
			if !b.worker.Running() {
				b.worker.Start()
			}
		})
	}
}

// A shard that does not balance is put right without anybody asking, by the
// keeper's regular look.
func TestAShardThatDoesNotBalanceIsMendedByItself(t *testing.T) {
	t.Parallel()
	b := openBooks(t)
	b.sale(1)
	shard := b.key("shard", 1)
	for _, available := range []string{"-1", "3", "1000"} {
		epoch := b.redis.Must("HGET", shard, "epoch")
		b.redis.Must("HSET", shard, "available", available)
		market.Eventually(t, "the books are balanced, under a new epoch", func(context.Context) bool {
			return b.redis.Must("HGET", shard, "epoch") != epoch && isBalanced(b.count(1, false))
		})
	}
}

// An entry that is gone from the stream is an order that nobody will write. The
// keeper finds that, and the rebuild writes it from what the instance that
// promised it remembers.
func TestAnEntryTakenOutOfTheStreamIsFoundAndItsOrderWritten(t *testing.T) {
	t.Parallel()
	b := openBooks(t)
	product := uint32(0)
	for _, c := range []struct {
		name   string
		damage func(stream string)
	}{
		{"deleted", func(stream string) {
			id := strings.Fields(b.redis.Must("XREVRANGE", stream, "+", "-", "COUNT", "1"))[0]
			b.redis.Must("XDEL", stream, id)
		}},
		{"all deleted, also what was confirmed", func(stream string) { b.redis.Must("XTRIM", stream, "MAXLEN", "0") }},
	} {
		product++
		t.Run(c.name, func(t *testing.T) {
			b.T, b.t = t, t
			b.sale(product)
			b.worker.MustStop()
			claim := b.Buy(product, 1)
			b.Lose(product)
			shard := b.key("shard", product)
			c.damage(shard[:strings.Index(shard, "}")+1] + ":out")
			b.worker.Start()
			market.Eventually(t, "the order is written after all", func(ctx context.Context) bool {
				order, err := b.Read(ctx, claim)
				return err == nil && order.Status == "pending"
			})
			market.Eventually(t, "the books are balanced", func(context.Context) bool { return isBalanced(b.count(product, false)) })
			market.Eventually(t, "the queue waits for nothing", func(ctx context.Context) bool {
				f, err := b.Operator().Stats(ctx, product)
				return err == nil && f.Queue.Depth == 0
			})
		})
	}
}
