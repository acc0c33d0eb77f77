package loadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"seckill"
	"seckill/internal/api"
)

// inspector reads the state after the crowd has gone.
type inspector struct {
	*crowd
	limit int64
	admin Admin
	shops []*shop
	mu    sync.Mutex
}

// evenly picks at most most of the numbers, evenly distributed.
func evenly(numbers []int, most int) []int {
	if len(numbers) <= most {
		return numbers
	}
	picked := make([]int, most)
	for i := range picked {
		picked[i] = numbers[i*len(numbers)/most]
	}
	return picked
}

// byFate lists the buyers with an outcome.
func (c *crowd) byFate(f fate) []int {
	var found []int
	for i := range c.buyers {
		if c.buyers[i].fate == f {
			found = append(found, i)
		}
	}
	return found
}

// fates counts the outcomes of all requests and repeats.
func (c *crowd) fates(e *Evidence) {
	for i := range c.buyers {
		b := &c.buyers[i]
		switch b.fate {
		case fateWon:
			e.Won++
		case fateRefused:
			e.Refused++
		case fateUnknown:
			e.GaveUp++
		default:
			e.NeverAsked++
		}
		switch {
		case b.lack == nil:
		case b.fate == fateWon:
			e.Repeats.NoToken++
			e.Repeats.NoTokenWhy = b.lack.Error()
		default:
			e.NoToken++
			e.NoTokenWhy = b.lack.Error()
		}
		switch b.repeat {
		case repeatSame:
			e.Repeats.Same++
		case repeatOther:
			e.Repeats.Other++
		case repeatUnknown:
			if b.lack == nil {
				e.Repeats.Unknown++
			}
		}
		if b.twist != "" {
			if b.repeat != repeatOther {
				e.Repeats.Other++
			}
			e.Repeats.Example = buyerName(c.opt.Run, i) + ": " + b.twist
		}
	}
	e.Orders.Promised = e.Won
	e.SoldOutAnswers = c.tally.byName()[string(seckill.CodeSoldOut)]
}

// readOrders reads the promised orders as their buyers do, and compares each with
// the buyer's actions.
func (in *inspector) readOrders(ctx context.Context, e *Evidence, winners []int, done *settling) {
	e.Orders.ByStatus = make(map[string]int64)
	in.inTurn(ctx, "reading orders", in.shops, len(winners), func(s *shop, n int) {
		i := winners[n]
		b := &in.buyers[i]
		var order api.Order
		err := in.steady(ctx, func() (err error) {
			order, err = s.order(b.authorization, b.orderNo)
			return err
		})
		in.mu.Lock()
		defer in.mu.Unlock()
		in.noteOrder(&e.Orders, b, &order, err)
		if err == nil {
			e.Money.notePayment(done.pays[i], order)
			e.Cancels.note(done.cancels[i], order, "cancelled")
		}
	})
	e.Orders.Unread += int64(len(winners)) - e.Orders.Read - e.Orders.Unread // if cut short
}

func (in *inspector) noteOrder(o *Orders, b *buyer, order *api.Order, err error) {
	var no *refusal
	switch {
	case errors.As(err, &no) && no.code == seckill.CodeNotFound:
		o.Read++
		o.Lost++
		o.Example = b.orderNo + " (404)"
	case err != nil:
		o.Unread++
	default:
		o.Read++
		o.ByStatus[order.Status]++
		known := order.Status == "pending" || order.Status == "paid" || order.Status == "cancelled" || order.Status == "refunded" ||
			order.Status == "failed" && order.Reason != ""
		if !known || order.OrderNo != b.orderNo || order.ProductID != in.product || order.Quantity != in.opt.Quantity {
			o.Lost++
			o.Example = fmt.Sprintf("%s (status %q, reason %q, product %d, quantity %d)", b.orderNo, order.Status, order.Reason, order.ProductID, order.Quantity)
		}
	}
}

// notePayment compares an order with its payment. A payment after the order's
// expiry must be refunded; readMoney checks that.
func (m *Money) notePayment(did *move, order api.Order) {
	if did != nil && order.Status == "cancelled" && order.Reason == seckill.ReasonExpired {
		did.late = true
		m.Asked++
		m.Late++
		return
	}
	m.note(did, order, "paid")
}

