package storetest

import (
	"errors"
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

var directTests = []test{
	{"an accepted claim is a pending order at the present price", byStore(acceptedClaim)},
	{"claims of a batch are decided in order, each after the ones before", byStore(soldBatch)},
	{"a repeated claim returns the status of its order", byStore(soldAgain)},
	{"a key of the ledger's order is repeated too", func(t *testing.T, s *suite) {
		p := s.preheated(t, perUser(3))
		order := s.pay(t, s.buy(t, p, "buyer", key("k")))
		p = s.takeOver(t, p.ID)
		got := s.sell(t, p, s.claim(t, p, "buyer", key("k")))
		equal(t, "verdict", got.Verdicts[0], sold(ledger.VerdictRepeated, order.OrderNo, seckill.OrderPaid))
		other := s.sell(t, p, s.claim(t, p, "other", key("k")))
		equal(t, "verdict of another buyer", other.Verdicts[0].Code, ledger.VerdictAccepted)
	}},
	{"a paused or ended sale sells nothing, but answers repeated claims", byStore(soldPaused)},
	{"over the limit names the buyer's live orders, newest first", soldOverLimit},
	{"the limit spans the group and both sellers", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		member := s.preheated(t, inGroup(p.ID))
		b := s.buy(t, member, "b").OrderNo
		late := s.item(t, member, "a")
		_, err := s.Store.TakeOver(t.Context(), member.ID, member.Epoch, operator)
		must(t, err)
		p = s.takeOver(t, p.ID)
		s.buyFromStore(t, p, "a")
		got := s.sell(t, p, s.claim(t, p, "b")).Verdicts[0]
		equal(t, "verdict", got.Code, ledger.VerdictOverLimit)
		equal(t, "held", got.Held, []seckill.OrderNo{b})
		s.confirm(t, []store.Item{late}, store.ConfirmOverLimit)
	}},
	{"the whole stock is sold and no more", byStore(soldAll)},
	{"the last unit of the stock writes sale.sold_out", byStore(func(t *testing.T, s *suite, open soldBy) {
		p := open(t, stock(2))
		s.buyFromStore(t, p, "a")
		equal(t, "sale.sold_out", s.count(t, p.ID, seckill.EventSaleSoldOut), 0)
		s.buyFromStore(t, p, "b")
		equal(t, "sale.sold_out", s.count(t, p.ID, seckill.EventSaleSoldOut), 1)
	})},
	{"a direct product that was never preheated is wrong_state, an unknown one not_found", func(t *testing.T, s *suite) {
		p := s.create(t, direct)
		s.wantUnchanged(t, p.ID, func() {
			_, err := s.Store.Sell(t.Context(), s.sellRequest(p, s.claim(t, p, "buyer")))
			wantCode(t, err, seckill.CodeWrongState)
		})
		_, err := s.Store.Sell(t.Context(), store.SellRequest{ProductID: newProductID()})
		wantCode(t, err, seckill.CodeNotFound)
	}},
	{"a claim for no units is bad_request and sells nothing", func(t *testing.T, s *suite) {
		p := s.preheated(t, direct)
		s.wantUnchanged(t, p.ID, func() {
			_, err := s.Store.Sell(t.Context(), s.sellRequest(p, s.claim(t, p, "a"), s.claim(t, p, "b", quantity(0))))
			wantCode(t, err, seckill.CodeBadRequest)
		})
	}},
	{"DirectBuyers lists all buyers of a direct product, also those of dead orders", func(t *testing.T, s *suite) {
		p := s.preheated(t, direct, perUser(2))
		s.buyFromStore(t, p, "live")
		s.buyFromStore(t, p, "live")
		s.cancel(t, s.buyFromStore(t, p, "dead"))
		other := s.preheated(t, direct)
		s.buyFromStore(t, other, "other")
		met := map[string]bool{}
		must(t, s.Store.DirectBuyers(t.Context(), p.ID, func(buyer string) error { met[buyer] = true; return nil }))
		equal(t, "buyers", met, map[string]bool{"live": true, "dead": true})
		enough := errors.New("enough")
		wantError(t, s.Store.DirectBuyers(t.Context(), p.ID, func(string) error { return enough }), enough)
	}},
	{"a sale without claims changes nothing", func(t *testing.T, s *suite) {
		p := s.preheated(t, direct)
		s.wantUnchanged(t, p.ID, func() {
			got := s.sell(t, p)
			equal(t, "verdicts", len(got.Verdicts), 0)
			equal(t, "free", got.Free, p.Stock)
		})
	}},
	{"many claims at once are all decided", byStore(func(t *testing.T, s *suite, open soldBy) {
		const units = 700 // more than one statement takes
		p := open(t, stock(units))
		var claims []seckill.Claim
		for i := range units + 5 {
			claims = append(claims, s.claim(t, p, numbered("buyer", i), key("k")))
		}
		got := s.sell(t, p, claims...)
		for i, verdict := range got.Verdicts {
			want := sold(ledger.VerdictAccepted, claims[i].OrderNo, seckill.OrderPending)
			if i >= units {
				want = sold(ledger.VerdictSoldOut, seckill.OrderNo{}, 0)
			}
			equal(t, "verdict", verdict, want)
		}
		equal(t, "free", got.Free, 0)
		equal(t, "pending", s.figures(t, p.ID).Pending, units)
		for i, verdict := range s.sell(t, p, claims...).Verdicts[:units] {
			equal(t, "repeated", verdict, sold(ledger.VerdictRepeated, claims[i].OrderNo, seckill.OrderPending))
		}
	})},
}

