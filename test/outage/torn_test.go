package outage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
	"seckill/test/server"
)

// tornBound is in what time the engine has mended by itself after Redis is back:
// the count of every sale, a second cut to be sure, and the rebuild.
const tornBound = 45 * time.Second

// A power cut can leave an append-only file that ends inside a script. Redis cuts
// it behind the last whole command. At the load after that one it applies the
// commands before the cut together with the next script: half of a script. The
// engine finds that and rebuilds the product without an operator, with
// reconcile.repair off. Nobody had an answer to the script that was torn.
func TestTornScript_ProductIsMendedByItself(t *testing.T) {
	t.Parallel()
	b := openBooksOn(t, server.RedisOptions{AppendFsync: "always"})
	const elsewhere = 100 // a product with another stream
	b.Open(engine.Product{ID: elsewhere, Stock: 20})
	product := uint32(0)
	for _, c := range []struct {
		whole int    // commands of the script before the cut
		next  uint32 // the product of the next script; 0 for the same
	}{
		{whole: 1}, {whole: 3}, {whole: 5},
		// The entry is delivered and becomes an order, and the figures do not know it.
		{whole: 4, next: elsewhere},
	} {
		product++
		b.sale(product)
		before := b.epoch(product)
		if last := b.tear(product, c.whole); last != (c.whole == 5) {
			t.Fatalf("%d whole commands: no more can be: %v", c.whole, last)
		}
		b.Confirmed(b.Buy(max(c.next, product), 1))
		b.acknowledged(max(c.next, product))
		sound := b.holds(b.redis, product)
		if epoch := b.epoch(product); epoch != before {
			t.Fatalf("%d whole commands: rebuilt at the first load already, epoch %d", c.whole, epoch)
		}
		b.redis.Kill()
		torn := b.holds(b.copied(), product)
		t.Logf("%d whole commands: %s; after the second load %s", c.whole, sound, torn)
		if torn == sound {
			t.Errorf("%d whole commands: the second load applied nothing", c.whole)
		}
		b.redis.Start()
		began := time.Now()
		market.Eventually(t, "the product is rebuilt", func(context.Context) bool { return b.epoch(product) > before })
		if took := time.Since(began); took > tornBound {
			t.Errorf("%d whole commands: it took %s", c.whole, took)
		}
		b.rests(product)
		b.Confirmed(b.Buy(product, 1))
		b.rests(product)
	}
}

// tear has power fail while Redis writes the script of a reservation to its file,
// of which so many commands are whole. It reports whether no more can be.
func (b *books) tear(product uint32, whole int) (last bool) {
	b.t.Helper()
	b.redis.HoldRewrites()
	b.worker.Kill() // it would confirm the order
	if _, err := b.front.Buyer(fmt.Sprint("torn-", product)).Buy(b.t.Context(), product, engine.Purchase{Quantity: 1}); err != nil {
		b.t.Fatal(err)
	}
	b.front.Kill()
	b.redis.Kill()
	file, err := os.ReadFile(b.redis.AppendedFile())
	if err != nil {
		b.t.Fatal(err)
	}
	begin := bytes.LastIndex(file[:bytes.LastIndex(file, []byte("XADD"))], []byte("*1\r\n$5\r\nMULTI\r\n"))
	at := begin
	for range whole + 1 { // MULTI, and the commands
		at += command(file[at:])
	}
	next := command(file[at:])
	b.redis.CutAppended(int64(at + next/2))
	b.redis.Start()
	b.front.Start()
	b.worker.Start()
	return bytes.Contains(file[at+next:at+next+command(file[at+next:])], []byte("EXEC"))
}

// command is the length of the first command of an append-only file.
func command(file []byte) int {
	var words, size int
	fmt.Sscanf(string(file[:min(len(file), 20)]), "*%d", &words)
	at := bytes.IndexByte(file, '\n') + 1
	for range words {
		fmt.Sscanf(string(file[at:min(len(file), at+20)]), "$%d", &size)
		at += bytes.IndexByte(file[at:], '\n') + 1 + size + 2
	}
	return at
}

// copied is a Redis that loads a copy of the files.
func (b *books) copied() *server.RedisServer {
	b.t.Helper()
	dir := b.t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "appendonlydir"), os.DirFS(filepath.Join(b.redis.Dir(), "appendonlydir"))); err != nil {
		b.t.Fatal(err)
	}
	return server.Redis(b.t, server.RedisOptions{AppendFsync: "always", Dir: dir})
}

// holds is what a reservation writes, as a Redis has it for a product.
func (b *books) holds(in *server.RedisServer, product uint32) string {
	b.t.Helper()
	key := strings.Fields(in.Must("KEYS", fmt.Sprintf("%s*:{b*}:shard:%d:0", b.prefix, product)))[0]
	tag := key[:strings.Index(key, "}")+1]
	return fmt.Sprintf("marked %s, marks %s, open %s, youngest entry %s",
		in.Must("HGET", key, "marked"), in.Must("HLEN", fmt.Sprintf("%s:mark:%d:0", tag, product)),
		in.Must("ZCARD", fmt.Sprintf("%s:open:%d", tag, product)), strings.Fields(in.Must("XREVRANGE", tag+":out", "+", "-", "COUNT", "1"))[0])
}

// acknowledged waits until the worker has acknowledged every entry of a product,
// which comes after the store has the orders.
func (b *books) acknowledged(product uint32) {
	b.t.Helper()
	market.Eventually(b.t, "no entry of the product waits", func(ctx context.Context) bool {
		f, err := b.Operator().Stats(ctx, product)
		return err == nil && f.Queue.Depth == 0
	})
}

// rests waits until nothing of the product waits, and its books are balanced.
func (b *books) rests(product uint32) {
	b.t.Helper()
	b.acknowledged(product)
	market.Eventually(b.t, "its books are balanced", func(context.Context) bool { return isBalanced(b.count(product, false)) })
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
