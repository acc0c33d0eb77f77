package storetest

import (
	"errors"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

var counterTests = []test{
	{"an accepted claim is a pending order at the present price", soldOver},
	{"a batch is decided in order, one claim meeting the one before", soldBatch},
	{"a claim that comes again is repeated, with where its order stands", soldAgain},
	{"a key that the ledger's order used is repeated too", func(t *testing.T, s *suite) {
		p := s.preheated(t, share(0.5), perUser(3))
		order := s.pay(t, s.buy(t, p, "buyer", key("k")))
		got := s.sell(t, p, s.claim(t, p, "buyer", key("k")))
		equal(t, "verdict", got.Verdicts[0], sold(ledger.VerdictRepeated, order.OrderNo, seckill.OrderPaid))
		other := s.sell(t, p, s.claim(t, p, "other", key("k")))
		equal(t, "verdict of another buyer", other.Verdicts[0].Code, ledger.VerdictAccepted)
	}},
	{"a paused or ended sale sells nothing, and repeats still", soldPaused},
	{"over the limit names the buyer's live orders, newest first", soldOverLimit},
	{"the limit spans the group and whoever sold", func(t *testing.T, s *suite) {
		p := s.preheated(t, share(0.5))
		member := s.preheated(t, inGroup(p.ID), share(0.5))
		a := s.sell(t, p, s.claim(t, p, "a")).Verdicts[0].OrderNo
		b := s.buy(t, member, "b").OrderNo
		for buyer, held := range map[string]seckill.OrderNo{"a": a, "b": b} {
			for _, of := range []seckill.Product{p, member} {
				got := s.sell(t, of, s.claim(t, of, buyer)).Verdicts[0]
				equal(t, "verdict", got.Code, ledger.VerdictOverLimit)
				equal(t, "held", got.Held, []seckill.OrderNo{held})
			}
		}
	}},
	{"a ledger's claim that meets a fallback order fails over the limit and owes its release", func(t *testing.T, s *suite) {
		p := s.preheated(t, share(0.5))
		s.sell(t, p, s.claim(t, p, "buyer"))
		item := s.item(t, p, "buyer")
		s.confirm(t, []store.Item{item}, store.ConfirmOverLimit)
		order := s.order(t, item.Claim.OrderNo)
		equal(t, "status", order.Status, seckill.OrderFailed)
		equal(t, "reason", order.Reason, seckill.ReasonLimit)
		equal(t, "owed", len(s.owed(t, p.ID)), 1)
		equal(t, "stock", s.product(t, p.ID).Stock, p.Stock-1)
	}},
	{"a direct product sells its whole stock and no more", soldDirect},
	{"a fallback sale is bounded by the share, a ledger's by the rest", soldShare},
	{"the last unit of the stock writes sale.sold_out, the last of the share does not", func(t *testing.T, s *suite) {
		p := s.preheated(t, stock(2), share(0.5))
		s.sell(t, p, s.claim(t, p, "a"))
		equal(t, "sale.sold_out", s.count(t, p.ID, seckill.EventSaleSoldOut), 0)
		s.buy(t, p, "b")
		equal(t, "sale.sold_out", s.count(t, p.ID, seckill.EventSaleSoldOut), 1)

		p = s.preheated(t, stock(1), direct)
		s.sell(t, p, s.claim(t, p, "a"))
		equal(t, "sale.sold_out of a direct product", s.count(t, p.ID, seckill.EventSaleSoldOut), 1)
	}},
	{"a product without that counter is wrong_state", noCounter},
	{"a claim for no units is bad_request and sells nothing", func(t *testing.T, s *suite) {
		p := s.preheated(t, direct)
		s.unchanged(t, p.ID, func() {
			_, err := s.Store.Sell(t.Context(), s.over(p, s.claim(t, p, "a"), s.claim(t, p, "b", quantity(0))))
			refused(t, err, seckill.CodeBadRequest)
		})
	}},
	{"known claims are repeated or over the limit, whoever sold, and nothing is sold", knownClaims},
	{"a paused or ended sale knows what came before", func(t *testing.T, s *suite) {
		p := s.preheated(t, share(0.5))
		claim := s.claim(t, p, "buyer", key("k"))
		s.sell(t, p, claim)
		for _, state := range []seckill.SaleState{seckill.SalePaused, seckill.SaleEnded} {
			s.setState(t, p.ID, state)
			s.knows(t, p, []seckill.Claim{s.claim(t, p, "buyer", key("k")), s.claim(t, p, "buyer")},
				sold(ledger.VerdictRepeated, claim.OrderNo, seckill.OrderPending), store.SellVerdict{})
		}
	}},
	{"the counter's buyers are all to whom it sold, the dead included", func(t *testing.T, s *suite) {
		p := s.preheated(t, share(0.5), perUser(2))
		s.buy(t, p, "ledger")
		s.buyOver(t, p, "live")
		s.buyOver(t, p, "live")
		s.cancel(t, s.buyOver(t, p, "dead"))
		other := s.preheated(t, direct)
		s.buyOver(t, other, "other")
		met := map[string]bool{}
		must(t, s.Store.CounterBuyers(t.Context(), p.ID, func(buyer string) error { met[buyer] = true; return nil }))
		equal(t, "buyers", met, map[string]bool{"live": true, "dead": true})
		enough := errors.New("enough")
		fails(t, s.Store.CounterBuyers(t.Context(), p.ID, func(string) error { return enough }), enough)
	}},
	{"no claims are no change", func(t *testing.T, s *suite) {
		p := s.preheated(t, direct)
		s.unchanged(t, p.ID, func() {
			got := s.sell(t, p)
			equal(t, "verdicts", len(got.Verdicts), 0)
			equal(t, "free", got.Free, p.Stock)
		})
	}},
	{"many claims at once are all decided", func(t *testing.T, s *suite) {
		const units = 700 // more than any statement takes
		p := s.preheated(t, direct, stock(units))
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
	}},
}

// claim is a claim of one unit.
func (s *suite) claim(t TB, p seckill.Product, buyer string, edits ...func(*store.Item)) seckill.Claim {
	t.Helper()
	return s.item(t, p, buyer, edits...).Claim
}

// over is a request to the counter that the product has.
func (s *suite) over(p seckill.Product, claims ...seckill.Claim) store.SellRequest {
	req := store.SellRequest{ProductID: p.ID, Origin: seckill.OriginFallback, Claims: claims, ExpireAfter: far}
	if p.Strategy == seckill.StrategyDirect {
		req.Origin = seckill.OriginDirect
	}
	return req
}

func (s *suite) sell(t TB, p seckill.Product, claims ...seckill.Claim) store.SellResult {
	t.Helper()
	got, err := s.Store.Sell(t.Context(), s.over(p, claims...))
	must(t, err)
	if len(got.Verdicts) != len(claims) {
		t.Fatalf("%d verdicts for %d claims", len(got.Verdicts), len(claims))
	}
	return got
}

// knows holds what is known of claims to verdicts, and nothing to be changed.
func (s *suite) knows(t TB, p seckill.Product, claims []seckill.Claim, want ...store.SellVerdict) {
	t.Helper()
	s.unchanged(t, p.ID, func() {
		got, err := s.Store.Known(t.Context(), p.ID, claims)
		must(t, err)
		equal(t, "known", got, want)
	})
}

// buyOver sells one unit to the buyer over the counter.
func (s *suite) buyOver(t TB, p seckill.Product, buyer string, edits ...func(*store.Item)) seckill.Order {
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

func soldOver(t *testing.T, s *suite) {
	for name, edit := range map[string]func(*seckill.Product){"direct": direct, "fallback": share(0.5)} {
		t.Run(name, func(t *testing.T) {
			p := s.preheated(t, edit, perUser(3))
			_, err := s.Store.PatchProduct(t.Context(), p.ID, store.ProductPatch{PriceCents: ptr(int64(777)), Name: ptr("Pot 锅")}, operator)
			must(t, err)
			before := s.now(t)
			claim := s.claim(t, p, "buyer", quantity(2), key("k"), ref("r"))
			req := s.over(p, claim)
			got, err := s.Store.Sell(t.Context(), req)
			must(t, err)
			equal(t, "verdict", got.Verdicts, []store.SellVerdict{sold(ledger.VerdictAccepted, claim.OrderNo, seckill.OrderPending)})

			order := s.order(t, claim.OrderNo)
			if !around(order.CreatedAt, before, s.now(t)) || !order.PayBefore.Equal(order.CreatedAt.Add(far)) {
				t.Errorf("created at %s, to be paid before %s", order.CreatedAt, order.PayBefore)
			}
			equal(t, "order", order, seckill.Order{
				OrderNo: claim.OrderNo, Buyer: "buyer", ProductID: p.ID, Group: p.Group, ProductName: "Pot 锅", PriceCents: 777,
				Currency: p.Currency, Quantity: 2, Ref: "r", Key: "k", Status: seckill.OrderPending, Origin: req.Origin,
				CreatedAt: order.CreatedAt, PayBefore: order.PayBefore,
			})
			now := s.product(t, p.ID)
			equal(t, "stock", now.Stock, p.Stock-2)
			equal(t, "order.confirmed", s.count(t, p.ID, seckill.EventOrderConfirmed), 1)
			left := now.Stock
			if req.Origin == seckill.OriginFallback {
				left = p.ShareLeft - 2
				equal(t, "share", now.ShareLeft, left)
			}
			equal(t, "free", got.Free, left)
			if now.Version <= p.Version {
				t.Errorf("version is %d, was %d", now.Version, p.Version)
			}
			equal(t, "status when paid", s.pay(t, order).Status, seckill.OrderPaid)
		})
	}
}

func soldBatch(t *testing.T, s *suite) {
	p := s.preheated(t, direct, stock(4), perUser(2))
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

func soldAgain(t *testing.T, s *suite) {
	p := s.preheated(t, share(0.5), perUser(2))
	claim := s.claim(t, p, "buyer", key("k"))
	s.sell(t, p, claim)
	repeat := func(status seckill.OrderStatus) {
		t.Helper()
		s.unchanged(t, p.ID, func() {
			got := s.sell(t, p, claim, s.claim(t, p, "buyer", key("k")))
			for _, verdict := range got.Verdicts {
				equal(t, "verdict", verdict, sold(ledger.VerdictRepeated, claim.OrderNo, status))
			}
			equal(t, "free", got.Free, s.product(t, p.ID).ShareLeft)
		})
	}
	repeat(seckill.OrderPending)
	s.pay(t, s.order(t, claim.OrderNo))
	repeat(seckill.OrderPaid)
	_, err := s.Store.Refund(t.Context(), claim.OrderNo, operator)
	must(t, err)
	repeat(seckill.OrderRefunded)
}

func soldPaused(t *testing.T, s *suite) {
	p := s.preheated(t, direct)
	claim := s.claim(t, p, "buyer")
	s.sell(t, p, claim)
	for _, step := range []struct {
		state seckill.SaleState
		want  ledger.VerdictCode
	}{{seckill.SalePaused, ledger.VerdictPaused}, {seckill.SaleEnded, ledger.VerdictEnded}} {
		s.setState(t, p.ID, step.state)
		s.unchanged(t, p.ID, func() {
			got := s.sell(t, p, claim, s.claim(t, p, "buyer"), s.claim(t, p, "other"))
			equal(t, "verdicts", codes(got), []ledger.VerdictCode{ledger.VerdictRepeated, step.want, step.want})
		})
	}
}

func soldOverLimit(t *testing.T, s *suite) {
	p := s.preheated(t, share(0.5), perUser(3))
	ledgers := s.buy(t, p, "buyer")
	dead := s.cancel(t, s.buyOver(t, p, "buyer"))
	fallback := s.pay(t, s.buyOver(t, p, "buyer"))
	got := s.sell(t, p, s.claim(t, p, "buyer", quantity(2)), s.claim(t, p, "buyer"), s.claim(t, p, "buyer"))
	equal(t, "verdicts", codes(got), []ledger.VerdictCode{ledger.VerdictOverLimit, ledger.VerdictAccepted, ledger.VerdictOverLimit})
	equal(t, "held before the batch", got.Verdicts[0].Held, []seckill.OrderNo{fallback.OrderNo, ledgers.OrderNo})
	newest := got.Verdicts[1].OrderNo
	equal(t, "held in the batch", got.Verdicts[2].Held, []seckill.OrderNo{newest, fallback.OrderNo, ledgers.OrderNo})
	equal(t, "the dead order is", s.order(t, dead.OrderNo).Status, seckill.OrderCancelled)
}

func knownClaims(t *testing.T, s *suite) {
	p := s.preheated(t, share(0.5), perUser(2))
	member := s.preheated(t, inGroup(p.ID), share(0.5), perUser(2))
	fallback := s.buyOver(t, p, "buyer", key("k"))
	ledgers := s.pay(t, s.buy(t, member, "buyer", key("l")))
	over := store.SellVerdict{Verdict: ledger.Verdict{Code: ledger.VerdictOverLimit, Held: []seckill.OrderNo{ledgers.OrderNo, fallback.OrderNo}}}
	var none store.SellVerdict
	for _, of := range []seckill.Product{p, member} {
		s.knows(t, of, []seckill.Claim{
			s.claim(t, of, "buyer", key("k")), s.claim(t, of, "buyer", key("l")), s.claim(t, of, "buyer", key("m")), s.claim(t, of, "buyer"),
			s.claim(t, of, "other", key("k")), s.claim(t, of, "other", key("k")), s.claim(t, of, "other", quantity(2)),
		},
			sold(ledger.VerdictRepeated, fallback.OrderNo, seckill.OrderPending),
			sold(ledger.VerdictRepeated, ledgers.OrderNo, seckill.OrderPaid),
			over, over, none, none, none)
	}
	s.cancel(t, fallback)
	s.knows(t, p, []seckill.Claim{s.claim(t, p, "buyer", key("k")), s.claim(t, p, "buyer")},
		sold(ledger.VerdictRepeated, fallback.OrderNo, seckill.OrderCancelled), none)
	_, err := s.Store.Known(t.Context(), newProductID(), nil)
	refused(t, err, seckill.CodeNotFound)
}

func soldDirect(t *testing.T, s *suite) {
	p := s.preheated(t, direct, stock(3), perUser(2))
	got := s.sell(t, p, s.claim(t, p, "a", quantity(2)), s.claim(t, p, "b", quantity(2)), s.claim(t, p, "c"))
	equal(t, "verdicts", codes(got), []ledger.VerdictCode{ledger.VerdictAccepted, ledger.VerdictSoldOut, ledger.VerdictAccepted})
	equal(t, "free", got.Free, 0)
	s.unchanged(t, p.ID, func() {
		equal(t, "verdict", s.sell(t, p, s.claim(t, p, "d")).Verdicts[0], sold(ledger.VerdictSoldOut, seckill.OrderNo{}, 0))
	})
	s.change(t, p, 1)
	s.buyOver(t, p, "d")
	equal(t, "stock", s.product(t, p.ID).Stock, 0)
}

func soldShare(t *testing.T, s *suite) {
	p := s.preheated(t, stock(5), share(0.5))
	equal(t, "share", p.ShareLeft, 2)
	equal(t, "allottable", p.Allottable(), 3)
	got := s.sell(t, p, s.claim(t, p, "a"), s.claim(t, p, "b"), s.claim(t, p, "c"))
	equal(t, "verdicts", codes(got), []ledger.VerdictCode{ledger.VerdictAccepted, ledger.VerdictAccepted, ledger.VerdictSoldOut})
	equal(t, "free", got.Free, 0)

	p = s.preheated(t, stock(5), share(0.5))
	items := []store.Item{s.item(t, p, "a"), s.item(t, p, "b"), s.item(t, p, "c"), s.item(t, p, "d")}
	s.unchanged(t, p.ID, func() {
		_, err := s.Store.Confirm(t.Context(), request(items...))
		fails(t, err, store.ErrShort)
	})
	s.confirm(t, items[:3], store.ConfirmNew, store.ConfirmNew, store.ConfirmNew)
	s.unchanged(t, p.ID, func() {
		_, err := s.Store.Confirm(t.Context(), request(items[3]))
		fails(t, err, store.ErrShort)
	})
	s.buyOver(t, p, "d")
	s.buyOver(t, p, "e")
	equal(t, "stock", s.product(t, p.ID).Stock, 0)
}

func noCounter(t *testing.T, s *suite) {
	for name, c := range map[string]struct {
		product seckill.Product
		origin  seckill.Origin
		want    seckill.Code
	}{
		"never preheated":               {s.create(t, direct), seckill.OriginDirect, seckill.CodeWrongState},
		"direct, of a ledger":           {s.preheated(t), seckill.OriginDirect, seckill.CodeWrongState},
		"direct, of a share":            {s.preheated(t, share(0.5)), seckill.OriginDirect, seckill.CodeWrongState},
		"fallback, without a share":     {s.preheated(t), seckill.OriginFallback, seckill.CodeWrongState},
		"fallback, of a direct one":     {s.preheated(t, direct), seckill.OriginFallback, seckill.CodeWrongState},
		"fallback, never preheated":     {s.create(t, share(0.5)), seckill.OriginFallback, seckill.CodeWrongState},
		"an order that is the ledger's": {s.preheated(t, share(0.5)), seckill.OriginLedger, seckill.CodeBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			s.unchanged(t, c.product.ID, func() {
				_, err := s.Store.Sell(t.Context(), store.SellRequest{
					ProductID: c.product.ID, Origin: c.origin, Claims: []seckill.Claim{s.claim(t, c.product, "buyer")}, ExpireAfter: time.Hour,
				})
				refused(t, err, c.want)
			})
		})
	}
	_, err := s.Store.Sell(t.Context(), store.SellRequest{ProductID: newProductID(), Origin: seckill.OriginDirect})
	refused(t, err, seckill.CodeNotFound)
}
