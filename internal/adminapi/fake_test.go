package adminapi

import (
	"context"
	"errors"
	"sync"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/order"
	"seckill/internal/sink"
	"seckill/internal/store"
)

var (
	at       = time.Date(2026, 11, 11, 12, 0, 0, 7e6, time.UTC)
	orderNo  = seckill.NewOrderNo(at, 1, 42)
	absent   = seckill.NewOrderNo(at, 2, 43)
	onLadder = seckill.NewOrderNo(at, 1, 44) // known by its letter alone
	waiting  = seckill.NewOrderNo(at, 1, 46) // known by the ledger alone
	maybe    = seckill.NewOrderNo(at, 1, 45) // of which nobody can tell yet

	errMaybe = seckill.Errorf(seckill.CodeBusy, "it may be queued")
)

// What the API reads is what the store has.
var _ Records = store.Store(nil)

// engine stands for all that is behind the API: it knows product 1, one order
// and one letter, and remembers what it was told to change.
type engine struct {
	mu     sync.Mutex
	calls  []call
	broken error // what everything answers when it is set
	keeps  bool  // the ledger keeps instructions, as the store is away
}

// call is one change that was asked for.
type call struct {
	did   string
	id    int64
	what  any
	actor store.Actor
}

func (e *engine) told(did string, id int64, what any, actor store.Actor) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken != nil {
		return e.broken
	}
	e.calls = append(e.calls, call{did, id, what, actor})
	return nil
}

// changes is what was asked for since the last look.
func (e *engine) changes() []call {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls := e.calls
	e.calls = nil
	return calls
}

func (e *engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.broken = err
}

func (e *engine) failure() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.broken
}

func notFound() error { return seckill.Errorf(seckill.CodeNotFound, "no such thing") }

func (e *engine) product(id uint32) (seckill.Product, error) {
	if err := e.failure(); err != nil {
		return seckill.Product{}, err
	}
	if id != 1 {
		return seckill.Product{}, notFound()
	}
	return seckill.Product{
		ID: 1, Ref: "sku-1", Name: "Phone 手机", PriceCents: 699900, Currency: "CNY", Stock: 9, Offered: 10,
		PerUserLimit: 1, Group: 1, StartsAt: at, EndsAt: at.Add(time.Hour), Shards: 1,
		Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait, Epoch: 1, Version: 2, CreatedAt: at,
	}, nil
}

func (e *engine) changeProduct(did string, id uint32, what any, actor store.Actor) (seckill.Product, error) {
	product, err := e.product(id)
	if err != nil {
		return product, err
	}
	return product, e.told(did, int64(id), what, actor)
}

func (e *engine) Create(_ context.Context, p seckill.Product, actor store.Actor) (seckill.Product, error) {
	p.Offered, p.Version, p.CreatedAt = p.Stock, 1, at
	return p, e.told("create", int64(p.ID), p, actor)
}

func (e *engine) Patch(_ context.Context, id uint32, patch store.ProductPatch, actor store.Actor) (seckill.Product, error) {
	return e.changeProduct("patch", id, patch, actor)
}

func (e *engine) Preheat(_ context.Context, id uint32, actor store.Actor) (seckill.Product, error) {
	return e.changeProduct("preheat", id, nil, actor)
}

func (e *engine) SetState(_ context.Context, id uint32, state seckill.SaleState, actor store.Actor) (seckill.Product, error) {
	product, err := e.changeProduct("state", id, state, actor)
	product.State, product.Instructed = state, e.keeps
	return product, err
}

func (e *engine) Recover(_ context.Context, id uint32, actor store.Actor) (seckill.Product, error) {
	return e.changeProduct("recover", id, nil, actor)
}

func (e *engine) TakeOver(_ context.Context, id uint32, actor store.Actor) (seckill.Product, error) {
	return e.changeProduct("takeover", id, nil, actor)
}

// Delete knows product 1 as a real one, and product 3 as a test.
func (e *engine) Delete(_ context.Context, id uint32, actor store.Actor) (int, error) {
	switch id {
	case 1:
		return 0, seckill.Errorf(seckill.CodeNotTest, "product 1 is no test")
	case 3:
		return 12, e.told("delete", 3, nil, actor)
	}
	return 0, notFound()
}

