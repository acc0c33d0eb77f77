package ledgerredis

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/test/server"
)

func TestEachBuyer_ReturnsAllRememberedBuyers(t *testing.T) {
	r, _, _ := standalone(t, server.RedisOptions{})
	want := map[string]int{}
	for index := range 2 {
		shard := r.shard
		shard.Index, shard.Epoch = index, 2
		shift := func(yield func(ledger.Mark, error) bool) {
			for m := range marksOf(1, 600) {
				m.Buyer = fmt.Sprint(index, "/", m.Buyer)
				want[m.Buyer]++
				if !yield(m, nil) {
					return
				}
			}
		}
		if _, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: shard, Available: 1, Limit: 1}, shift); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]int{}
	err := r.ledger.EachBuyer(r.ctx(), []Group{{ID: 1, Shards: 2}, {ID: 99, Shards: 1}}, func(group uint32, buyer string) {
		if group != 1 {
			t.Errorf("buyer of group %d", group)
		}
		got[buyer] = 1
	}, func(group uint32, err error) { t.Errorf("group %d: %v", group, err) })
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%d buyers, want %d: %v", len(got), len(want), err)
	}
}

// A buyer who buys and cancels with new keys is refused at the bound. Other buyers are not.
func TestReserve_RefusedAtTheBoundOfDeadOrders(t *testing.T) {
	r, _, _ := standalone(t, server.RedisOptions{})
	const chunk = 5 // the limit
	number := uint64(0)
	for i := 0; i < ledger.MaxReturned; i += chunk {
		var claims []seckill.Claim
		var orders []ledger.ReleaseOrder
		for j := range min(chunk, ledger.MaxReturned-i) {
			c := r.claim("ann", "key-"+strconv.Itoa(i+j))
			claims, orders = append(claims, c), append(orders, ledger.ReleaseOrder{OrderNo: c.OrderNo, Buyer: "ann"})
		}
		r.expect(ledger.OutcomeApplied, number+1, number, reserve(claims...))
		r.expect(ledger.OutcomeApplied, number+2, number+1, ledger.Release{Orders: orders})
		number += 2
	}
	r.wantSold(0)
	result := r.expect(ledger.OutcomeApplied, number+1, number,
		reserve(r.claim("ann", "one more"), r.claim("ann", "key-7"), r.claim("bob", ""))).Result
	var codes []ledger.VerdictCode
	for _, v := range result.Verdicts {
		codes = append(codes, v.Code)
	}
	if want := []ledger.VerdictCode{ledger.VerdictRefused, ledger.VerdictRepeated, ledger.VerdictAccepted}; !slices.Equal(codes, want) {
		t.Errorf("verdicts %v, want %v", codes, want)
	}
	result = r.expect(ledger.OutcomeApplied, number+2, number+1, ledger.Adopt(reserve(r.claim("ann", "")))).Result
	if result.Verdicts[0].Code != ledger.VerdictAccepted {
		t.Errorf("an adoption: %+v", result.Verdicts[0])
	}
}

// later returns an order of a mark from its number on, with a field of a later version at its
// end.
func later(order string) string {
	end := 20 + int(order[18])
	return order[:18] + string(rune(order[18]+5)) + order[19:end] + "later" + order[end:]
}

// Every step skips the fields that a later version has added to the orders of a mark, and keeps
// them.
func TestMark_FieldsOfLaterVersionsAreSkippedAndKept(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{})
	a, b, c := r.claim("ann", "a"), r.claim("ann", ""), r.claim("ann", "c")
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(a, b))
	marks, size := r.ledger.keys.mark(r.shard), 10+len(ledger.AppendOrder(nil, a.OrderNo, 1, "a"))
	mark := s.Must("HGET", marks, "ann")
	first, second := mark[:10]+later(mark[10:size]), mark[size:size+10]+later(mark[size+10:])
	s.Must("HSET", marks, "ann", first+second)

	repeated := r.expect(ledger.OutcomeApplied, 2, 1, reserve(r.claim("ann", "a"), c)).Result.Verdicts
	if repeated[0].OrderNo != a.OrderNo || repeated[1].Code != ledger.VerdictAccepted {
		t.Errorf("%+v", repeated)
	}
	r.wantSold(3)
	if held, err := r.ledger.Held(r.ctx(), r.shard, "ann"); err != nil || len(held) != 3 || held[2].Key != "a" || held[2].Entry.Claims[0] != a {
		t.Errorf("held: %+v, %v", held, err)
	}
	over := r.expect(ledger.OutcomeApplied, 3, 2, reserve(r.claim("ann", ""), r.claim("ann", ""), r.claim("ann", ""))).Result.Verdicts
	if len(over[2].Held) != 5 {
		t.Errorf("over the limit: %+v", over[2])
	}
	r.expect(ledger.OutcomeApplied, 4, 3, ledger.Release{Orders: []ledger.ReleaseOrder{{OrderNo: a.OrderNo, Buyer: "ann"}}})
	if got, err := r.ledger.Audit(r.ctx(), r.shard); err != nil || got.Orders != 4 || got.Units != 4 {
		t.Errorf("audit: %+v, %v", got, err)
	}

	// The marks of another product of the group are installed twice. The first ones are
	// dropped, and those of the first product are copied.
	other := r.shard
	other.Product = 2
	for range 2 {
		anns := func(yield func(ledger.Mark, error) bool) {
			yield(ledger.Mark{Buyer: "ann", OrderNo: r.claim("ann", "").OrderNo, Quantity: 1}, nil)
		}
		if _, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: other, Available: 1, Limit: 5}, anns); err != nil {
			t.Fatal(err)
		}
		other.Epoch++
	}
	if got, want := s.Must("HGET", marks, "ann"), first[:26]+"\x00\x00"+first[28:]+second; !strings.HasPrefix(got, want) {
		t.Errorf("the mark is %q\nwant it to begin with %q", got, want)
	}
	r.expect(ledger.OutcomeApplied, 5, 4, ledger.Release{Orders: []ledger.ReleaseOrder{{OrderNo: b.OrderNo, Buyer: "ann"}}})
	if got := s.Must("HGET", marks, "ann"); strings.Contains(got, second[:26]) {
		t.Errorf("the released order without a key is still in %q", got)
	}
}

