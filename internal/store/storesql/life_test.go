package storesql

import (
	"context"
	"testing"
	"time"

	"seckill"
	"seckill/internal/payment"
	"seckill/internal/queue"
	"seckill/internal/store"
)

// life is what a program asks of its store while products are sold, counted and
// rebuilt: every method of the port, most of them with something to find, one
// after the other. Its statements are those of the program's version.
type life struct {
	t *testing.T
	*Store
	stream queue.ID
}

func (l *life) live() {
	l.sellsFromLedger()
	l.failsAndParks()
	l.sellsItself()
	l.takesMoney()
	l.changesStock()
	l.rebuilds()
	l.counts()
	l.keepsHouse()
	l.delivers()
}

func (l *life) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) ctx() context.Context { return l.t.Context() }

func (l *life) product(id uint32) seckill.Product {
	l.t.Helper()
	p, err := l.Product(l.ctx(), id)
	l.must(err)
	return p
}

// confirm settles claims as a worker does.
func (l *life) confirm(p *seckill.Product, items []store.Item, parked []store.Parked, expire time.Duration) {
	l.t.Helper()
	l.stream.Stream, l.stream.Seq = "b7", l.stream.Seq+1
	_, err := l.Confirm(l.ctx(), store.ConfirmRequest{
		ProductID: p.ID, Items: items, Park: parked, Witness: []queue.ID{l.stream}, ExpireAfter: expire,
	})
	l.must(err)
}

func (l *life) sellsFromLedger() {
	p := sale(l.t, l.Store, 100)
	name, price := "Kettle, red", int64(1099)
	_, err := l.PatchProduct(l.ctx(), p.ID, store.ProductPatch{Name: &name, PriceCents: &price}, operator)
	l.must(err)
	for _, state := range []seckill.SaleState{seckill.SalePaused, seckill.SaleOpen} {
		_, err = l.SetState(l.ctx(), p.ID, state, operator)
		l.must(err)
	}
	_, err = l.Announce(l.ctx(), p.ID, seckill.EventSaleStarted)
	l.must(err)
	p = l.product(p.ID)
	items := claims(&p, 4)
	l.confirm(&p, items, nil, 30*time.Minute)
	again := append(claims(&p, 2), items[0])
	l.confirm(&p, again, nil, 30*time.Minute) // one of them is known: it is classified
	late := claims(&p, 1)
	l.confirm(&p, late, nil, time.Millisecond)

	no := items[0].Claim.OrderNo
	_, err = l.Order(l.ctx(), no)
	l.must(err)
	_, err = l.OrdersByNo(l.ctx(), []seckill.OrderNo{no, items[1].Claim.OrderNo})
	l.must(err)
	pending := seckill.OrderPending
	for _, filter := range []store.OrderFilter{{Buyer: items[0].Claim.Buyer, Limit: 5}, {ProductID: p.ID, Status: &pending, Limit: 5}} {
		_, err = l.SearchOrders(l.ctx(), filter)
		l.must(err)
	}
	_, err = l.PendingUntil(l.ctx(), []uint32{p.ID})
	l.must(err)
	_, err = l.Cancel(l.ctx(), no, "changed my mind", operator)
	l.must(err)
	_, err = l.Story(l.ctx(), no)
	l.must(err)
	_, err = l.WarnExpiring(l.ctx(), time.Hour, 10)
	l.must(err)
	l.expires()
	due, err := l.ReleasesDue(l.ctx(), 10)
	l.must(err)
	l.must(l.ReleasesHeard(l.ctx(), due))
}

// expires asks until the order of a millisecond's time has expired.
func (l *life) expires() {
	for {
		gone, err := l.Expire(l.ctx(), 10)
		l.must(err)
		if len(gone) > 0 {
			return
		}
	}
}

func (l *life) failsAndParks() {
	p := l.product(7)
	items := claims(&p, 5)
	l.must(l.Fail(l.ctx(), items[:1], "units are gone"))
	var parked []store.Parked
	for _, item := range items[1:] {
		parked = append(parked, store.Parked{Item: item, Reason: "bad message"})
	}
	l.confirm(&p, claims(&p, 1), parked, 30*time.Minute)
	l.confirm(&p, nil, parked[:1], 30*time.Minute) // delivered again
	letters, err := l.LettersDue(l.ctx(), 10)
	l.must(err)
	if len(letters) != len(parked) {
		l.t.Fatalf("%d letters are due, %d were parked", len(letters), len(parked))
	}
	_, err = l.LetterByOrder(l.ctx(), letters[0].Item.Claim.OrderNo)
	l.must(err)
	l.must(l.LetterFailed(l.ctx(), letters[0].ID, "still bad", time.Minute))
	_, err = l.RetryLetter(l.ctx(), letters[0].ID, operator)
	l.must(err)
	retried := letters[0].Item
	retried.LetterID = letters[0].ID
	l.confirm(&p, []store.Item{retried}, nil, 30*time.Minute)
	l.must(l.LetterFailed(l.ctx(), letters[1].ID, "for good", -1))
	_, err = l.Letters(l.ctx(), store.LetterFilter{ProductID: p.ID, DeadOnly: true, Limit: 10})
	l.must(err)
	_, err = l.DiscardDead(l.ctx(), -time.Minute, 10)
	l.must(err)
	_, err = l.DiscardLetter(l.ctx(), letters[2].ID, operator)
	l.must(err)
	l.must(l.CloseLetter(l.ctx(), letters[3].ID, letters[3].Item.Epoch))
}

