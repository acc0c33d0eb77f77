package storetest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/payment"
	"seckill/internal/store"
)

const (
	// tick is a time that tests let pass. It is short, because for a store with its own clock
	// the test must wait. It is long compared with the millisecond to which stores keep time.
	tick = 20 * time.Millisecond
	// far is a time that never passes within a test.
	far = time.Hour
	// all is a page size above the number of rows of any test.
	all = 10_000
	// patience bounds every test, in case the store hangs.
	patience = 30 * time.Second
)

var operator = store.Actor{Name: "operator", Reason: "because of the test"}

// lastProduct makes product ids that no other test or run on the same server has: they start at
// a random number and count up.
var lastProduct = func() *atomic.Uint32 {
	var seed [4]byte
	rand.Read(seed[:]) // never fails
	var last atomic.Uint32
	last.Store(binary.BigEndian.Uint32(seed[:])>>1 | 1) // the upper half is left for counting
	return &last
}()

func newProductID() uint32 { return lastProduct.Add(1) }

// suite is an open store with the fixtures of the tests.
type suite struct {
	*Harness
	clock  *Clock
	orders atomic.Uint64 // makes order numbers that are distinct and grow
}

// advance moves the store's clock, or waits if the store has its own clock.
func (s *suite) advance(t TB, d time.Duration) {
	t.Helper()
	if !s.OwnClock {
		s.clock.Advance(d)
		return
	}
	until := s.now(t).Add(d)
	eventually(t, "the store's clock to move", func() bool { return s.now(t).After(until) })
}

func (s *suite) now(t TB) time.Time {
	t.Helper()
	now, err := s.Store.Now(t.Context())
	must(t, err)
	return now
}

// around reports whether at is between two readings of the store's clock.
func around(at, before, after time.Time) bool {
	return !at.Before(before) && !at.After(after)
}

// draft returns a product to create: 10 units at 9.99, one per buyer.
func (s *suite) draft(t TB) seckill.Product {
	t.Helper()
	id, now := newProductID(), s.now(t)
	return seckill.Product{
		ID: id, Group: id, Name: "Kettle 水壶", Ref: "shop-1", PriceCents: 999, Currency: "CNY",
		Stock: 10, PerUserLimit: 1, Shards: 1, Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait,
		StartsAt: now.Add(-far), EndsAt: now.Add(far),
	}
}

// create adds a draft, changed by edits, and checks I1, I2, I3, I6 and I8 for it at the end of
// the test.
func (s *suite) create(t *testing.T, edits ...func(*seckill.Product)) seckill.Product {
	t.Helper()
	draft := s.draft(t)
	for _, edit := range edits {
		edit(&draft)
	}
	p, err := s.Store.CreateProduct(t.Context(), draft, operator)
	must(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			CheckPromises(t, s.Store, p.ID)
		}
	})
	return p
}

// preheated creates a product and opens its first epoch.
func (s *suite) preheated(t *testing.T, edits ...func(*seckill.Product)) seckill.Product {
	t.Helper()
	return s.openEpoch(t, s.create(t, edits...).ID)
}

// takenOver creates a product that the store sells, open.
func (s *suite) takenOver(t *testing.T, edits ...func(*seckill.Product)) seckill.Product {
	t.Helper()
	return s.takeOver(t, s.preheated(t, edits...).ID)
}

// takeOver makes the store the seller of a product, open.
func (s *suite) takeOver(t TB, id uint32) seckill.Product {
	t.Helper()
	p, err := s.Store.TakeOver(t.Context(), id, s.product(t, id).Epoch, operator)
	must(t, err)
	s.openStore(t, p)
	return s.product(t, id)
}

func (s *suite) openStore(t TB, p seckill.Product) {
	t.Helper()
	opened, err := s.Store.OpenStore(t.Context(), p.ID, p.Epoch)
	must(t, err)
	equal(t, "the store is open", opened, true)
}

// soldBy is preheated or takenOver.
type soldBy func(t *testing.T, edits ...func(*seckill.Product)) seckill.Product

// byStore runs a story for a direct product and for one that was taken over.
func byStore(story func(t *testing.T, s *suite, open soldBy)) func(t *testing.T, s *suite) {
	return func(t *testing.T, s *suite) {
		t.Run("direct", func(t *testing.T) {
			story(t, s, func(t *testing.T, edits ...func(*seckill.Product)) seckill.Product {
				t.Helper()
				return s.preheated(t, append(edits, direct)...)
			})
		})
		t.Run("taken over", func(t *testing.T) { story(t, s, s.takenOver) })
	}
}

