package paymenttest

import (
	"net/url"
	"regexp"
	"sync"
	"testing"
	"time"
)

// back is the address to which buyers return.
const back = "https://shop.example/#/orders/SK1"

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

func testName(t *testing.T, h Harness) {
	name := h.Provider.Name()
	if !namePattern.MatchString(name) {
		t.Errorf("name %q does not match %s", name, namePattern)
	}
	if again := h.Provider.Name(); again != name {
		t.Errorf("the name changed from %q to %q", name, again)
	}
}

func testBegin(t *testing.T, h Harness) {
	order := number(t).order(0, 699900, 2)
	session, err := h.Provider.Begin(t.Context(), order, back)
	if err != nil {
		t.Fatal(err)
	}
	if address, err := url.Parse(session.PayURL); err != nil || session.PayURL == "" || address.Path == "" && address.Host == "" {
		t.Errorf("%q is no address (%v)", session.PayURL, err)
	}
	if !session.ExpiresAt.After(time.Now()) || session.ExpiresAt.After(order.PayBefore) {
		t.Errorf("expires %v, want after now and not after pay_before %v", session.ExpiresAt, order.PayBefore)
	}
}

func testBeginRepeated(t *testing.T, h Harness) {
	order := number(t).order(0, 100, 1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if session, err := h.Provider.Begin(t.Context(), order, back); err != nil || session.PayURL == "" {
				t.Errorf("begin again: %+v, %v", session, err)
			}
		})
	}
	wg.Wait()
	session, err := h.Provider.Begin(t.Context(), order, back)
	if err != nil {
		t.Fatal(err)
	}
	callback := h.Pay(t, session)
	notice, err := h.Provider.Notice(t.Context(), callback.Header, callback.Body)
	if err != nil || notice.OrderNo != order.OrderNo.String() {
		t.Errorf("the buyer cannot pay at the last address: %+v, %v", notice, err)
	}
}

func testPay(t *testing.T, h Harness) {
	n := number(t)
	for i, tc := range []struct {
		price    int64
		quantity int
	}{{1, 1}, {699900, 1}, {699900, 3}, {99, 100}} {
		order := n.order(i, tc.price, tc.quantity)
		session, err := h.Provider.Begin(t.Context(), order, back)
		if err != nil {
			t.Fatal(err)
		}
		callback := h.Pay(t, session)
		notice, err := h.Provider.Notice(t.Context(), callback.Header, callback.Body)
		if err != nil {
			t.Fatal(err)
		}
		if notice.OrderNo != order.OrderNo.String() || notice.AmountCents != order.AmountCents() || notice.Currency != order.Currency {
			t.Errorf("paid %s with %d %s, want %s with %d %s", notice.OrderNo, notice.AmountCents, notice.Currency,
				order.OrderNo, order.AmountCents(), order.Currency)
		}
		if notice.TradeNo == "" || notice.Provider != h.Provider.Name() || notice.PaidAt.IsZero() {
			t.Errorf("incomplete notice %+v", notice)
		}
	}
}
