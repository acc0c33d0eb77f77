package paysandbox

import (
	"context"
	"fmt"
	"sync"

	"seckill/internal/payment"
)

// rememberedRefunds bounds the memory to about 20 MiB; above it the memory is
// emptied. Late repetitions are far fewer.
const rememberedRefunds = 1 << 16

// refundMemory holds the last refunds, so that a repeated one is recognised.
type refundMemory struct {
	mu   sync.Mutex
	done map[string]payment.Refund
}

// Refund returns imaginary money, once per remembered id. The same id with
// other money is refused for good, as real gateways do.
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

// record records a refund. fresh means a new id. same means a new id, or the
// same money as before.
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
