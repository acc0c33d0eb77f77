package storetest

import (
	"context"
	"fmt"

	"seckill"
	"seckill/internal/store"
)

// maxFindings bounds the findings of one check.
const maxFindings = 20

// CheckPromises checks I1, I2, I3, I6 and I8 for one product without concurrent changes. It
// counts orders and payments itself, and also runs the store's own checks.
func CheckPromises(t TB, st store.Store, product uint32) {
	t.Helper()
	// The test's own context has ended when this runs as a cleanup.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	figures, err := st.Figures(ctx, product)
	must(t, err)
	orders, err := ordersOf(ctx, st, store.OrderFilter{ProductID: product})
	must(t, err)

	checkUnits(t, figures, orders)
	checkLimits(ctx, t, st, figures.Product)
	movements, err := movementsOf(ctx, st, orders)
	must(t, err)
	for _, order := range orders {
		checkMoney(t, order, movements[order.OrderNo.String()])
	}
	found := func(promise string, findings []store.Finding, err error) {
		t.Helper()
		must(t, err)
		for _, f := range findings {
			t.Errorf("%s of product %d: expected %s, found %s: %s", promise, product, f.Expected, f.Found, f.Detail)
		}
	}
	findings, err := st.CheckStockLog(ctx, product, maxFindings)
	found("I6", findings, err)
	findings, err = st.CheckTally(ctx, product)
	found("I1", findings, err)
	findings, err = st.CheckBuyers(ctx, figures.Product.Group, maxFindings)
	found("I3", findings, err)
	findings, err = st.CheckMoney(ctx, product, maxFindings)
	found("I8", findings, err)
}

// ordersOf reads all orders that match the filter, page by page.
func ordersOf(ctx context.Context, st store.Store, filter store.OrderFilter) ([]seckill.Order, error) {
	var orders []seckill.Order
	for filter.Limit = 500; ; {
		page, err := st.SearchOrders(ctx, filter)
		if err != nil {
			return nil, fmt.Errorf("search orders: %w", err)
		}
		if len(page) == 0 {
			return orders, nil
		}
		orders = append(orders, page...)
		filter.Before = page[len(page)-1].OrderNo
	}
}

// movementsOf reads the payments and refunds of the orders: all at once if the store has few,
// else order by order.
func movementsOf(ctx context.Context, st store.Store, orders []seckill.Order) (map[string][]store.Payment, error) {
	movements := map[string][]store.Payment{}
	everything, err := st.Payments(ctx, store.PaymentFilter{Limit: all})
	if err != nil {
		return nil, fmt.Errorf("list payments: %w", err)
	}
	if len(everything) < all {
		for _, m := range everything {
			movements[m.OrderNo] = append(movements[m.OrderNo], m)
		}
		return movements, nil
	}
	for _, order := range orders {
		no := order.OrderNo.String()
		if movements[no], err = st.Payments(ctx, store.PaymentFilter{OrderNo: no, Limit: all}); err != nil {
			return nil, fmt.Errorf("list payments of %s: %w", no, err)
		}
	}
	return movements, nil
}

// checkUnits checks I1 and I2, and that the figures are the sums of the orders.
func checkUnits(t TB, f store.Figures, orders []seckill.Order) {
	t.Helper()
	units := map[seckill.OrderStatus]int64{}
	for _, order := range orders {
		units[order.Status] += int64(order.Quantity)
	}
	counted := map[seckill.OrderStatus]int64{
		seckill.OrderPending: f.Pending, seckill.OrderPaid: f.Paid, seckill.OrderCancelled: f.Cancelled,
		seckill.OrderFailed: f.Failed, seckill.OrderRefunded: f.Refunded,
	}
	for status, want := range counted {
		if units[status] != want {
			t.Errorf("product %d: figures say %d units %s, its orders %d", f.Product.ID, want, status, units[status])
		}
	}
	live := units[seckill.OrderPending] + units[seckill.OrderPaid]
	if f.Product.Offered != f.Product.Stock+live {
		t.Errorf("I1 of product %d: offered %d, but stock %d + live %d", f.Product.ID, f.Product.Offered, f.Product.Stock, live)
	}
	if live > f.Product.Offered || f.Product.Stock < 0 {
		t.Errorf("I2 of product %d: live %d of offered %d, stock %d", f.Product.ID, live, f.Product.Offered, f.Product.Stock)
	}
}

// checkLimits checks I3 for the product's limit group.
func checkLimits(ctx context.Context, t TB, st store.Store, p seckill.Product) {
	t.Helper()
	products, err := st.Products(ctx, store.ProductFilter{Limit: 1000})
	must(t, err)
	live := map[string]int{}
	for _, member := range products {
		if member.Group != p.Group {
			continue
		}
		orders, err := ordersOf(ctx, st, store.OrderFilter{ProductID: member.ID})
		must(t, err)
		for _, order := range orders {
			if order.Status.Live() {
				live[order.Buyer] += order.Quantity
			}
		}
	}
	for buyer, units := range live {
		if units > p.PerUserLimit {
			t.Errorf("I3 of group %d: buyer %q has %d live units, limit %d", p.Group, buyer, units, p.PerUserLimit)
		}
	}
}

// checkMoney checks I8 for one order: exactly one exact payment paid it, and every other
// payment has exactly one refund.
func checkMoney(t TB, order seckill.Order, movements []store.Payment) {
	t.Helper()
	refunds := map[string]int{}
	for _, m := range movements {
		if m.Type == "refund" {
			refunds[m.PaymentID]++
		}
	}
	applied := 0
	for _, m := range movements {
		if m.Type != "payment" {
			continue
		}
		want := 1
		if m.Status == "applied" {
			applied++
			if m.AmountCents != order.AmountCents() || m.Currency != order.Currency {
				t.Errorf("I8 of %s: paid by %d %s, costs %d %s", order.OrderNo, m.AmountCents, m.Currency, order.AmountCents(), order.Currency)
			}
			if order.Status == seckill.OrderPaid {
				want = 0
			}
		}
		if refunds[m.ID] != want {
			t.Errorf("I8 of %s (%s): payment %s (%s) has %d refunds, want %d", order.OrderNo, order.Status, m.TradeNo, m.Status, refunds[m.ID], want)
		}
	}
	paid := order.Status == seckill.OrderPaid || order.Status == seckill.OrderRefunded
	if paid != (applied == 1) || applied > 1 {
		t.Errorf("I8 of %s: it is %s with %d payments applied", order.OrderNo, order.Status, applied)
	}
}
