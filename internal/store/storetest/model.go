package storetest

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seckill"
	"seckill/internal/store"
)

var modelTests = []test{
	{"any history gives the results of the model", anyHistory},
}

// modelBudget bounds the time for random histories, so a fast store tries more of them.
// Shrinking a failure is not bounded.
const modelBudget = 2 * time.Second

func anyHistory(t *testing.T, s *suite) {
	start, failing := time.Now(), false
	read := s.lastEvent(t)
	rapid.Check(t, func(rt *rapid.T) {
		if !failing && time.Since(start) > modelBudget {
			return
		}
		defer func() { failing = failing || rt.Failed() }()
		p := s.preheated(t, stock(int64(rapid.IntRange(0, 12).Draw(rt, "stock"))), perUser(rapid.IntRange(1, 3).Draw(rt, "limit")))
		m := &model{s: s, t: t, product: p, stock: p.Stock, offered: p.Stock, keys: map[[2]string]seckill.OrderNo{}}
		rt.Repeat(map[string]func(*rapid.T){
			"confirm":    m.confirm,
			"sell":       m.sell,
			"take over":  m.takeOver,
			"open store": m.openStore,
			"replay":     m.replay,
			"cancel":     m.cancel,
			"pay":        m.pay,
			"refund":     m.refund,
			"expire":     m.expire,
			"stock":      m.change,
			"epoch":      m.epoch,
			"hear":       m.settleReleases,
			"":           m.compare,
		})
		events := s.eventsAfter(rt, read)
		read = events[len(events)-1].ID
		s.wantAlternating(rt, slices.DeleteFunc(events, func(e seckill.Event) bool { return e.ProductID != p.ID }), m.stock)
	})
}

// model is the simplest possible store: a count and a list.
type model struct {
	s       *suite
	t       *testing.T
	product seckill.Product // its epoch, seller and StoreOpen are kept up to date
	changes int

	stock, offered int64
	orders         []*modelOrder
	keys           map[[2]string]seckill.OrderNo
}

type modelOrder struct {
	item    store.Item
	status  seckill.OrderStatus
	brief   bool // its time to pay is one tick
	owed    bool
	refunds int
}

func (m *model) live(buyer string) (units int) {
	for _, order := range m.orders {
		if order.item.Claim.Buyer == buyer && order.status.Live() {
			units += order.item.Claim.Quantity
		}
	}
	return units
}

// pick draws one of the orders.
func (m *model) pick(rt *rapid.T) *modelOrder {
	if len(m.orders) == 0 {
		rt.Skip("no order yet")
	}
	return m.orders[rapid.IntRange(0, len(m.orders)-1).Draw(rt, "order")]
}

func (m *model) confirm(rt *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(rt, "claims")
	expireAfter := rapid.SampledFrom([]time.Duration{tick, far}).Draw(rt, "expire after")
	var items []store.Item
	for range n {
		buyer := rapid.SampledFrom([]string{"a", "b", "c", "B"}).Draw(rt, "buyer")
		item := m.s.item(rt, m.product, buyer,
			quantity(rapid.IntRange(1, m.product.PerUserLimit).Draw(rt, "quantity")),
			key(rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(rt, "key")))
		if m.byStore() {
			item.Epoch -= uint64(rapid.IntRange(0, 1).Draw(rt, "epochs ago"))
		}
		items = append(items, item)
	}
	before, taken := len(m.orders), int64(0)
	want := make([]store.ConfirmOutcome, n)
	owns := map[[2]string]seckill.OrderNo{}
	for i, item := range items {
		claim := item.Claim
		order := &modelOrder{item: item, status: seckill.OrderPending, brief: expireAfter == tick}
		id := [2]string{claim.Buyer, claim.Key}
		_, known := m.keys[id]
		_, twice := owns[id]
		duplicate := claim.Key != "" && (known || twice)
		switch {
		case duplicate:
			order.status, order.owed, want[i] = seckill.OrderFailed, !m.byStore(), store.ConfirmDuplicate
		case m.live(claim.Buyer)+claim.Quantity > m.product.PerUserLimit:
			order.status, order.owed, want[i] = seckill.OrderFailed, !m.byStore(), store.ConfirmOverLimit
		case m.byStore() && taken+int64(claim.Quantity) > m.stock:
			order.status, want[i] = seckill.OrderFailed, store.ConfirmSoldOut
		default:
			want[i] = store.ConfirmNew
			taken += int64(claim.Quantity)
		}
		if claim.Key != "" && !duplicate {
			owns[id] = claim.OrderNo // also if it fails: the key asked for that order
		}
		m.orders = append(m.orders, order)
	}
	req := request(items...)
	req.ExpireAfter = expireAfter
	got, err := m.s.Store.Confirm(rt.Context(), req)
	if taken > m.stock {
		wantError(rt, err, store.ErrShort)
		m.orders = m.orders[:before]
		return
	}
	must(rt, err)
	equal(rt, "outcomes", got, want)
	m.stock -= taken
	for id, no := range owns {
		m.keys[id] = no
	}
}

func (m *model) replay(rt *rapid.T) {
	order := m.pick(rt)
	got, err := m.s.Store.Confirm(rt.Context(), request(order.item))
	must(rt, err)
	equal(rt, "outcomes", got, []store.ConfirmOutcome{store.ConfirmReplay})
	order.owed = order.owed || !m.byStore() && !order.status.Live()
}

