package loadtest

import (
	"testing"

	"seckill"
	"seckill/internal/api"
)

func TestMoney_CountsOnceAndLateIsRefunded(t *testing.T) {
	payment, refund := api.Payment{Type: "payment"}, api.Payment{Type: "refund"}
	for _, c := range []struct {
		name  string
		moved []api.Payment
		late  bool
		want  bool
	}{
		{"paid", []api.Payment{payment}, false, true},
		{"not recorded", nil, false, false},
		{"twice", []api.Payment{payment, payment}, false, false},
		{"paid and refunded", []api.Payment{payment, refund}, false, false},
		{"late and refunded", []api.Payment{payment, refund}, true, true},
		{"late and kept", []api.Payment{payment}, true, false},
		{"late and refunded twice", []api.Payment{payment, refund, refund}, true, false},
	} {
		if got := countedOnce(c.moved, c.late); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestMoves_PaidOrderInOtherStateIsLostUnlessExpired(t *testing.T) {
	for _, c := range []struct {
		did            *move
		status, reason string
		want           Money
	}{
		{&move{done: 2}, "paid", "", Money{Moves: Moves{Asked: 1, Kept: 1}}},
		{&move{done: 2}, "cancelled", seckill.ReasonExpired, Money{Moves: Moves{Asked: 1}, Late: 1}},
		{&move{done: 2}, "cancelled", seckill.ReasonByBuyer, Money{Moves: Moves{Asked: 1, Lost: 1}}},
		{&move{done: 1}, "pending", "", Money{Moves: Moves{Asked: 1, Lost: 1}}},
		{&move{}, "pending", "", Money{Moves: Moves{Asked: 1, Unknown: 1}}},
	} {
		var got Money
		got.notePayment(c.did, api.Order{Status: c.status, Reason: c.reason})
		if got.Example = ""; got != c.want {
			t.Errorf("%d answers, %s %s: %+v", c.did.done, c.status, c.reason, got)
		}
	}
	var nobody Money
	if nobody.notePayment(nil, api.Order{Status: "cancelled", Reason: seckill.ReasonExpired}); nobody != (Money{}) {
		t.Errorf("who did not pay counts: %+v", nobody)
	}
}

func TestOrders_UnreadableOrderIsLost(t *testing.T) {
	no := seckill.NewOrderNo(noon, 7, 1).String()
	good := api.Order{OrderNo: no, ProductID: 7, Quantity: 1, Status: "pending"}
	for _, c := range []struct {
		name   string
		change func(*api.Order)
		err    error
		lost   int64
		unread int64
	}{
		{"as promised", func(*api.Order) {}, nil, 0, 0},
		{"failed with a reason", func(o *api.Order) { o.Status, o.Reason = "failed", "limit" }, nil, 0, 0},
		{"failed without one", func(o *api.Order) { o.Status = "failed" }, nil, 1, 0},
		{"queued for ever", func(o *api.Order) { o.Status = "queued" }, nil, 1, 0},
		{"another quantity", func(o *api.Order) { o.Quantity = 2 }, nil, 1, 0},
		{"another product", func(o *api.Order) { o.ProductID = 8 }, nil, 1, 0},
		{"unknown", func(*api.Order) {}, &refusal{status: 404, code: seckill.CodeNotFound}, 1, 0},
		{"busy", func(*api.Order) {}, &refusal{status: 503, code: seckill.CodeBusy}, 0, 1},
	} {
		in := &inspector{crowd: &crowd{opt: &Options{Quantity: 1}, product: 7}}
		order, seen := good, Orders{ByStatus: map[string]int64{}}
		c.change(&order)
		in.noteOrder(&seen, &buyer{orderNo: no}, &order, c.err)
		if seen.Lost != c.lost || seen.Unread != c.unread || seen.Read+seen.Unread != 1 {
			t.Errorf("%s: %+v", c.name, seen)
		}
	}
}

func TestHoldings_ShowLimitAndUnansweredOrders(t *testing.T) {
	no := seckill.NewOrderNo(noon, 7, 1).String()
	order := func(no, status string) api.Order {
		return api.Order{OrderNo: no, ProductID: 7, Quantity: 2, Status: status}
	}
	for _, c := range []struct {
		name                       string
		who                        buyer
		list                       []api.Order
		over, missing, found, most int64
	}{
		{"a winner", buyer{fate: fateWon, orderNo: no}, []api.Order{order(no, "pending")}, 0, 0, 0, 2},
		{"a winner with two", buyer{fate: fateWon, orderNo: no}, []api.Order{order(no, "paid"), order("SKx", "queued")}, 1, 0, 0, 4},
		{"a second one that is dead", buyer{fate: fateWon, orderNo: no}, []api.Order{order(no, "paid"), order("SKx", "cancelled")}, 0, 0, 0, 2},
		{"a winner with none", buyer{fate: fateWon, orderNo: no}, nil, 0, 1, 0, 0},
		{"who never heard", buyer{fate: fateUnknown}, []api.Order{order(no, "pending")}, 0, 0, 2, 2},
		{"who got nothing", buyer{fate: fateUnknown}, nil, 0, 0, 0, 0},
	} {
		in := &inspector{crowd: &crowd{opt: &Options{Run: "x"}, buyers: []buyer{c.who}, product: 7}, limit: 3}
		var e Evidence
		in.noteHolding(&e, 0, c.list)
		if h := e.Holdings; h.Over != c.over || h.Missing != c.missing || e.FoundUnits != c.found || h.MostUnits != c.most {
			t.Errorf("%s: %+v, found %d", c.name, h, e.FoundUnits)
		}
	}
}