// A buyer may have more orders than one step of Held reads.
func TestHeld_ReadsTheEntriesOfManyOrders(t *testing.T) {
	r, _, _ := standalone(t, server.RedisOptions{})
	r.shard.Epoch = 2
	const orders = 2*maxEntries + 3
	if _, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: r.shard, Available: orders, Limit: orders}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ledger.Open(r.ctx(), r.shard); err != nil {
		t.Fatal(err)
	}
	var claims []seckill.Claim
	for i := range uint64(orders) {
		claims = append(claims, r.claim("ann", strconv.FormatUint(i, 10)))
		r.expect(ledger.OutcomeApplied, i+1, i, reserve(claims[i]))
	}
	held, err := r.ledger.Held(r.ctx(), r.shard, "ann")
	if err != nil || len(held) != orders {
		t.Fatalf("%d orders held: %v", len(held), err)
	}
	for i, h := range held {
		if want := claims[orders-1-i]; h.OrderNo != want.OrderNo || len(h.Entry.Claims) != 1 || h.Entry.Claims[0] != want {
			t.Fatalf("holding %d is %+v, want %+v", i, h, want)
		}
	}
}

// A buyer with the largest mark and a whole batch of claims must not delay others: the mark is
// read once.
func BenchmarkReserve_BuyerWithALongMark(b *testing.B) {
	s := server.Redis(b, server.RedisOptions{})
	r := newRig(b, opened(b, Options{Place: redisclient.Place{Addrs: []string{s.Addr()}}}))
	r.shard.Epoch = 2
	marks := func(yield func(ledger.Mark, error) bool) {
		for i := range seckill.MaxPerUserLimit + ledger.MaxReturned {
			c := r.claim("ann", "a key of some length "+strconv.Itoa(i))
			if !yield(ledger.Mark{Buyer: c.Buyer, OrderNo: c.OrderNo, Quantity: 1, Key: c.Key}, nil) {
				return
			}
		}
	}
	if _, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: r.shard, Available: 10, Limit: 5}, marks); err != nil {
		b.Fatal(err)
	}
	if _, err := r.ledger.Open(r.ctx(), r.shard); err != nil {
		b.Fatal(err)
	}
	var claims []seckill.Claim
	for i := range benchBatch {
		claims = append(claims, r.claim("ann", "another "+strconv.Itoa(i)))
	}
	before := cpuOf(b, s)
	for i := range uint64(b.N) {
		r.expect(ledger.OutcomeApplied, i+1, i, reserve(claims...))
	}
	b.ReportMetric(float64((cpuOf(b, s)-before).Microseconds())/float64(b.N), "redis-µs/op")
}

// Measures the server's cost of counting marks, and the total time with pauses.
func BenchmarkAudit(b *testing.B) {
	s := server.Redis(b, server.RedisOptions{})
	r := newRig(b, opened(b, Options{Place: redisclient.Place{Addrs: []string{s.Addr()}}}))
	r.shard.Epoch = 2
	const marks = 200_000
	if _, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: r.shard, Available: 10, Limit: 5}, marksOf(1, marks)); err != nil {
		b.Fatal(err)
	}
	before := cpuOf(b, s)
	for b.Loop() {
		if got, err := r.ledger.Audit(r.ctx(), r.shard); err != nil || got.Units != marks {
			b.Fatal(got, err)
		}
	}
	b.ReportMetric(float64((cpuOf(b, s)-before).Microseconds())/float64(b.N)/marks, "redis-µs/mark")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/marks*1e6, "µs/mark")
}