// ChangeStock is open, refused or another's by the change id's word.
func (e *engine) ChangeStock(_ context.Context, id uint32, delta int64, changeID string, actor store.Actor) (store.StockChange, error) {
	change := store.StockChange{ID: changeID, ProductID: id, Delta: delta, Status: store.ChangeDone, CreatedAt: at}
	switch changeID {
	case "open":
		change.Status = store.ChangeOpen
	case "refused", "another":
		return change, seckill.Errorf(seckill.CodeWrongState, "%s", changeID)
	}
	_, err := e.changeProduct("stock", id, change, actor)
	return change, err
}

func (e *engine) IsTest(product uint32) bool { return product == 3 }

func (e *engine) Status(p *seckill.Product) seckill.Status { return p.Status(at, false) }

func (e *engine) Stats(_ context.Context, id uint32) (api.Stats, error) {
	product, err := e.product(id)
	return api.Stats{
		ProductID: id, State: "open", Status: seckill.StatusOnSale, Seller: api.SellerLedger, Epoch: product.Epoch, Offered: 10,
		Ledger: api.LedgerFigures{Available: 9, Reserved: 1}, Store: api.StoreFigures{Stock: 9, Pending: 1},
		Requests: map[string]int64{"accepted": 1, string(seckill.CodeSoldOut): 0},
	}, err
}

func (e *engine) order(no seckill.OrderNo, status seckill.OrderStatus) (seckill.Order, error) {
	if err := e.failure(); err != nil {
		return seckill.Order{}, err
	}
	switch no {
	case orderNo:
	case maybe:
		return seckill.Order{}, errMaybe
	default:
		return seckill.Order{}, notFound()
	}
	return seckill.Order{
		OrderNo: no, Buyer: "bob", ProductID: 1, Group: 1, ProductName: "Phone", PriceCents: 699900,
		Currency: "CNY", Quantity: 1, Status: status, CreatedAt: at, PayBefore: at.Add(time.Hour), Epoch: 1,
	}, nil
}

func (e *engine) changeOrder(did string, no seckill.OrderNo, status seckill.OrderStatus, what any, actor store.Actor) (seckill.Order, error) {
	order, err := e.order(no, status)
	if err != nil {
		return order, err
	}
	return order, e.told(did, 0, what, actor)
}

func (e *engine) Cancel(_ context.Context, no seckill.OrderNo, reason string, actor store.Actor) (seckill.Order, error) {
	return e.changeOrder("cancel", no, seckill.OrderCancelled, reason, actor)
}

func (e *engine) Refund(_ context.Context, no seckill.OrderNo, actor store.Actor) (seckill.Order, error) {
	return e.changeOrder("refund", no, seckill.OrderRefunded, nil, actor)
}

func letter() store.Letter {
	return store.Letter{
		ID: 5, Dead: true, Attempts: 16, Reason: "bad data", CreatedAt: at, DeadAt: at,
		Item: store.Item{
			Claim:     seckill.Claim{OrderNo: onLadder, Buyer: "bob", Quantity: 1},
			ProductID: 1, Group: 1, At: at, Name: "Phone", PriceCents: 1, Currency: "CNY",
		},
	}
}

func (e *engine) Retry(_ context.Context, id int64, actor store.Actor) (store.Letter, error) {
	if id != 5 {
		return store.Letter{}, notFound()
	}
	again := letter()
	again.Dead, again.NextAt = false, at
	return again, e.told("retry", id, nil, actor)
}

func (e *engine) RetryRefund(_ context.Context, id string, actor store.Actor) (store.Payment, error) {
	if id != "RF5" {
		return store.Payment{}, notFound()
	}
	return store.Payment{
		ID: id, Type: "refund", OrderNo: "invoice 7", Provider: "sandbox", TradeNo: "T5", AmountCents: 5, Currency: "CNY",
		Status: "due", Reason: "unknown_order", PaymentID: "PY5", CreatedAt: at,
	}, e.told("retry refund", 0, id, actor)
}

func (e *engine) Discard(_ context.Context, id int64, actor store.Actor) (seckill.Order, error) {
	if id != 5 {
		return seckill.Order{}, notFound()
	}
	order, err := e.order(orderNo, seckill.OrderFailed)
	if err != nil {
		return order, err
	}
	return order, e.told("discard", id, nil, actor)
}