// move expects that a move succeeds from one state only.
func (m *model) move(rt *rapid.T, order *modelOrder, err error, from, to seckill.OrderStatus) bool {
	if order.status != from {
		wantCode(rt, err, seckill.CodeWrongState)
		return false
	}
	must(rt, err)
	order.status = to
	if !to.Live() {
		m.stock += int64(order.item.Claim.Quantity)
		order.owed = !m.byStore()
	}
	return true
}

func (m *model) cancel(rt *rapid.T) {
	order := m.pick(rt)
	_, err := m.s.Store.Cancel(rt.Context(), order.item.Claim.OrderNo, seckill.ReasonByBuyer, operator)
	m.move(rt, order, err, seckill.OrderPending, seckill.OrderCancelled)
}

func (m *model) refund(rt *rapid.T) {
	order := m.pick(rt)
	_, err := m.s.Store.Refund(rt.Context(), order.item.Claim.OrderNo, operator)
	if m.move(rt, order, err, seckill.OrderPaid, seckill.OrderRefunded) {
		order.refunds++
	}
}

func (m *model) pay(rt *rapid.T) {
	order := m.pick(rt)
	stored := m.s.order(rt, order.item.Claim.OrderNo)
	n := notice(stored, numbered("", int(m.s.orders.Add(1))))
	if rapid.IntRange(0, 4).Draw(rt, "exact") == 0 {
		n.AmountCents++
	}
	got, err := m.s.Store.RecordPayment(rt.Context(), n)
	must(rt, err)
	if order.status == seckill.OrderPending && n.AmountCents == stored.AmountCents() {
		equal(rt, "result", got, store.PaymentPaid)
		order.status = seckill.OrderPaid
		return
	}
	equal(rt, "result", got, store.PaymentExcess)
	order.refunds++
}

func (m *model) expire(rt *rapid.T) {
	m.s.advance(rt, 2*tick)
	for {
		expired, err := m.s.Store.Expire(rt.Context(), 50)
		must(rt, err)
		if len(expired) == 0 {
			break
		}
	}
	for _, order := range m.orders {
		if order.status == seckill.OrderPending && order.brief {
			m.move(rt, order, nil, seckill.OrderPending, seckill.OrderCancelled)
		}
	}
}

func (m *model) change(rt *rapid.T) {
	delta := int64(rapid.IntRange(-3, 5).Filter(func(n int) bool { return n != 0 }).Draw(rt, "delta"))
	m.changes++
	change := store.StockChange{
		ID: numbered(numbered("model", int(m.product.ID)), m.changes), ProductID: m.product.ID, Delta: delta, Actor: operator,
	}
	change, err := m.s.Store.BeginStockChange(rt.Context(), change)
	if delta < 0 && -delta > m.stock {
		wantCode(rt, err, seckill.CodeBadRequest)
		return
	}
	must(rt, err)
	_, err = m.s.Store.FinishStockChange(rt.Context(), change.ID, change.Epoch, false)
	if delta < 0 && m.product.TakingOver() {
		wantCode(rt, err, seckill.CodeBusy)
		return
	}
	must(rt, err)
	m.stock += delta
	m.offered += delta
}

func (m *model) epoch(rt *rapid.T) {
	var marks int64
	dead := map[seckill.OrderNo]bool{}
	p, err := m.s.Store.OpenEpoch(rt.Context(), m.product.ID, m.product.Epoch, 0, operator, func(order seckill.Order) error {
		if !order.Status.Live() {
			dead[order.OrderNo] = true
			return nil
		}
		marks += int64(order.Quantity)
		return nil
	})
	must(rt, err)
	keyed := map[seckill.OrderNo]bool{}
	for _, order := range m.orders {
		claim := order.item.Claim
		if claim.Key != "" && !order.status.Live() && m.keys[[2]string{claim.Buyer, claim.Key}] == claim.OrderNo {
			keyed[claim.OrderNo] = true
		}
	}
	equal(rt, "dead orders of the snapshot", dead, keyed)
	equal(rt, "units of the snapshot", marks+p.Stock, m.offered)
	m.product.Epoch, m.product.Seller, m.product.StoreOpen = p.Epoch, seckill.SellerLedger, false
}

func (m *model) settleReleases(rt *rapid.T) {
	m.s.settleReleases(rt, m.product.ID)
	for _, order := range m.orders {
		order.owed = false
	}
}

// compare reads the store and compares it with the model after every step.
func (m *model) compare(rt *rapid.T) {
	p := m.s.product(rt, m.product.ID)
	equal(rt, "stock", p.Stock, m.stock)
	equal(rt, "offered", p.Offered, m.offered)
	equal(rt, "epoch", p.Epoch, m.product.Epoch)
	equal(rt, "seller", p.Seller, m.product.Seller)
	equal(rt, "open", p.StoreOpen, m.product.StoreOpen)
	owed := map[seckill.OrderNo]bool{}
	for _, release := range m.s.owed(rt, m.product.ID) {
		owed[release.OrderNo] = true
	}
	orders, err := ordersOf(rt.Context(), m.s.Store, store.OrderFilter{ProductID: m.product.ID})
	must(rt, err)
	equal(rt, "orders", len(orders), len(m.orders))
	stored := map[seckill.OrderNo]seckill.Order{}
	for _, order := range orders {
		stored[order.OrderNo] = order
	}
	for _, want := range m.orders {
		no := want.item.Claim.OrderNo
		equal(rt, "status", stored[no].Status, want.status)
		equal(rt, "release owed", owed[no], want.owed)
		if want.status.Live() {
			equal(rt, "epoch", stored[no].Epoch, m.product.Epoch)
		}
		if want.refunds > 0 {
			equal(rt, "refunds", len(m.s.payments(rt, no.String(), "refund")), want.refunds)
		}
	}
}
