package ledgermem

import (
	"fmt"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// caller sends numbered calls to shards of one ledger.
type caller struct {
	*testing.T
	ledger *Ledger
	last   map[ledger.Shard]uint64
}

func (d *caller) do(shard ledger.Shard, w ledger.Write) []ledger.Verdict {
	d.Helper()
	n := d.last[shard]
	reply, err := d.ledger.Do(d.Context(), ledger.Request{
		Shard: shard, Call: ledger.Call{Process: ledger.ProcessID{1}, Number: n + 1, Seen: n}, Write: w,
	})
	if err != nil || reply.Outcome != ledger.OutcomeApplied {
		d.Fatalf("call %d: outcome %d, %v", n+1, reply.Outcome, err)
	}
	d.last[shard] = n + 1
	return reply.Result.Verdicts
}

// One buyer buys and cancels with new keys, in two products of a group.
func TestReserve_RefusedAtTheBoundOfDeadOrders(t *testing.T) {
	t.Parallel()
	l := start(t, newPath(t), Options{})
	d := &caller{T: t, ledger: l, last: map[ledger.Shard]uint64{}}
	shards := []ledger.Shard{{Product: 1, Group: 1, Epoch: 1}, {Product: 2, Group: 1, Epoch: 1}}
	for _, shard := range shards {
		install(t, l, shard, 10_000, 1)
	}
	made := 0
	claim := func(buyer string) seckill.Claim {
		made++
		return seckill.Claim{
			OrderNo: seckill.NewOrderNo(time.UnixMilli(1e12), 1, uint64(made)),
			Buyer:   buyer, Quantity: 1, Key: fmt.Sprint("key-", made),
		}
	}
	expect := func(shard ledger.Shard, w ledger.Write, code ledger.VerdictCode) ledger.Verdict {
		t.Helper()
		v := d.do(shard, w)[0]
		if v.Code != code {
			t.Fatalf("after %d claims: verdict %d, want %d", made, v.Code, code)
		}
		return v
	}
	reserve := func(claims ...seckill.Claim) ledger.Reserve { return ledger.Reserve{Claims: claims} }
	var first seckill.Claim
	for i := range ledger.MaxReturned {
		last := claim("eager")
		if i == 0 {
			first = last
		}
		shard := shards[i%2]
		expect(shard, reserve(last), ledger.VerdictAccepted)
		expect(shard, ledger.Release{Orders: []ledger.ReleaseOrder{{OrderNo: last.OrderNo, Buyer: last.Buyer}}}, ledger.VerdictReleased)
	}
	// Known keys still get their order.
	if v := expect(shards[0], reserve(first), ledger.VerdictRepeated); v.OrderNo != first.OrderNo {
		t.Errorf("the first key is that of %s, want %s", v.OrderNo, first.OrderNo)
	}
	for _, shard := range shards {
		expect(shard, reserve(claim("eager")), ledger.VerdictRefused)
	}
	// Other buyers, and adoptions, are not affected.
	expect(shards[0], reserve(claim("calm")), ledger.VerdictAccepted)
	expect(shards[0], ledger.Adopt{Claims: []seckill.Claim{claim("eager")}}, ledger.VerdictAccepted)
	// A new epoch forgets the keys of dead orders.
	for _, shard := range shards {
		shard.Epoch = 2
		install(t, l, shard, 10_000, 1)
		if shard.Product == 2 {
			expect(shard, reserve(claim("eager")), ledger.VerdictAccepted)
		}
	}
}

// The buyer has entries of several orders, one of them acknowledged.
func TestHeld_OrdersHaveTheirOwnEntries(t *testing.T) {
	t.Parallel()
	l := start(t, newPath(t), Options{})
	d := &caller{T: t, ledger: l, last: map[ledger.Shard]uint64{}}
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	install(t, l, shard, 100, 100)
	all := claims(0, 9)
	for i := range all {
		all[i].Buyer = []string{"ann", "ann", "bob"}[i%3]
	}
	entryOf := map[seckill.OrderNo]int64{}
	for i := range 3 { // three entries, each with its own price
		price := int64(100 + i)
		for _, c := range all[3*i : 3*i+3] {
			entryOf[c.OrderNo] = price
		}
		d.do(shard, ledger.Reserve{PriceCents: price, Claims: all[3*i : 3*i+3]})
	}
	c, err := l.Queue().Consumer(t.Context(), "worker")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	first, err := c.Receive(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ack(t.Context(), first, first[0].ID); err != nil {
		t.Fatal(err)
	}
	held, err := l.Held(t.Context(), shard, "ann")
	if err != nil || len(held) != 6 {
		t.Fatalf("%d orders are held, want 6 (%v)", len(held), err)
	}
	for i, h := range held {
		want := entryOf[h.OrderNo]
		switch {
		case want == 100 && h.Entry.ProductID != 0:
			t.Errorf("holding %d has an entry that was acknowledged", i)
		case want != 100 && (h.Entry.PriceCents != want || len(h.Entry.Claims) != 1 || h.Entry.Claims[0].OrderNo != h.OrderNo):
			t.Errorf("holding %d of %s has the entry %+v", i, h.OrderNo, h.Entry)
		}
	}
}