func (l *life) sellsItself() {
	direct := sale(l.t, l.Store, 10, func(p *seckill.Product) { p.ID, p.Strategy = 8, seckill.StrategyDirect })
	l.sells(&direct, seckill.OriginDirect)
	shared := sale(l.t, l.Store, 20, func(p *seckill.Product) { p.ID = 9 }, withShare)
	sold := l.sells(&shared, seckill.OriginFallback)
	_, err := l.Cancel(l.ctx(), sold[0].OrderNo, "", operator)
	l.must(err)
	l.must(l.CounterBuyers(l.ctx(), shared.ID, func(string) error { return nil }))
	_, err = l.TakeShare(l.ctx(), shared.ID, "share-9", operator)
	l.must(err)
	_, err = l.FinishStockChange(l.ctx(), "share-9", shared.Epoch, false)
	l.must(err)
}

func (l *life) sells(p *seckill.Product, origin seckill.Origin) []seckill.Claim {
	var asked []seckill.Claim
	for _, item := range claims(p, 3) {
		asked = append(asked, item.Claim)
	}
	for range 2 { // and again, as after an answer that was lost
		_, err := l.Sell(l.ctx(), store.SellRequest{ProductID: p.ID, Origin: origin, Claims: asked, ExpireAfter: time.Hour})
		l.must(err)
	}
	_, err := l.Known(l.ctx(), p.ID, asked)
	l.must(err)
	return asked
}

func (l *life) takesMoney() {
	p := l.product(7)
	items := claims(&p, 2)
	l.confirm(&p, items, nil, time.Hour)
	pay := func(trade, no string, amount int64) {
		_, err := l.RecordPayment(l.ctx(), payment.Notice{
			Provider: "sandbox", TradeNo: trade, OrderNo: no, AmountCents: amount, Currency: p.Currency, PaidAt: time.Now(),
		})
		l.must(err)
	}
	first, second := items[0].Claim.OrderNo, items[1].Claim.OrderNo
	pay("t1", first.String(), p.PriceCents)
	pay("t1", first.String(), p.PriceCents) // told twice
	pay("t2", first.String(), p.PriceCents) // paid twice
	pay("t3", second.String(), 1)           // too little
	pay("t4", "SK-of-somebody-else", 5)
	_, err := l.Refund(l.ctx(), first, operator)
	l.must(err)
	due, err := l.RefundsDue(l.ctx(), 10)
	l.must(err)
	if len(due) < 3 {
		l.t.Fatalf("%d refunds are due", len(due))
	}
	l.must(l.RefundDone(l.ctx(), due[0].ID))
	l.must(l.RefundFailed(l.ctx(), due[1].ID, "provider is away", time.Minute))
	l.must(l.RefundFailed(l.ctx(), due[2].ID, "provider says no", -1))
	_, err = l.RetryRefund(l.ctx(), due[2].ID, operator)
	l.must(err)
	for _, filter := range []store.PaymentFilter{{OrderNo: first.String(), Limit: 10}, {Type: "refund", Limit: 10}} {
		_, err = l.Payments(l.ctx(), filter)
		l.must(err)
	}
}

func (l *life) changesStock() {
	p := l.product(7)
	for _, change := range []store.StockChange{{ID: "up", Delta: 5}, {ID: "down", Delta: -5}, {ID: "refused", Delta: -3}} {
		change.ProductID, change.Actor = p.ID, operator
		_, err := l.BeginStockChange(l.ctx(), change)
		l.must(err)
	}
	_, err := l.StockChangesDue(l.ctx(), 10)
	l.must(err)
	_, err = l.RestampStockChange(l.ctx(), "down")
	l.must(err)
	for _, id := range []string{"up", "down", "refused"} {
		_, err = l.FinishStockChange(l.ctx(), id, p.Epoch, id == "refused")
		l.must(err)
	}
}

func (l *life) rebuilds() {
	p := l.product(7)
	old := claims(&p, 2)
	l.must(l.SetRebuilding(l.ctx(), p.ID, p.Epoch, true))
	next, err := l.OpenEpoch(l.ctx(), p.ID, p.Epoch, 0, operator, func(seckill.Order) error { return nil })
	l.must(err)
	l.must(l.SetRebuilding(l.ctx(), p.ID, next.Epoch, false))
	l.confirm(&next, old, nil, time.Hour) // entries of the epoch before
	l.must(l.Fail(l.ctx(), old[:1], "units are gone"))
	seen, err := l.Witness(l.ctx())
	l.must(err)
	_, err = l.WitnessLost(l.ctx(), seen, nil)
	l.must(err)
}