func stock(n int64) func(*seckill.Product)     { return func(p *seckill.Product) { p.Stock = n } }
func perUser(n int) func(*seckill.Product)     { return func(p *seckill.Product) { p.PerUserLimit = n } }
func inGroup(id uint32) func(*seckill.Product) { return func(p *seckill.Product) { p.Group = id } }
func isTest(p *seckill.Product)                { p.Test = true }
func direct(p *seckill.Product)                { p.Strategy = seckill.StrategyDirect }
func sharded(n int) func(*seckill.Product) {
	return func(p *seckill.Product) { p.Shards, p.Strategy = n, seckill.StrategySharded }
}

// openEpoch opens the next epoch and ends the rebuild.
func (s *suite) openEpoch(t TB, id uint32) seckill.Product {
	t.Helper()
	seen := s.product(t, id).Epoch
	p, err := s.Store.OpenEpoch(t.Context(), id, seen, 0, operator, func(seckill.Order) error { return nil })
	must(t, err)
	must(t, s.Store.EndRebuild(t.Context(), id, p.Epoch))
	return s.product(t, id)
}

func (s *suite) product(t TB, id uint32) seckill.Product {
	t.Helper()
	p, err := s.Store.Product(t.Context(), id)
	must(t, err)
	return p
}

// item returns a claim of one unit in the product's present epoch.
func (s *suite) item(t TB, p seckill.Product, buyer string, edits ...func(*store.Item)) store.Item {
	t.Helper()
	now := s.now(t)
	item := store.Item{
		Claim: seckill.Claim{
			OrderNo: seckill.NewOrderNo(now, p.ID, s.orders.Add(1)),
			Buyer:   buyer, Quantity: 1,
		},
		ProductID: p.ID, Group: p.Group, Shard: seckill.HomeShard(&p, buyer), Epoch: p.Epoch,
		At: now, PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name, Limit: p.PerUserLimit,
	}
	for _, edit := range edits {
		edit(&item)
	}
	return item
}

func quantity(n int) func(*store.Item)   { return func(i *store.Item) { i.Claim.Quantity = n } }
func key(k string) func(*store.Item)     { return func(i *store.Item) { i.Claim.Key = k } }
func ref(r string) func(*store.Item)     { return func(i *store.Item) { i.Claim.Ref = r } }
func letter(id int64) func(*store.Item)  { return func(i *store.Item) { i.LetterID = id } }
func atEpoch(e uint64) func(*store.Item) { return func(i *store.Item) { i.Epoch = e } }
func request(items ...store.Item) store.ConfirmRequest {
	req := store.ConfirmRequest{Items: items, ExpireAfter: far}
	if len(items) > 0 {
		req.ProductID = items[0].ProductID
	}
	return req
}

// confirm confirms items of one product and expects the given outcomes.
func (s *suite) confirm(t TB, items []store.Item, want ...store.ConfirmOutcome) {
	t.Helper()
	got, err := s.Store.Confirm(t.Context(), request(items...))
	must(t, err)
	equal(t, "outcomes", got, want)
}

// buy confirms one new order of the buyer.
func (s *suite) buy(t TB, p seckill.Product, buyer string, edits ...func(*store.Item)) seckill.Order {
	t.Helper()
	return s.buyFor(t, p, buyer, far, edits...)
}

// buyFor is buy with a given time to pay.
func (s *suite) buyFor(t TB, p seckill.Product, buyer string, expireAfter time.Duration, edits ...func(*store.Item)) seckill.Order {
	t.Helper()
	item := s.item(t, p, buyer, edits...)
	req := request(item)
	req.ExpireAfter = expireAfter
	got, err := s.Store.Confirm(t.Context(), req)
	must(t, err)
	equal(t, "outcomes", got, []store.ConfirmOutcome{store.ConfirmNew})
	return s.order(t, item.Claim.OrderNo)
}

func (s *suite) order(t TB, no seckill.OrderNo) seckill.Order {
	t.Helper()
	order, err := s.Store.Order(t.Context(), no)
	must(t, err)
	return order
}

func (s *suite) cancel(t TB, order seckill.Order) seckill.Order {
	t.Helper()
	order, err := s.Store.Cancel(t.Context(), order.OrderNo, seckill.ReasonByBuyer, operator)
	must(t, err)
	return order
}

