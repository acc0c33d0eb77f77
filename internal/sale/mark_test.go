package sale

import (
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// Of a buyer with more dead keys than are kept the newest go along; of the
// others all do, and all come oldest first, before the live orders.
func TestMarksOfANewEpochComeOldestFirstAndTheNewestAreKept(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	order := func(n int, buyer string, status seckill.OrderStatus) *seckill.Order {
		return &seckill.Order{
			OrderNo: seckill.NewOrderNo(at.Add(time.Duration(n)*time.Second), 1, uint64(n)), Buyer: buyer, Quantity: 2, Key: "k", Status: status,
		}
	}
	const many = ledger.MaxReturned + 3
	var m shardMarks
	m.add(order(0, "live", seckill.OrderPaid))
	for i := range many { // in an order that is not theirs by age
		m.add(order(1+i*7%many, "many", seckill.OrderCancelled))
	}
	m.add(order(2, "few", seckill.OrderFailed))
	m.add(order(1, "few", seckill.OrderRefunded))

	var got []ledger.Mark
	for mark, err := range m.all() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, mark)
	}
	last := len(got) - 1
	if last != ledger.MaxReturned+2 || got[last].Buyer != "live" || got[last].Quantity != 2 {
		t.Fatalf("%d marks, the last is %+v", len(got), got[last])
	}
	dead, of := got[:last], map[string]int{}
	for _, mark := range dead {
		of[mark.Buyer]++
		if mark.Quantity != 0 {
			t.Errorf("a dead order of %d units", mark.Quantity)
		}
	}
	if of["many"] != ledger.MaxReturned || of["few"] != 2 {
		t.Errorf("kept: %v", of)
	}
	if !slices.IsSortedFunc(dead, func(a, b ledger.Mark) int { return seckill.NewestFirst(b.OrderNo, a.OrderNo) }) {
		t.Error("they are not oldest first")
	}
	oldest := dead[slices.IndexFunc(dead, func(m ledger.Mark) bool { return m.Buyer == "many" })]
	if want := order(many-ledger.MaxReturned+1, "many", seckill.OrderCancelled).OrderNo; oldest.OrderNo != want {
		t.Errorf("the oldest that was kept is %s, want %s", oldest.OrderNo, want)
	}
}
