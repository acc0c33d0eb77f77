// Package paymenttest is the conformance suite of payment.Provider. An adapter
// is done when it passes, with its gateway or the gateway's own sandbox.
//
//   - paymenttest.go: the harness and the list of tests
//   - begin.go, notice.go, acknowledge.go, refund.go: the tests of each method
package paymenttest

import (
	"net/http"
	"testing"
	"time"

	"seckill"
	"seckill/internal/payment"
)

// Harness is a provider and the gateway behind it. The suite acts as buyer and
// shop; the harness gives access to the gateway's side.
type Harness struct {
	Provider payment.Provider

	// Callback makes the gateway take the money, and returns the callback that
	// it sends. The suite does not set Notice.Provider.
	Callback func(t testing.TB, money payment.Notice) Callback

	// Sign returns the callback that the gateway would send with this content,
	// which may be invalid.
	Sign func(t testing.TB, content []byte) Callback

	// Pay pays at the session's address like a buyer, and returns the callback
	// that the gateway sends.
	Pay func(t testing.TB, session payment.Session) Callback

	// Returned is the money in cents that the gateway has returned for a refund
	// id, over all calls.
	Returned func(t testing.TB, refundID string) int64
}

// Callback is a request from the gateway to the shop.
type Callback struct {
	Header http.Header
	Body   []byte
}

func (c Callback) clone() Callback {
	return Callback{Header: c.Header.Clone(), Body: append([]byte(nil), c.Body...)}
}

// Run runs the suite. It calls open once per test; open cleans up with
// t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, tc := range []struct {
		promise string
		test    func(t *testing.T, h Harness)
	}{
		{"the name is one path segment and stays", testName},
		{"begin gives an address until the order expires", testBegin},
		{"begin may be called any number of times", testBeginRepeated},
		{"the buyer pays exactly the order's amount", testPay},
		{"an authentic callback is read as it was sent", testNotice},
		{"a callback may come any number of times", testNoticeRepeated},
		{"a callback with any byte changed is not authentic", testNoticeChanged},
		{"a callback without its signature is not authentic", testNoticeUnsigned},
		{"the signature of another callback is not authentic", testNoticeSwapped},
		{"signed nonsense is malformed", testNoticeMalformed},
		{"recorded money is acknowledged with 2xx", testAcknowledgeMoney},
		{"a refusal does not read as an acknowledgement", testAcknowledgeRefusal},
		{"a refund returns the money", testRefund},
		{"a refund repeated returns the money once", testRefundRepeated},
		{"a refund repeated at the same time returns the money once", testRefundConcurrent},
		{"a refund whose answer was lost is repeated safely", testRefundUnheard},
		{"a refund id does not serve for other money", testRefundOtherMoney},
		{"refunds with different ids each return money", testRefundsApart},
	} {
		t.Run(tc.promise, func(t *testing.T) { tc.test(t, open(t)) })
	}
}

// The numbers of a suite are unique over all runs, so that a gateway that
// outlives a test never sees an old order or trade number.
type numbers struct{ base uint64 }

func number(t testing.TB) numbers {
	hash := uint64(14695981039346656037)
	for _, c := range []byte(t.Name()) {
		hash = (hash ^ uint64(c)) * 1099511628211
	}
	return numbers{base: hash ^ uint64(time.Now().UnixNano())}
}

// order makes a pending order with half an hour left.
func (n numbers) order(i int, priceCents int64, quantity int) *seckill.Order {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return &seckill.Order{
		OrderNo: seckill.NewOrderNo(now, 7, n.base+uint64(i)), Buyer: "buyer", ProductID: 7,
		ProductName: "手机 Phone", PriceCents: priceCents, Currency: "CNY", Quantity: quantity,
		Status: seckill.OrderPending, CreatedAt: now, PayBefore: now.Add(30 * time.Minute),
	}
}

// money makes a payment that the gateway took.
func (n numbers) money(i int, cents int64) payment.Notice {
	order := n.order(i, cents, 1)
	return payment.Notice{
		TradeNo: "T" + order.OrderNo.String()[2:], OrderNo: order.OrderNo.String(),
		AmountCents: cents, Currency: "CNY", PaidAt: time.Now().UTC().Truncate(time.Second),
	}
}