// notice returns an exact payment for the order. Each trade number is another payment.
func notice(order seckill.Order, trade string) payment.Notice {
	return payment.Notice{
		Provider: "sandbox", TradeNo: order.OrderNo.String() + trade, OrderNo: order.OrderNo.String(),
		AmountCents: order.AmountCents(), Currency: order.Currency, PaidAt: order.CreatedAt,
	}
}

func (s *suite) record(t TB, n payment.Notice, want store.PaymentResult) {
	t.Helper()
	got, err := s.Store.RecordPayment(t.Context(), n)
	must(t, err)
	equal(t, "payment result", got, want)
}

// pay pays the order exactly.
func (s *suite) pay(t TB, order seckill.Order) seckill.Order {
	t.Helper()
	s.record(t, notice(order, "-pay"), store.PaymentPaid)
	return s.order(t, order.OrderNo)
}

func (s *suite) payments(t TB, order string, kind string) []store.Payment {
	t.Helper()
	payments, err := s.Store.Payments(t.Context(), store.PaymentFilter{OrderNo: order, Type: kind, Limit: all})
	must(t, err)
	return payments
}

// owed lists the product's owed releases.
func (s *suite) owed(t TB, product uint32) []store.Release {
	t.Helper()
	due, err := s.Store.ReleasesDue(t.Context(), all)
	must(t, err)
	var mine []store.Release
	for _, release := range due {
		if release.ProductID == product {
			mine = append(mine, release)
		}
	}
	return mine
}

// settleReleases settles all releases that the product owes.
func (s *suite) settleReleases(t TB, product uint32) {
	t.Helper()
	must(t, s.Store.SettleReleases(t.Context(), s.owed(t, product)))
	equal(t, "releases owed after they were heard", len(s.owed(t, product)), 0)
}

// events lists the product's events, oldest first.
func (s *suite) events(t TB, product uint32) []seckill.Event {
	t.Helper()
	var mine []seckill.Event
	for after := int64(0); ; {
		page, err := s.Store.Events(t.Context(), after, 1000)
		must(t, err)
		if len(page) == 0 {
			return mine
		}
		for _, event := range page {
			if event.ProductID == product {
				mine = append(mine, event)
			}
		}
		after = page[len(page)-1].ID
	}
}

func (s *suite) count(t TB, product uint32, kind seckill.EventKind) int {
	t.Helper()
	n := 0
	for _, event := range s.events(t, product) {
		if event.Kind == kind {
			n++
		}
	}
	return n
}

func (s *suite) figures(t TB, product uint32) store.Figures {
	t.Helper()
	figures, err := s.Store.Figures(t.Context(), product)
	must(t, err)
	return figures
}

func (s *suite) audit(t TB, product uint32) []store.AuditLine {
	t.Helper()
	lines, err := s.Store.Audit(t.Context(), store.AuditFilter{ProductID: product, Limit: all})
	must(t, err)
	return lines
}

// wantAudited expects that act writes exactly one audit line with the operator's name.
func (s *suite) wantAudited(t TB, product uint32, act func()) {
	t.Helper()
	before := len(s.audit(t, product))
	act()
	lines := s.audit(t, product)
	if len(lines) != before+1 {
		t.Fatalf("audit has %d lines, want one more than %d", len(lines), before)
	}
	equal(t, "who", lines[0].Actor, operator.Name)
	equal(t, "why", lines[0].Reason, operator.Reason)
	if lines[0].Action == "" || lines[0].At.IsZero() {
		t.Errorf("audit line says neither what nor when: %+v", lines[0])
	}
}

// wantUnchanged expects that act does not change the product, the units of its orders, its owed
// releases, its letters and its events.
func (s *suite) wantUnchanged(t TB, product uint32, act func()) {
	t.Helper()
	before, events := s.figures(t, product), len(s.events(t, product))
	act()
	after := s.figures(t, product)
	if !reflect.DeepEqual(before, after) {
		t.Errorf("figures changed\n from %+v\n   to %+v", before, after)
	}
	equal(t, "events", len(s.events(t, product)), events)
}

// TB has the methods of *testing.T, *testing.B and *rapid.T that the checks need.
type TB interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// must ends the test on an error.
func must(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// wantCode expects an error with the code.
func wantCode(t TB, err error, code seckill.Code) {
	t.Helper()
	var e *seckill.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error is %v, want one with code %s", err, code)
	}
}

// wantError expects the error target.
func wantError(t TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error is %v, want %v", err, target)
	}
}

func equal[T any](t TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func eventually(t TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("timeout waiting for %s", what)
		case <-poll.C:
		}
	}
}

func numbered(prefix string, n int) string { return fmt.Sprintf("%s-%d", prefix, n) }
