package storetest

import (
	"pgregory.net/rapid"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

// sell sells a batch from the share, if there is one.
func (m *model) sell(rt *rapid.T) {
	if m.product.FallbackShare == 0 {
		rt.Skip("no share")
	}
	brief := rapid.Bool().Draw(rt, "brief")
	req := store.SellRequest{ProductID: m.product.ID, Origin: seckill.OriginFallback, ExpireAfter: far}
	if brief {
		req.ExpireAfter = tick
	}
	var want []store.SellVerdict
	for range rapid.IntRange(1, 4).Draw(rt, "claims") {
		item := m.s.item(rt, m.product, rapid.SampledFrom([]string{"a", "b", "c", "B"}).Draw(rt, "buyer"),
			quantity(rapid.IntRange(1, m.product.PerUserLimit).Draw(rt, "quantity")),
			key(rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(rt, "key")))
		req.Claims = append(req.Claims, item.Claim)
		want = append(want, m.decide(item, brief))
	}
	got, err := m.s.Store.Sell(rt.Context(), req)
	must(rt, err)
	equal(rt, "verdicts", got.Verdicts, want)
	equal(rt, "free", got.Free, m.share)
}

// decide is what Sell says of one claim, done to the model.
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
	if units > m.share {
		return sold(ledger.VerdictSoldOut, seckill.OrderNo{}, 0)
	}
	m.stock, m.share = m.stock-units, m.share-units
	m.orders = append(m.orders, &modelOrder{item: item, status: seckill.OrderPending, brief: brief, counter: true})
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

// held are the buyer's live orders, newest first: numbers grow.
func (m *model) held(buyer string) []seckill.OrderNo {
	var nos []seckill.OrderNo
	for i := len(m.orders) - 1; i >= 0; i-- {
		if order := m.orders[i]; order.item.Claim.Buyer == buyer && order.status.Live() {
			nos = append(nos, order.item.Claim.OrderNo)
		}
	}
	return nos
}

// takeShare moves the share to the ledger's side.
func (m *model) takeShare(rt *rapid.T) {
	m.changes++
	id := numbered(numbered("model-share", int(m.product.ID)), m.changes)
	change, err := m.s.Store.TakeShare(rt.Context(), m.product.ID, id, operator)
	must(rt, err)
	equal(rt, "taken", change.Delta, m.share)
	m.share = 0
	if change.Status == store.ChangeOpen {
		_, err = m.s.Store.FinishStockChange(rt.Context(), id, change.Epoch, false)
		must(rt, err)
	}
}
