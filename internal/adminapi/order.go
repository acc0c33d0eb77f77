package adminapi

import (
	"context"
	"fmt"
	"math"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/store"
)

// Bounds of a page of a list.
const (
	defaultPage = 50
	maxPage     = 500
)

// reasonByOperator is an order's reason if the operator gives none.
const reasonByOperator = "by_operator"

func (in *input) limit() int { return int(in.paramInt("limit", 1, maxPage, defaultPage)) }

// order converts an order.
func (a *handler) order(o *seckill.Order) api.AdminOrder {
	return api.AdminOrderOf(o, a.Sales.IsTest(o.ProductID))
}

func (a *handler) searchOrders(in *input) action {
	filter := store.OrderFilter{
		Buyer:     in.paramText("buyer", seckill.MaxBuyerBytes),
		ProductID: in.paramProduct(),
		Ref:       in.paramText("ref", seckill.MaxRefBytes),
		Before:    in.paramOrderNo("before"),
		Limit:     in.limit(),
	}
	// Queued orders are not in the store, so they cannot be listed by status. The
	// queue's depth and the letters show their number, the ledger those of a buyer.
	if name := in.paramOneOf("status", "pending", "paid", "cancelled", "failed", "refunded"); name != "" {
		status, err := seckill.ParseOrderStatus(name)
		in.failWith(err)
		filter.Status = &status
	}
	return func(ctx context.Context) (answer, error) {
		found, err := a.Orders.Search(ctx, filter)
		if err != nil {
			return answer{}, fmt.Errorf("search orders: %w", err)
		}
		return answer{body: struct {
			Orders  []api.AdminOrder `json:"orders"`
			Partial bool             `json:"partial"`
		}{api.List(found.Orders, a.order), found.Partial}}, nil
	}
}

func (a *handler) getOrder(in *input) action {
	no := in.orderNo()
	return func(ctx context.Context) (answer, error) {
		order, err := a.Orders.Look(ctx, no)
		if err != nil {
			return answer{}, fmt.Errorf("read order %s: %w", no, err)
		}
		story, err := a.Records.Story(ctx, no)
		// The store has no history of an order that waits in the queue.
		if err != nil && !(order.Status == seckill.OrderQueued && seckill.CodeNotFound.In(err)) {
			return answer{}, fmt.Errorf("read the story of %s: %w", no, err)
		}
		return answer{body: api.OrderStory{
			AdminOrder: a.order(&order), Story: api.List(story, api.StoryLineOf),
		}}, nil
	}
}

func (a *handler) cancelOrder(in *input) action {
	no, actor := in.orderNo(), in.actor()
	reason := actor.Reason
	if reason == "" {
		reason = reasonByOperator
	}
	return func(ctx context.Context) (answer, error) {
		order, err := a.Orders.Cancel(ctx, no, reason, actor)
		return record("cancel order "+no.String(), order, err, a.order)
	}
}

func (a *handler) refundOrder(in *input) action {
	no, actor := in.orderNo(), in.actor()
	return func(ctx context.Context) (answer, error) {
		order, err := a.Orders.Refund(ctx, no, actor)
		return record("refund order "+no.String(), order, err, a.order)
	}
}

func (a *handler) listLetters(in *input) action {
	filter := store.LetterFilter{
		ProductID: in.paramProduct(),
		DeadOnly:  in.paramOneOf("state", "dead", "any") != "any",
		After:     in.paramInt("after", 0, math.MaxInt64, 0),
		Limit:     in.limit(),
	}
	return func(ctx context.Context) (answer, error) {
		letters, err := a.Records.Letters(ctx, filter)
		return list("dead_letters", letters, err, api.LetterOf)
	}
}

func (a *handler) retryLetter(in *input) action {
	id, actor := in.pathNumber("id", math.MaxInt64), in.actor()
	return func(ctx context.Context) (answer, error) {
		letter, err := a.Orders.Retry(ctx, id, actor)
		return record(fmt.Sprintf("retry letter %d", id), letter, err, api.LetterOf)
	}
}

func (a *handler) discardLetter(in *input) action {
	id, actor := in.pathNumber("id", math.MaxInt64), in.actor()
	return func(ctx context.Context) (answer, error) {
		order, err := a.Orders.Discard(ctx, id, actor)
		return record(fmt.Sprintf("discard letter %d", id), order, err, a.order)
	}
}
