package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
)

var orderTests = []test{
	{"a refused adoption is a failed order without a release", failedAdoption},
	{"Fail does not change an order that has its row", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.item(t, p, "buyer")
		s.confirm(t, []store.Item{item}, store.ConfirmNew)
		other := s.item(t, p, "other")
		must(t, s.Store.Fail(t.Context(), []store.Item{item, other}, seckill.ReasonLost))
		equal(t, "status", s.order(t, item.Claim.OrderNo).Status, seckill.OrderPending)
		equal(t, "status of the other", s.order(t, other.Claim.OrderNo).Status, seckill.OrderFailed)
		s.wantUnchanged(t, p.ID, func() {
			must(t, s.Store.Fail(t.Context(), []store.Item{item, other}, seckill.ReasonLost))
		})
	}},
	{"Fail writes a row even if the key is another order's", func(t *testing.T, s *suite) {
		p := s.preheated(t, perUser(2))
		s.buy(t, p, "buyer", key("k"))
		item := s.item(t, p, "buyer", key("k"))
		must(t, s.Store.Fail(t.Context(), []store.Item{item, item}, seckill.ReasonDuplicate))
		equal(t, "reason", s.order(t, item.Claim.OrderNo).Reason, seckill.ReasonDuplicate)
	}},
	{"a failed duplicate leaves the key to the other order", func(t *testing.T, s *suite) {
		p := s.preheated(t, perUser(2))
		duplicate, order := s.item(t, p, "buyer", key("k")), s.item(t, p, "buyer", key("k"))
		must(t, s.Store.Fail(t.Context(), []store.Item{duplicate}, seckill.ReasonDuplicate))
		s.confirm(t, []store.Item{order}, store.ConfirmNew)
		equal(t, "the key's order", s.order(t, order.Claim.OrderNo).Key, "k")
	}},
	{"Fail closes the letters of its claims", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.parked(t, p, "buyer")
		must(t, s.Store.Fail(t.Context(), []store.Item{item}, seckill.ReasonLost))
		s.noLetter(t, item)
	}},
	{"Fail without claims does nothing", func(t *testing.T, s *suite) {
		must(t, s.Store.Fail(t.Context(), nil, seckill.ReasonLost))
	}},
	{"an unknown order is not_found", unknownOrder},
	{"orders are read many at once, missing ones are absent", ordersByNo},
	{"the end of the last pending order of each product is known", pendingUntil},
	{"a search lists newest first and narrows by every field", searched},
	{"a search pages by order number", paged},
	{"a story has everything, oldest first", story},
	{"the story of a parked claim has its letter", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.parked(t, p, "buyer")
		lines, err := s.Store.Story(t.Context(), item.Claim.OrderNo)
		must(t, err)
		if !slices.ContainsFunc(lines, func(l store.StoryLine) bool { return l.Kind == "letter" }) {
			t.Errorf("no letter in %+v", lines)
		}
	}},
}

func failedAdoption(t *testing.T, s *suite) {
	p := s.preheated(t, sharded(4))
	item := s.item(t, p, "buyer", ref("r"))
	p = s.openEpoch(t, p.ID)
	must(t, s.Store.Fail(t.Context(), []store.Item{item}, seckill.ReasonLost))

	order := s.order(t, item.Claim.OrderNo)
	equal(t, "status", order.Status, seckill.OrderFailed)
	equal(t, "reason", order.Reason, seckill.ReasonLost)
	equal(t, "buyer", order.Buyer, "buyer")
	equal(t, "ref", order.Ref, "r")
	equal(t, "shard", order.Shard, item.Shard)
	equal(t, "closed_at is missing", order.ClosedAt.IsZero(), false)
	equal(t, "owed", len(s.owed(t, p.ID)), 0)
	equal(t, "stock", s.product(t, p.ID).Stock, p.Stock)
	equal(t, "order.failed", s.count(t, p.ID, seckill.EventOrderFailed), 1)
	s.buy(t, p, "buyer") // the limit is still unused
}

func unknownOrder(t *testing.T, s *suite) {
	ctx, no := t.Context(), s.item(t, s.create(t), "nobody").Claim.OrderNo
	calls := map[string]func() error{
		"Order":         func() error { _, err := s.Store.Order(ctx, no); return err },
		"Cancel":        func() error { _, err := s.Store.Cancel(ctx, no, "x", operator); return err },
		"Refund":        func() error { _, err := s.Store.Refund(ctx, no, operator); return err },
		"LetterByOrder": func() error { _, err := s.Store.LetterByOrder(ctx, no); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) { wantCode(t, call(), seckill.CodeNotFound) })
	}
}

func ordersByNo(t *testing.T, s *suite) {
	p := s.preheated(t)
	a, b := s.buy(t, p, "a"), s.buy(t, p, "b")
	missing := s.item(t, p, "missing").Claim.OrderNo
	orders, err := s.Store.OrdersByNo(t.Context(), []seckill.OrderNo{b.OrderNo, missing, a.OrderNo})
	must(t, err)
	slices.SortFunc(orders, func(x, y seckill.Order) int { return strings.Compare(x.Buyer, y.Buyer) })
	equal(t, "orders", orders, []seckill.Order{a, b})
	orders, err = s.Store.OrdersByNo(t.Context(), nil)
	must(t, err)
	equal(t, "orders of none", len(orders), 0)
}

