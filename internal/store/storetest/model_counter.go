package storetest

import (
	"pgregory.net/rapid"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

func (m *model) byStore() bool { return m.product.Seller == seckill.SellerStore }

// sell calls Sell with a batch. The store sells while it is open.
func (m *model) sell(rt *rapid.T) {
	brief := rapid.Bool().Draw(rt, "brief")
	req := store.SellRequest{ProductID: m.product.ID, Epoch: m.product.Epoch, ExpireAfter: far}
	if brief {
		req.ExpireAfter = tick
	}
	var want []store.SellVerdict
	for range rapid.IntRange(1, 4).Draw(rt, "claims") {
		item := m.s.item(rt, m.product, rapid.SampledFrom([]string{"a", "b", "c", "B"}).Draw(rt, "buyer"),
			quantity(rapid.IntRange(1, m.product.PerUserLimit).Draw(rt, "quantity")),
			key(rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(rt, "key")))
		req.Claims = append(req.Claims, item.Claim)
		if m.product.StoreOpen {
			want = append(want, m.decide(item, brief))
		}
	}
	got, err := m.s.Store.Sell(rt.Context(), req)
	if !m.product.StoreOpen {
		wantCode(rt, err, seckill.CodeWrongState)
		return
	}
	must(rt, err)
	equal(rt, "verdicts", got.Verdicts, want)
	equal(rt, "free", got.Free, m.stock)
}

// decide returns the expected verdict on one claim, and applies it to the model.
func (m *model) decide(item store.Item, brief bool) store.SellVerdict {
	claim := item.Claim
	id, units := [2]string{claim.Buyer, claim.Key}, int64(claim.Quantity)
	if no, known := m.keys[id]; known && claim.Key != "" {
		return sold(ledger.VerdictRepeated, no, m.find(no).status)
	}
	if m.live(claim.Buyer)+claim.Quantity > m.product.PerUserLimit {
		verdict := sold(ledger.VerdictOverLimit, seckill.OrderNo{}, 0)
		verdict.Held = m.held(claim.Buyer)
		return verdict
	}
	if units > m.stock {
		return sold(ledger.VerdictSoldOut, seckill.OrderNo{}, 0)
	}
	m.stock -= units
	m.orders = append(m.orders, &modelOrder{item: item, status: seckill.OrderPending, brief: brief})
	if claim.Key != "" {
		m.keys[id] = claim.OrderNo
	}
	return sold(ledger.VerdictAccepted, claim.OrderNo, seckill.OrderPending)
}

func (m *model) find(no seckill.OrderNo) *modelOrder {
	for _, order := range m.orders {
		if order.item.Claim.OrderNo == no {
			return order
		}
	}
	return nil
}

// held returns the buyer's live orders, newest first. Order numbers grow.
func (m *model) held(buyer string) []seckill.OrderNo {
	var nos []seckill.OrderNo
	for i := len(m.orders) - 1; i >= 0; i-- {
		if order := m.orders[i]; order.item.Claim.Buyer == buyer && order.status.Live() {
			nos = append(nos, order.item.Claim.OrderNo)
		}
	}
	return nos
}

// takeOver makes the store the seller, unless it is.
func (m *model) takeOver(rt *rapid.T) {
	p, err := m.s.Store.TakeOver(rt.Context(), m.product.ID, m.product.Epoch, operator)
	must(rt, err)
	if !m.byStore() {
		m.product.Epoch, m.product.Seller = m.product.Epoch+1, seckill.SellerStore
	}
	equal(rt, "epoch", p.Epoch, m.product.Epoch)
}

// openStore completes a takeover, if one has begun.
func (m *model) openStore(rt *rapid.T) {
	open, err := m.s.Store.OpenStore(rt.Context(), m.product.ID, m.product.Epoch)
	if !m.byStore() {
		wantError(rt, err, store.ErrEpoch)
		return
	}
	must(rt, err)
	m.product.StoreOpen = true
	equal(rt, "open", open, true)
}