func (e *engine) Run(_ context.Context, product uint32, repair bool, actor string) (api.Report, error) {
	if _, err := e.product(product); err != nil {
		return api.Report{}, err
	}
	yes := true
	report := api.Report{ID: 1, ProductID: product, At: at, Balanced: &yes}
	return report, e.told("reconcile", int64(product), repair, store.Actor{Name: actor})
}

func (e *engine) Product(_ context.Context, id uint32) (seckill.Product, error) { return e.product(id) }

// Products has a second one, whose figures cannot be counted, one whose sale is
// long over and one that has long to start.
func (e *engine) CurrentProducts(ctx context.Context) ([]seckill.Product, error) {
	return e.Products(ctx, store.ProductFilter{Limit: 4})
}

func (e *engine) Products(_ context.Context, filter store.ProductFilter) ([]seckill.Product, error) {
	one, err := e.product(1)
	two := one
	two.ID, two.Group = 2, 2
	over, later := two, two
	over.ID, over.StartsAt, over.EndsAt = 3, at.Add(-25*time.Hour), at.Add(-2*time.Hour)
	later.ID, later.StartsAt, later.EndsAt = 4, at.Add(2*time.Hour), at.Add(3*time.Hour)
	return []seckill.Product{one, two, over, later}[min(filter.After, 4):][:min(4-min(int(filter.After), 4), filter.Limit)], err
}

// Look finds one order pending, two queued, and cannot tell of one.
func (e *engine) Look(_ context.Context, no seckill.OrderNo) (seckill.Order, error) {
	found, err := e.order(orderNo, seckill.OrderPending)
	switch {
	case err != nil:
		return found, err
	case no == onLadder:
		found.OrderNo, found.Status, found.Reason, found.PayBefore = onLadder, seckill.OrderQueued, "bad data", time.Time{}
		return found, nil
	case no == waiting:
		found.OrderNo, found.Status, found.PayBefore = waiting, seckill.OrderQueued, time.Time{}
		return found, nil
	}
	return e.order(no, seckill.OrderPending)
}

// Search could not ask all there are, of the buyer "half".
func (e *engine) Search(_ context.Context, filter store.OrderFilter) (order.Listing, error) {
	found, err := e.order(orderNo, seckill.OrderPending)
	if filter.Buyer == "half" {
		return order.Listing{Orders: []seckill.Order{found}, Partial: true}, err
	}
	if err != nil || filter.Buyer != "" && filter.Buyer != found.Buyer {
		return order.Listing{}, err
	}
	return order.Listing{Orders: []seckill.Order{found}}, e.told("search", 0, filter, store.Actor{})
}

func (e *engine) Story(_ context.Context, no seckill.OrderNo) ([]store.StoryLine, error) {
	if no == waiting {
		return nil, notFound()
	}
	return []store.StoryLine{{At: at, Kind: "event", What: "order.confirmed"}}, e.failure()
}

func (e *engine) Letters(_ context.Context, filter store.LetterFilter) ([]store.Letter, error) {
	return []store.Letter{letter()}, e.told("letters", 0, filter, store.Actor{})
}

func (e *engine) Payments(_ context.Context, filter store.PaymentFilter) ([]store.Payment, error) {
	return []store.Payment{{
		ID: "P1", Type: "payment", OrderNo: orderNo.String(), Provider: "sandbox", TradeNo: "T1",
		AmountCents: 699900, Currency: "CNY", Status: "applied", CreatedAt: at, DoneAt: at,
	}}, e.told("payments", 0, filter, store.Actor{})
}

func (e *engine) Reconciliations(context.Context, uint32, int64, int) ([]store.Reconciliation, error) {
	no := false
	body := `{"id":0,"violations":[{"promise":"I1","expected":"10","found":"9","detail":"short"}],"figures":{"offered":10}}`
	return []store.Reconciliation{{ID: 7, ProductID: 1, At: at, Balanced: &no, Body: []byte(body)}}, e.failure()
}

func (e *engine) Events(_ context.Context, after int64, limit int) ([]seckill.Event, error) {
	if after >= 9 {
		return nil, e.failure()
	}
	return []seckill.Event{
		{ID: 7, At: at, Kind: seckill.EventOrderPaid, ProductID: 1, OrderNo: orderNo, Buyer: "bob", Quantity: 1, Currency: "CNY"},
		{ID: 8, At: at, Kind: seckill.EventSaleEnded, ProductID: 1, Data: []byte(
			`{"offered":9,"stock":2,"pending":1,"paid":6,"cancelled":0,"failed":0,"refunded":0,"returned_units":2}`)},
		{ID: 9, At: at, Kind: seckill.EventRefundRequired, Reason: "unknown_order", Data: []byte(
			`{"id":"RF1","amount_cents":5,"currency":"CNY","provider":"sandbox","trade_no":"t","order_no":"x","reason":"unknown_order"}`)},
	}, e.told("events", after, limit, store.Actor{})
}