// claim returns a claim of one unit.
func (s *suite) claim(t TB, p seckill.Product, buyer string, edits ...func(*store.Item)) seckill.Claim {
	t.Helper()
	return s.item(t, p, buyer, edits...).Claim
}

// sellRequest returns a request to the store in the product's epoch.
func (s *suite) sellRequest(p seckill.Product, claims ...seckill.Claim) store.SellRequest {
	return store.SellRequest{ProductID: p.ID, Epoch: p.Epoch, Claims: claims, ExpireAfter: far}
}

func (s *suite) sell(t TB, p seckill.Product, claims ...seckill.Claim) store.SellResult {
	t.Helper()
	got, err := s.Store.Sell(t.Context(), s.sellRequest(p, claims...))
	must(t, err)
	if len(got.Verdicts) != len(claims) {
		t.Fatalf("%d verdicts for %d claims", len(got.Verdicts), len(claims))
	}
	return got
}

// buyFromStore lets the store sell one unit to the buyer.
func (s *suite) buyFromStore(t TB, p seckill.Product, buyer string, edits ...func(*store.Item)) seckill.Order {
	t.Helper()
	claim := s.claim(t, p, buyer, edits...)
	equal(t, "verdict", s.sell(t, p, claim).Verdicts[0], sold(ledger.VerdictAccepted, claim.OrderNo, seckill.OrderPending))
	return s.order(t, claim.OrderNo)
}

func sold(code ledger.VerdictCode, no seckill.OrderNo, status seckill.OrderStatus) store.SellVerdict {
	return store.SellVerdict{Verdict: ledger.Verdict{Code: code, OrderNo: no}, Status: status}
}

func codes(result store.SellResult) []ledger.VerdictCode {
	var all []ledger.VerdictCode
	for _, verdict := range result.Verdicts {
		all = append(all, verdict.Code)
	}
	return all
}

func acceptedClaim(t *testing.T, s *suite, open soldBy) {
	p := open(t, perUser(3))
	_, err := s.Store.PatchProduct(t.Context(), p.ID, store.ProductPatch{PriceCents: ptr(int64(777)), Name: ptr("Pot 锅")}, operator)
	must(t, err)
	before := s.now(t)
	claim := s.claim(t, p, "buyer", quantity(2), key("k"), ref("r"))
	got := s.sell(t, p, claim)
	equal(t, "verdict", got.Verdicts, []store.SellVerdict{sold(ledger.VerdictAccepted, claim.OrderNo, seckill.OrderPending)})

	order := s.order(t, claim.OrderNo)
	if !around(order.CreatedAt, before, s.now(t)) || !order.PayBefore.Equal(order.CreatedAt.Add(far)) {
		t.Errorf("created at %s, to be paid before %s", order.CreatedAt, order.PayBefore)
	}
	origin, epoch := seckill.OriginLedger, p.Epoch // if the product has a ledger
	if !p.HasLedger() {
		origin, epoch = seckill.OriginDirect, 0
	}
	equal(t, "order", order, seckill.Order{
		OrderNo: claim.OrderNo, Buyer: "buyer", ProductID: p.ID, Group: p.Group, ProductName: "Pot 锅", PriceCents: 777,
		Currency: p.Currency, Quantity: 2, Ref: "r", Key: "k", Status: seckill.OrderPending, Origin: origin, Epoch: epoch,
		CreatedAt: order.CreatedAt, PayBefore: order.PayBefore,
	})
	now := s.product(t, p.ID)
	equal(t, "stock", now.Stock, p.Stock-2)
	equal(t, "free", got.Free, now.Stock)
	equal(t, "order.confirmed", s.count(t, p.ID, seckill.EventOrderConfirmed), 1)
	if now.Version <= p.Version {
		t.Errorf("version is %d, was %d", now.Version, p.Version)
	}
	equal(t, "status when paid", s.pay(t, order).Status, seckill.OrderPaid)
}