func pendingUntil(t *testing.T, s *suite) {
	p, paid, empty := s.preheated(t, perUser(3)), s.preheated(t), s.preheated(t)
	first := s.buy(t, p, "a")
	s.advance(t, tick)
	last := s.buy(t, p, "b")
	s.pay(t, s.buy(t, paid, "a"))
	ids := []uint32{empty.ID, paid.ID, p.ID}
	check := func(want map[uint32]time.Time) {
		t.Helper()
		got, err := s.Store.PendingUntil(t.Context(), ids)
		must(t, err)
		equal(t, "until", got, want)
	}
	check(map[uint32]time.Time{p.ID: last.PayBefore})
	s.pay(t, last)
	check(map[uint32]time.Time{p.ID: first.PayBefore})
	s.cancel(t, first)
	check(map[uint32]time.Time{})
	got, err := s.Store.PendingUntil(t.Context(), nil)
	must(t, err)
	equal(t, "of no product", len(got), 0)
}

func searched(t *testing.T, s *suite) {
	p, other := s.preheated(t, perUser(3)), s.preheated(t, perUser(3))
	shared := numbered("shared", int(p.ID))
	first := s.buy(t, p, shared, ref("ref-1"))
	second := s.pay(t, s.buy(t, p, shared, ref("ref-2")))
	third := s.cancel(t, s.buy(t, p, "else", ref("ref-1")))
	elsewhere := s.buy(t, other, shared)

	cases := []struct {
		name   string
		filter store.OrderFilter
		want   []seckill.Order
	}{
		{"product", store.OrderFilter{ProductID: p.ID}, []seckill.Order{third, second, first}},
		{"buyer", store.OrderFilter{Buyer: shared}, []seckill.Order{elsewhere, second, first}},
		{"buyer and product", store.OrderFilter{Buyer: shared, ProductID: other.ID}, []seckill.Order{elsewhere}},
		{"pending, which is number 0", store.OrderFilter{ProductID: p.ID, Status: ptr(seckill.OrderPending)}, []seckill.Order{first}},
		{"paid", store.OrderFilter{ProductID: p.ID, Status: ptr(seckill.OrderPaid)}, []seckill.Order{second}},
		{"ref", store.OrderFilter{ProductID: p.ID, Ref: "ref-1"}, []seckill.Order{third, first}},
		{"no such ref", store.OrderFilter{ProductID: p.ID, Ref: "REF-1"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.filter.Limit = all
			got, err := s.Store.SearchOrders(t.Context(), c.filter)
			must(t, err)
			equal(t, "order numbers", numbers(got), numbers(c.want))
			for i := range got {
				equal(t, "order", got[i], c.want[i])
			}
		})
	}
}

func numbers(orders []seckill.Order) []string {
	var nos []string
	for _, order := range orders {
		nos = append(nos, order.OrderNo.String())
	}
	return nos
}

func paged(t *testing.T, s *suite) {
	p := s.preheated(t)
	var bought []seckill.Order
	for i := range 5 {
		bought = append(bought, s.buy(t, p, numbered("buyer", i)))
		s.advance(t, tick/10)
	}
	slices.Reverse(bought)
	var got []seckill.Order
	filter := store.OrderFilter{ProductID: p.ID, Limit: 2}
	for _, want := range []int{2, 2, 1, 0} {
		page, err := s.Store.SearchOrders(t.Context(), filter)
		must(t, err)
		equal(t, "length of the page", len(page), want)
		if got = append(got, page...); len(page) > 0 {
			filter.Before = page[len(page)-1].OrderNo
		}
	}
	equal(t, "order numbers", numbers(got), numbers(bought))
}

func story(t *testing.T, s *suite) {
	p := s.preheated(t)
	order := s.buy(t, p, "buyer")
	s.advance(t, tick)
	s.pay(t, order)
	s.advance(t, tick)
	_, err := s.Store.Refund(t.Context(), order.OrderNo, operator)
	must(t, err)

	lines, err := s.Store.Story(t.Context(), order.OrderNo)
	must(t, err)
	kinds, text := map[string]int{}, ""
	for i, line := range lines {
		kinds[line.Kind]++
		text += line.What + "\n"
		if line.At.IsZero() || i > 0 && line.At.Before(lines[i-1].At) {
			t.Errorf("line %d is out of order: %+v", i, lines)
		}
	}
	equal(t, "events", kinds["event"], 4)
	equal(t, "stock", kinds["stock"], 2)
	equal(t, "operator", kinds["operator"], 1)
	if kinds["payment"] < 2 {
		t.Errorf("payments: got %d, want the payment and its refund", kinds["payment"])
	}
	for _, event := range []string{"order.confirmed", "order.paid", "order.refunded", "refund.required: operator", "refund owed", "order.refund by " + operator.Name + ": " + operator.Reason} {
		if !strings.Contains(text, event) {
			t.Errorf("no %q in the story:\n%s", event, text)
		}
	}
}