func (l *life) counts() {
	for _, id := range []uint32{7, 8, 9} {
		_, err := l.Figures(l.ctx(), id)
		l.must(err)
		_, err = l.CheckStockLog(l.ctx(), id, 10)
		l.must(err)
		_, err = l.CheckBuyers(l.ctx(), id, 10)
		l.must(err)
		_, err = l.CheckMoney(l.ctx(), id, 10)
		l.must(err)
	}
	l.must(l.WalkOrders(l.ctx(), 7, func(store.Trace) error { return nil }))
	_, err := l.RepairBuyers(l.ctx(), 7, 10, operator)
	l.must(err)
	_, err = l.RepairMoney(l.ctx(), 7, 10, operator)
	l.must(err)
	balanced := true
	_, err = l.SaveReconciliation(l.ctx(), store.Reconciliation{ProductID: 7, At: l.now(), Balanced: &balanced, Body: []byte("{}")})
	l.must(err)
	_, err = l.Reconciliations(l.ctx(), 7, 10)
	l.must(err)
	_, err = l.SetState(l.ctx(), 8, seckill.SaleEnded, operator)
	l.must(err)
	_, err = l.Announce(l.ctx(), 8, seckill.EventSaleEnded)
	l.must(err)
	_, err = l.UncountedEnds(l.ctx(), 10)
	l.must(err)
}

func (l *life) keepsHouse() {
	_, err := l.Products(l.ctx())
	l.must(err)
	for after := int64(0); ; {
		events, err := l.Events(l.ctx(), after, 10)
		l.must(err)
		if len(events) == 0 {
			break
		}
		after = events[len(events)-1].ID
	}
	l.must(l.AppendAudit(l.ctx(), store.AuditLine{At: l.now(), Actor: "operator", Action: "product.preheat", ProductID: 7}))
	_, err = l.Audit(l.ctx(), store.AuditFilter{ProductID: 7, Limit: 10})
	l.must(err)
	for _, holder := range []string{"one", "other"} {
		_, err = l.AcquireLease(l.ctx(), "expire", holder, time.Minute)
		l.must(err)
	}
	l.must(l.ReleaseLease(l.ctx(), "expire", "one"))
	_, err = l.Identity(l.ctx())
	l.must(err)
	for range 2 {
		_, _, err = l.Use(l.ctx(), [16]byte{1}, 1, time.Nanosecond)
		l.must(err)
	}
	_, err = l.ForgetUses(l.ctx(), 10)
	l.must(err)
	l.must(l.Ping(l.ctx()))
}

// delivers sends events to a sink, as its sender and an operator do.
func (l *life) delivers() {
	_, err := l.OpenSink(l.ctx(), "shop", false)
	l.must(err)
	state, err := l.TakeSink(l.ctx(), "shop")
	l.must(err)
	l.must(l.SetSinkDown(l.ctx(), "shop", state.Term, true))
	_, err = l.FeedEnd(l.ctx())
	l.must(err)
	d := func(event int64, key string, state store.DeliveryState) store.Delivery {
		return store.Delivery{EventID: event, Key: key, Kind: seckill.EventOrderPaid, MessageID: "evt", EventAt: l.now(), State: state, LastAt: l.now(), NextAt: l.now()}
	}
	l.must(l.SettleDeliveries(l.ctx(), "shop", state.Term, 5, []store.Delivery{
		d(1, "a", store.DeliveryDelivered), d(2, "b", store.DeliveryRetrying), d(3, "b", store.DeliveryWaiting), d(4, "c", store.DeliveryFailed), d(5, "d", store.DeliveryWaiting),
	}))
	_, err = l.DeliveredAfter(l.ctx(), "shop", 0, 10)
	l.must(err)
	_, err = l.OpenKeys(l.ctx(), "shop", []string{"a", "b"})
	l.must(err)
	_, err = l.DeliveriesDue(l.ctx(), "shop", l.now(), 10)
	l.must(err)
	l.must(l.HastenDeliveries(l.ctx(), "shop", l.now()))
	_, err = l.Deliveries(l.ctx(), store.DeliveryFilter{Sink: "shop", State: store.DeliveryFailed, Limit: 10})
	l.must(err)
	_, err = l.Deliveries(l.ctx(), store.DeliveryFilter{Sink: "shop", Key: "b", MessageID: "evt", Before: 9, Newest: true, Limit: 10})
	l.must(err)
	_, err = l.RetryDelivery(l.ctx(), "shop", 2, operator)
	l.must(err)
	_, err = l.SkipDelivery(l.ctx(), "shop", 2, operator)
	l.must(err)
	_, err = l.SkipDeliveries(l.ctx(), "shop", operator)
	l.must(err)
	_, err = l.RetryDeliveries(l.ctx(), "shop", operator)
	l.must(err)
	_, err = l.SweepDeliveries(l.ctx(), "shop", 5, 10)
	l.must(err)
	_, err = l.ReplaySink(l.ctx(), "shop", 3, operator)
	l.must(err)
	_, err = l.SinkStates(l.ctx())
	l.must(err)
	_, err = l.ForgetSink(l.ctx(), "shop", operator)
	l.must(err)
}
