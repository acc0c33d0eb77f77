package crash

import (
	"context"
	"fmt"
	"net/url"

	"seckill"
	"seckill/test/engine"
	"seckill/test/market"
)

// rehearsed has a test product with an order, whose sale is over.
func rehearsed(s *scene) {
	ctx, operator := s.T.Context(), s.Operator()
	product := engine.Product{ID: extra, Stock: 3, PerUserLimit: 1, PriceCents: 100, Test: true}
	if _, err := operator.OpenSale(ctx, product); err != nil {
		s.T.Fatalf("open the rehearsal: %v", err)
	}
	market.Eventually(s.T, "somebody buys in the rehearsal", func(ctx context.Context) bool {
		_, err := s.engine.Buyer("rehearser").Buy(ctx, extra, engine.Purchase{Quantity: 1, Key: "k"})
		return err == nil
	})
	if _, err := operator.End(ctx, extra); err != nil {
		s.T.Fatalf("end the rehearsal: %v", err)
	}
	market.Eventually(s.T, "its order is written", func(ctx context.Context) bool { return len(s.ordersOf(ctx, extra)) == 1 })
}

func (s *scene) ordersOf(ctx context.Context, product uint32) []string {
	orders, err := s.Operator().Orders(ctx, url.Values{"product_id": {fmt.Sprint(product)}})
	if err != nil {
		return []string{err.Error(), ""}
	}
	nos := make([]string, len(orders))
	for i := range orders {
		nos[i] = orders[i].OrderNo
	}
	return nos
}

// deleting asks until the engine is dead: a reservation may still be queued.
func deleting(s *scene) {
	market.Eventually(s.T, "the deletion begins", func(ctx context.Context) bool {
		_, err := s.Operator().Delete(ctx, extra)
		return engine.CodeOf(err) != seckill.CodeBusy
	})
}

// deleted repeats the deletion, and wants nothing left.
func deleted(s *scene) {
	market.Eventually(s.T, "the rehearsal is deleted", func(ctx context.Context) bool {
		_, err := s.Operator().Delete(ctx, extra)
		return err == nil || engine.CodeOf(err) == seckill.CodeNotFound
	})
	ctx := s.T.Context()
	if _, err := s.Operator().Product(ctx, extra); engine.CodeOf(err) != seckill.CodeNotFound {
		s.T.Errorf("the deleted product is read: %v", err)
	}
	if left := s.ordersOf(ctx, extra); len(left) != 0 {
		s.T.Errorf("orders are left: %v", left)
	}
}