// note compares an order with its expected state.
func (m *Moves) note(did *move, order api.Order, want string) {
	if did == nil {
		return
	}
	m.Asked++
	switch {
	case order.Status == want:
		m.Kept++
	case did.done > 0:
		m.Lost++
		m.Example = fmt.Sprintf("%s, which is %s", order.OrderNo, order.Status)
	default:
		m.Unknown++
		m.Example = fmt.Sprintf("%s: %v", order.OrderNo, did.failed)
	}
}

// readHoldings reads the order lists of winners, and of buyers who gave up without a
// clear answer: they may own an order. Buyers beyond the sample stay unknown.
func (in *inspector) readHoldings(ctx context.Context, e *Evidence, buyers []int) {
	h := &e.Holdings
	e.FoundUnknown = e.GaveUp
	in.inTurn(ctx, "reading buyers' lists", in.shops, len(buyers), func(s *shop, n int) {
		i := buyers[n]
		b := &in.buyers[i]
		var orders []api.Order
		err := in.steady(ctx, func() (err error) {
			orders, err = s.orders(b.authorization)
			return err
		})
		in.mu.Lock()
		defer in.mu.Unlock()
		if err != nil {
			h.Unread++
			return
		}
		h.Read++
		in.noteHolding(e, i, orders)
	})
	h.Unread += int64(len(buyers)) - h.Read - h.Unread // if cut short
}

func (in *inspector) noteHolding(e *Evidence, i int, orders []api.Order) {
	b, h := &in.buyers[i], &e.Holdings
	var live, all int64
	listed := b.orderNo == ""
	for _, o := range orders {
		if o.ProductID != in.product {
			continue
		}
		all += int64(o.Quantity)
		listed = listed || o.OrderNo == b.orderNo
		if o.Status == "queued" || o.Status == "pending" || o.Status == "paid" {
			live += int64(o.Quantity)
		}
	}
	h.MostUnits = max(h.MostUnits, live)
	if live > in.limit {
		h.Over++
		h.Example = fmt.Sprintf("%s with %d units", buyerName(in.opt.Run, i), live)
	}
	if !listed {
		h.Missing++
		h.Example = b.orderNo
	}
	if b.fate == fateUnknown {
		e.FoundUnits += all
		e.FoundUnknown--
	}
}

// readMoney reads the operator's payment records of paid orders, and tries to cancel
// these orders.
func (in *inspector) readMoney(ctx context.Context, e *Evidence, done *settling) {
	var paid []int
	for i := range in.buyers {
		if m := done.pays[i]; m != nil && m.done > 0 {
			paid = append(paid, i)
		}
	}
	paid = evenly(paid, MaxMoneyReads)
	looked := 0
	in.inTurn(ctx, "reading payments", in.shops, len(paid), func(s *shop, n int) {
		b := &in.buyers[paid[n]]
		late := done.pays[paid[n]].late
		var cancelled error
		if !late {
			cancelled = in.tryToCancelPaid(ctx, s, b)
		}
		moved, err := in.admin.Payments(ctx, b.orderNo)
		in.mu.Lock()
		defer in.mu.Unlock()
		looked++
		switch {
		case late:
		case errors.Is(cancelled, errNotTold):
			e.Money.Unread++
		case cancelled != nil:
			e.Money.Cancelled++
			e.Money.Example = b.orderNo
		default:
			e.Money.CancelRefused++
		}
		if err != nil {
			e.Money.Unread++
			return
		}
		e.Money.Read++
		if !countedOnce(moved, late) {
			e.Money.CountedTwice++
			e.Money.Example = fmt.Sprintf("%s with %d movements of money", b.orderNo, len(moved))
		}
	})
	e.Money.Unread += int64(len(paid) - looked) // if cut short
}

// countedOnce reports whether the records show exactly one payment, and one refund
// if it came late.
func countedOnce(moved []api.Payment, late bool) bool {
	payments, refunds := 0, 0
	for _, m := range moved {
		if m.Type == "payment" {
			payments++
		} else {
			refunds++
		}
	}
	return payments == 1 && (refunds == 1) == late && refunds <= 1
}