func (e *engine) Audit(_ context.Context, filter store.AuditFilter) ([]store.AuditLine, error) {
	return []store.AuditLine{{ID: 1, At: at, Actor: "operator", Action: "product.pause", ProductID: 1}},
		e.told("audit", 0, filter, store.Actor{})
}

func (e *engine) AppendAudit(_ context.Context, line store.AuditLine) error {
	return e.told("append", int64(line.ProductID), line.Action, store.Actor{Name: line.Actor, Reason: line.Reason})
}

var errOutage = errors.New("dial tcp 10.0.0.7:3306: connection refused")

// fakeSinks is the engine's side of sinks: it knows the sink shop.
type fakeSinks struct{ *engine }

func (d fakeSinks) delivery(state store.DeliveryState) store.Delivery {
	return store.Delivery{
		Sink: "shop", EventID: 5, Key: orderNo.String(), Kind: seckill.EventOrderPaid, MessageID: eventID, EventAt: at, State: state,
		Attempts: 3, Status: "500", Latency: 12 * time.Millisecond, Error: "receiver answered 500", FirstAt: at, LastAt: at,
	}
}

func (d fakeSinks) List(context.Context) ([]sink.Report, error) {
	return []sink.Report{
		{Info: sink.Info{Name: "away", Kind: "kafka", Target: "orders"}, Configured: true, State: store.SinkState{Name: "away", DownAt: at}},
		{Info: sink.Info{Name: "old"}, State: store.SinkState{Name: "old", Cursor: 3, DownAt: at}},
		{
			Info: sink.Info{Name: "shop", Kind: "webhook", Target: "https://shop.example.com/********"}, Configured: true, Lag: 2, Oldest: time.Second,
			State: store.SinkState{Name: "shop", Cursor: 7, Count: map[store.DeliveryState]int64{store.DeliveryFailed: 1}, LastError: "no", LastErrorAt: at},
		},
	}, d.failure()
}

func (d fakeSinks) Deliveries(_ context.Context, filter store.DeliveryFilter) ([]store.Delivery, error) {
	if filter.Sink != "shop" {
		return nil, notFound()
	}
	return []store.Delivery{d.delivery(store.DeliveryFailed), d.delivery(store.DeliveryDelivered)}, d.failure()
}

func (d fakeSinks) Event(_ context.Context, name, messageID string) (int64, error) {
	if messageID != eventID {
		return 0, notFound()
	}
	return 5, d.failure()
}

// eventID is the message id of event 5.
const eventID = "evt_4f0c1d6a3be1b0f2a7c9d85e6f301b24"

func (d fakeSinks) Retry(_ context.Context, name string, event int64, actor store.Actor) (store.Delivery, error) {
	return d.delivery(store.DeliveryRetrying), d.told("retry delivery", event, name, actor)
}

func (d fakeSinks) RetryAll(_ context.Context, name string, actor store.Actor) (int, error) {
	return 2, d.told("retry deliveries", 0, name, actor)
}

func (d fakeSinks) Skip(_ context.Context, name string, event int64, actor store.Actor) (store.Delivery, error) {
	return d.delivery(store.DeliverySkipped), d.told("skip delivery", event, name, actor)
}

func (d fakeSinks) SkipAll(_ context.Context, name string, actor store.Actor) (int, error) {
	return 3, d.told("skip deliveries", 0, name, actor)
}

func (d fakeSinks) Forget(_ context.Context, name string, actor store.Actor) (int, error) {
	return 4, d.told("forget sink", 0, name, actor)
}

func (d fakeSinks) Replay(_ context.Context, _ string, from time.Time, actor store.Actor) (int64, error) {
	return 9, d.told("replay sink", 0, from, actor)
}

func (d fakeSinks) Test(_ context.Context, name string, actor store.Actor) (sink.Echo, error) {
	return sink.Echo{Status: "500", Latency: time.Second, Err: errors.New("receiver answered 500")}, d.told("test sink", 0, name, actor)
}
