// Package paymenttest is the conformance suite of payment.Provider. An adapter
// is done when it passes, against its gateway or the gateway's own sandbox.
package paymenttest

import (
	"net/http"
	"testing"
	"time"

	"seckill"
	"seckill/internal/payment"
)

// Harness is a provider together with the gateway behind it. The suite plays
// the buyer and the shop; the harness lets it see the gateway's side.
type Harness struct {
	Provider payment.Provider

	// Callback lets the gateway take the given money and returns the callback
	// that it sends for it. The suite does not set Notice.Provider.
	Callback func(t testing.TB, money payment.Notice) Callback

	// Sign returns the callback that the gateway would send if content, which
	// may be any nonsense, were what it has to say.
	Sign func(t testing.TB, content []byte) Callback

	// Pay goes to the session's address, pays there as a buyer does, and
	// returns the callback that the gateway sends.
	Pay func(t testing.TB, session payment.Session) Callback

	// Returned is the money that the gateway has given back under a refund id,
	// in cents, all calls together.
	Returned func(t testing.TB, refundID string) int64
}

// Callback is what a gateway sends to the shop.
type Callback struct {
	Header http.Header
	Body   []byte
}

func (c Callback) clone() Callback {
	return Callback{Header: c.Header.Clone(), Body: append([]byte(nil), c.Body...)}
}

// Run runs the suite. open is called once per test and cleans up by t.Cleanup.
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
		{"a refund whose answer was not heard is repeated safely", testRefundUnheard},
		{"a refund id does not serve for other money", testRefundOtherMoney},
		{"refunds with ids of their own return money each", testRefundsApart},
	} {
		t.Run(tc.promise, func(t *testing.T) { tc.test(t, open(t)) })
	}
}

// The suite's numbers grow, so that a gateway that outlives one test does not
// mistake one order or trade for another.
type numbers struct{ base uint64 }

func number(t testing.TB) numbers {
	hash := uint64(14695981039346656037)
	for _, c := range []byte(t.Name()) {
		hash = (hash ^ uint64(c)) * 1099511628211
	}
	return numbers{base: hash ^ uint64(time.Now().UnixNano())}
}

// order is a pending order with half an hour left.
func (n numbers) order(i int, priceCents int64, quantity int) *seckill.Order {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return &seckill.Order{
		OrderNo: seckill.NewOrderNo(now, 7, n.base+uint64(i)), Buyer: "buyer", ProductID: 7,
		ProductName: "手机 Phone", PriceCents: priceCents, Currency: "CNY", Quantity: quantity,
		Status: seckill.OrderPending, CreatedAt: now, PayBefore: now.Add(30 * time.Minute),
	}
}

// money is a payment that the gateway took.
func (n numbers) money(i int, cents int64) payment.Notice {
	order := n.order(i, cents, 1)
	return payment.Notice{
		TradeNo: "T" + order.OrderNo.String()[2:], OrderNo: order.OrderNo.String(),
		AmountCents: cents, Currency: "CNY", PaidAt: time.Now().UTC().Truncate(time.Second),
	}
}
