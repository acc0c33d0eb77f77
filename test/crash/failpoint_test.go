package crash

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
	"seckill/test/market"
)

const (
	sneaker = uint32(1) // the product on sale in every ordeal
	extra   = uint32(2) // one that an ordeal creates itself
	stock   = 6
	limit   = 2
)

// ordeal is a death at one point: the engine is prepared, started with the
// point armed, driven to it, seen dead there, started again and held to all
// promises.
type ordeal struct {
	point    string // name, or name:N for its Nth passing
	while    string // what the engine was doing
	strategy string // of the product; "" is the engine's default
	shards   int    // of the product; 0 is the engine's default
	// settings of the lives up to the death; the last one has the defaults.
	settings map[string]string
	prepare  func(s *scene)
	drive    func(s *scene)
	after    func(s *scene)
}

// scene is one ordeal's stage.
type scene struct {
	*book
	order *market.Claim // what prepare has bought, if anything
}

func TestFailpoints(t *testing.T) {
	for _, o := range ordeals() {
		t.Run(o.point+"/"+o.while, func(t *testing.T) {
			t.Parallel()
			o.run(t)
		})
	}
}

func (o ordeal) run(t *testing.T) {
	quick := map[string]string{"worker.batch_wait": "1ms"}
	maps.Copy(quick, o.settings)
	e := engine.Start(t, engine.Options{Settings: quick})
	s := &scene{book: newBook(t, e, engine.Product{ID: sneaker, Stock: stock, PerUserLimit: limit, Strategy: o.strategy, Shards: o.shards})}
	if o.prepare != nil {
		o.prepare(s)
	}
	e.Kill()
	e.StartArmed(o.point)
	if e.WaitReady() == nil && o.drive != nil {
		o.drive(s)
	}
	market.Eventually(t, "the engine dies at "+o.point, func(context.Context) bool { return !e.Running() })
	e.Kill()
	name, _, _ := strings.Cut(o.point, ":")
	if !strings.Contains(e.Log(), "fault: killed at "+name+"\n") {
		t.Fatalf("it died, but not at %s", name)
	}
	for key := range o.settings {
		e.Unset(key)
	}
	e.Start()
	if o.after != nil {
		o.after(s)
	}
	s.Settle()
	s.SellOut()
	s.Check()
}

// The preparations.

// pending has an order that waits for money.
func pending(s *scene) {
	s.order = s.Buy(sneaker, 1)
	s.Confirmed(s.order)
}

// paid has an order that is paid.
func paid(s *scene) {
	pending(s)
	s.Pay(s.order)
}

// The drives. What they are answered does not matter: the engine dies.

func buying(s *scene) {
	c := s.NewClaim(s.NewBuyer(), sneaker, engine.Purchase{Quantity: 2, Key: "fatal"})
	for market.Temporary(s.Send(s.T.Context(), c)) && market.Pause(s.T.Context(), 20*time.Millisecond) {
	}
}

func cancelling(s *scene) { s.order.Buyer.Cancel(s.T.Context(), s.order.No) }

func refunding(s *scene) { s.Refund(s.T.Context(), s.order.No) }

func paying(s *scene) { s.Tell(s.T.Context(), s.NewMoney(s.order.No, 100)) }

func overpaying(s *scene) { s.Tell(s.T.Context(), s.NewMoney(s.order.No, 101)) }

func raising(s *scene) { s.SendChange(s.T.Context(), s.NewChange(sneaker, 3)) }

func lowering(s *scene) { s.SendChange(s.T.Context(), s.NewChange(sneaker, -2)) }

func pausing(s *scene) { s.Operator().Pause(s.T.Context(), sneaker) }

func patching(s *scene) {
	s.Operator().Patch(s.T.Context(), sneaker, map[string]any{"name": "new name"})
}

func reconciling(s *scene) { s.Operator().Reconcile(s.T.Context(), sneaker, false) }

func repairing(s *scene) { s.Operator().Reconcile(s.T.Context(), sneaker, true) }

func recovering(s *scene) {
	s.Rebuild(sneaker)
	s.Operator().Recover(s.T.Context(), sneaker)
}

func preheating(s *scene) { s.Operator().OpenSale(s.T.Context(), extraProduct()) }

