package paysandbox

import (
	"context"
	"fmt"
	"sync"

	"seckill/internal/payment"
)

// rememberedRefunds bounds the memory, which is emptied then: about 20 MiB, and
// far more refunds than are ever repeated late.
const rememberedRefunds = 1 << 16

// refundMemory knows the refunds made last, so that a repeated one is noticed.
type refundMemory struct {
	mu   sync.Mutex
	done map[string]payment.Refund
}

// Refund returns imaginary money, once per id as long as the id is
// remembered. The same id for other money is refused for good, as gateways do.
func (s *Sandbox) Refund(ctx context.Context, refund payment.Refund) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("refund: %w", err)
	}
	if err := checkRefund(refund); err != nil {
		return fmt.Errorf("refund %q: %w: %w", refund.ID, payment.ErrRefused, err)
	}
	fresh, same := s.refunds.record(refund)
	if !same {
		return fmt.Errorf("refund %q: %w: the id was used for other money", refund.ID, payment.ErrRefused)
	}
	if fresh {
		s.log.InfoContext(ctx, "sandbox refund", "refund_id", refund.ID, "order_no", refund.OrderNo,
			"trade_no", refund.TradeNo, "amount_cents", refund.AmountCents, "currency", refund.Currency, "reason", refund.Reason)
	}
	return nil
}

func checkRefund(refund payment.Refund) error {
	if err := checkNumber("id", refund.ID); err != nil {
		return err
	}
	if err := checkNumber("trade_no", refund.TradeNo); err != nil {
		return err
	}
	if refund.AmountCents < 0 || refund.AmountCents > maxAmountCents {
		return fmt.Errorf("amount must be 0 to %d", int64(maxAmountCents))
	}
	return checkCurrency(refund.Currency)
}

// record notes a refund: fresh if its id is new, same if it is new or was for
// the same money.
func (m *refundMemory) record(refund payment.Refund) (fresh, same bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, ok := m.done[refund.ID]; ok {
		return false, before.TradeNo == refund.TradeNo && before.AmountCents == refund.AmountCents && before.Currency == refund.Currency
	}
	if m.done == nil || len(m.done) == rememberedRefunds {
		m.done = map[string]payment.Refund{}
	}
	m.done[refund.ID] = refund
	return true, true
}