func soldBatch(t *testing.T, s *suite, open soldBy) {
	p := open(t, stock(4), perUser(2))
	first := s.claim(t, p, "a", key("k"))
	again, second, third := s.claim(t, p, "a", key("k")), s.claim(t, p, "a"), s.claim(t, p, "a")
	other, twin := s.claim(t, p, "A", quantity(2)), s.claim(t, p, "b")
	got := s.sell(t, p, first, again, first, second, third, other, twin)
	equal(t, "verdicts", codes(got), []ledger.VerdictCode{
		ledger.VerdictAccepted, ledger.VerdictRepeated, ledger.VerdictRepeated, ledger.VerdictAccepted,
		ledger.VerdictOverLimit, ledger.VerdictAccepted, ledger.VerdictSoldOut,
	})
	for _, i := range []int{1, 2} {
		equal(t, "repeated", got.Verdicts[i], sold(ledger.VerdictRepeated, first.OrderNo, seckill.OrderPending))
	}
	equal(t, "held", got.Verdicts[4].Held, []seckill.OrderNo{second.OrderNo, first.OrderNo})
	equal(t, "free", got.Free, 0)
	equal(t, "pending", s.figures(t, p.ID).Pending, 4)
}

func soldAgain(t *testing.T, s *suite, open soldBy) {
	p := open(t, perUser(2))
	claim := s.claim(t, p, "buyer", key("k"))
	s.sell(t, p, claim)
	repeat := func(status seckill.OrderStatus) {
		t.Helper()
		s.wantUnchanged(t, p.ID, func() {
			got := s.sell(t, p, claim, s.claim(t, p, "buyer", key("k")))
			for _, verdict := range got.Verdicts {
				equal(t, "verdict", verdict, sold(ledger.VerdictRepeated, claim.OrderNo, status))
			}
			equal(t, "free", got.Free, s.product(t, p.ID).Stock)
		})
	}
	repeat(seckill.OrderPending)
	s.pay(t, s.order(t, claim.OrderNo))
	repeat(seckill.OrderPaid)
	_, err := s.Store.Refund(t.Context(), claim.OrderNo, operator)
	must(t, err)
	repeat(seckill.OrderRefunded)
}

func soldPaused(t *testing.T, s *suite, open soldBy) {
	p := open(t)
	claim := s.claim(t, p, "buyer")
	s.sell(t, p, claim)
	for _, step := range []struct {
		state seckill.SaleState
		want  ledger.VerdictCode
	}{{seckill.SalePaused, ledger.VerdictPaused}, {seckill.SaleEnded, ledger.VerdictEnded}} {
		s.setState(t, p.ID, step.state)
		s.wantUnchanged(t, p.ID, func() {
			got := s.sell(t, p, claim, s.claim(t, p, "buyer"), s.claim(t, p, "other"))
			equal(t, "verdicts", codes(got), []ledger.VerdictCode{ledger.VerdictRepeated, step.want, step.want})
		})
	}
}

func soldOverLimit(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(3))
	ledgers := s.buy(t, p, "buyer")
	p = s.takeOver(t, p.ID)
	s.cancel(t, s.buyFromStore(t, p, "buyer"))
	stores := s.pay(t, s.buyFromStore(t, p, "buyer"))
	got := s.sell(t, p, s.claim(t, p, "buyer", quantity(2)), s.claim(t, p, "buyer"), s.claim(t, p, "buyer"))
	equal(t, "verdicts", codes(got), []ledger.VerdictCode{ledger.VerdictOverLimit, ledger.VerdictAccepted, ledger.VerdictOverLimit})
	equal(t, "held before the batch", got.Verdicts[0].Held, []seckill.OrderNo{stores.OrderNo, ledgers.OrderNo})
	newest := got.Verdicts[1].OrderNo
	equal(t, "held in the batch", got.Verdicts[2].Held, []seckill.OrderNo{newest, stores.OrderNo, ledgers.OrderNo})
}

func soldAll(t *testing.T, s *suite, open soldBy) {
	p := open(t, stock(3), perUser(2))
	got := s.sell(t, p, s.claim(t, p, "a", quantity(2)), s.claim(t, p, "b", quantity(2)), s.claim(t, p, "c"))
	equal(t, "verdicts", codes(got), []ledger.VerdictCode{ledger.VerdictAccepted, ledger.VerdictSoldOut, ledger.VerdictAccepted})
	equal(t, "free", got.Free, 0)
	s.wantUnchanged(t, p.ID, func() {
		equal(t, "verdict", s.sell(t, p, s.claim(t, p, "d")).Verdicts[0], sold(ledger.VerdictSoldOut, seckill.OrderNo{}, 0))
	})
	s.change(t, p, 1)
	s.buyFromStore(t, p, "d")
	equal(t, "stock", s.product(t, p.ID).Stock, 0)
}