func extraProduct() engine.Product {
	return engine.Product{ID: extra, Stock: 3, PerUserLimit: 1, LimitGroup: extra, PriceCents: 100}
}

// reopen does again what preheating did: safe to repeat.
func reopen(s *scene) {
	ctx := s.T.Context()
	if _, err := s.Operator().OpenSale(ctx, extraProduct()); engine.CodeOf(err) == seckill.CodeWrongState {
		if _, err = s.Operator().Preheat(ctx, extra); err != nil {
			s.T.Fatalf("preheat again: %v", err)
		}
	} else if err != nil {
		s.T.Fatalf("open the sale again: %v", err)
	}
	s.Products[extra] = extraProduct()
}

// ordeals is one list for the tests and for the check that none is missing.
func ordeals() []ordeal {
	var all []ordeal
	add := func(prepare, drive, after func(*scene), while string, points ...string) {
		for _, point := range points {
			all = append(all, ordeal{point: point, while: while, prepare: prepare, drive: drive, after: after})
		}
	}
	around := func(point string) []string { return []string{point + ".before_commit", point + ".after_commit"} }

	add(nil, buying, nil, "reserve", around("ledger")...)
	add(nil, buying, nil, "acknowledge", "ledger.before_commit:2", "ledger.after_commit:2")
	add(nil, buying, nil, "confirm", around("store.confirm")...)
	add(nil, buying, nil, "confirm", "worker.after_receive", "worker.after_confirm", "worker.before_ack", "worker.after_ack")

	add(pending, cancelling, nil, "cancel", around("store.cancel")...)
	add(pending, cancelling, nil, "release", around("ledger")...)
	add(pending, cancelling, nil, "release", append(around("store.release"), "release.after_ledger")...)

	add(pending, paying, nil, "pay", around("store.pay")...)
	add(pending, overpaying, nil, "pay too much", around("store.pay")...)
	add(pending, overpaying, nil, "return money", append(around("store.repay"), "refund.after_provider")...)
	add(paid, refunding, nil, "refund", around("store.refund")...)
	add(paid, refunding, nil, "release a refunded order", append(around("ledger"), "release.after_ledger")...)
	add(paid, refunding, nil, "return a refunded order's money", append(around("store.repay"), "refund.after_provider")...)

	for while, drive := range map[string]func(*scene){"stock up": raising, "stock down": lowering} {
		add(nil, drive, nil, while, around("store.stock")...)
		add(nil, drive, nil, while, "store.stock.before_commit:2", "store.stock.after_commit:2", "stock.after_begin", "stock.after_ledger")
		add(nil, drive, nil, while, around("ledger")...)
	}

	add(nil, pausing, nil, "pause", around("store.state")...)
	add(nil, pausing, nil, "pause", around("ledger")...)
	add(nil, patching, nil, "patch", around("store.patch")...)
	add(nil, reconciling, nil, "reconcile", around("store.report")...)

	add(rehearsed, deleting, deleted, "delete", append(around("store.delete"), around("store.delete some")...)...)
	add(rehearsed, deleting, deleted, "delete", "delete.after_begin", "delete.after_ledger", "delete.between_parts")
	add(rehearsed, deleting, deleted, "delete", around("ledger")...)

	steps := []string{"rebuild.after_epoch", "rebuild.after_install", "rebuild.after_open"}
	add(nil, preheating, reopen, "create", around("store.create")...)
	add(nil, preheating, reopen, "preheat", append(around("store.epoch"), steps...)...)
	add(nil, preheating, reopen, "announce", around("store.announce")...)
	for n := range 3 {
		add(nil, preheating, reopen, "preheat", fmt.Sprintf("ledger.before_commit:%d", n+1), fmt.Sprintf("ledger.after_commit:%d", n+1))
		add(pending, recovering, nil, "recover", fmt.Sprintf("ledger.before_commit:%d", n+1), fmt.Sprintf("ledger.after_commit:%d", n+1))
	}
	add(pending, recovering, nil, "recover", append(append(around("store.epoch"), around("store.rebuilding")...), steps...)...)
	return slices.Concat(all, directOrdeals(around), shardOrdeals(around), rareOrdeals(around))
}
