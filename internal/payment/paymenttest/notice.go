package paymenttest

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"
	"sync"
	"testing"

	"seckill/internal/payment"
)

// sample returns a payment and its callback.
func sample(t *testing.T, h Harness) (payment.Notice, Callback) {
	t.Helper()
	money := number(t).money(0, 699900)
	return money, h.Callback(t, money)
}

func testNotice(t *testing.T, h Harness) {
	n := number(t)
	unknown := n.money(1, 1)
	unknown.OrderNo = "an-unknown-order"
	for _, money := range []payment.Notice{n.money(0, 699900), unknown, n.money(2, 1_000_000_00)} {
		callback := h.Callback(t, money)
		got, err := h.Provider.Notice(t.Context(), callback.Header, callback.Body)
		if err != nil {
			t.Fatal(err)
		}
		want := money
		want.Provider = h.Provider.Name()
		if !got.PaidAt.Equal(want.PaidAt) {
			t.Errorf("paid at %v, want %v", got.PaidAt, want.PaidAt)
		}
		got.PaidAt = want.PaidAt
		if got != want {
			t.Errorf("read %+v, want %+v", got, want)
		}
	}
}

func testNoticeRepeated(t *testing.T, h Harness) {
	_, callback := sample(t, h)
	kept := callback.clone()
	first, err := h.Provider.Notice(t.Context(), callback.Header, callback.Body)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if again, err := h.Provider.Notice(t.Context(), callback.Header, callback.Body); err != nil || again != first {
				t.Errorf("read again: %+v, %v, want %+v", again, err, first)
			}
		})
	}
	wg.Wait()
	if !reflect.DeepEqual(callback.Header, kept.Header) || !bytes.Equal(callback.Body, kept.Body) {
		t.Error("reading changed the callback")
	}
}

// refuse checks that the provider does not accept the callback as authentic.
func refuse(t *testing.T, h Harness, callback Callback, what string) {
	t.Helper()
	notice, err := h.Provider.Notice(t.Context(), callback.Header, callback.Body)
	if !errors.Is(err, payment.ErrNotAuthentic) || notice != (payment.Notice{}) {
		t.Errorf("%s: %+v, %v, want %v", what, notice, err, payment.ErrNotAuthentic)
	}
}

func testNoticeChanged(t *testing.T, h Harness) {
	_, callback := sample(t, h)
	for i := range callback.Body {
		changed := callback.clone()
		changed.Body[i] ^= 1
		refuse(t, h, changed, "a byte changed")
		if t.Failed() {
			t.Fatalf("byte %d of %q", i, callback.Body)
		}
	}
	for what, body := range map[string][]byte{
		"empty":         {},
		"cut":           callback.Body[:len(callback.Body)-1],
		"a space more":  append(callback.clone().Body, ' '),
		"a space first": append([]byte{' '}, callback.Body...),
		"repeated":      append(callback.clone().Body, callback.Body...),
	} {
		refuse(t, h, Callback{Header: callback.Header, Body: body}, what)
	}
}

func testNoticeUnsigned(t *testing.T, h Harness) {
	_, callback := sample(t, h)
	refuse(t, h, Callback{Header: http.Header{}, Body: callback.Body}, "no header")
	refuse(t, h, Callback{Header: nil, Body: callback.Body}, "nil header")
	for name, values := range callback.Header {
		for what, value := range map[string]string{"empty": "", "cut": values[0][1:], "nonsense": "nonsense"} {
			changed := callback.clone()
			changed.Header.Set(name, value)
			if _, err := h.Provider.Notice(t.Context(), changed.Header, changed.Body); err == nil && signs(name) {
				t.Errorf("accepted with header %s %s", name, what)
			}
		}
	}
}

// signs reports whether a change of the header must be noticed. Transport
// headers are not signed.
func signs(header string) bool {
	switch header {
	case "Content-Type", "Content-Length", "User-Agent", "Accept", "Accept-Encoding", "Date":
		return false
	}
	return true
}

func testNoticeSwapped(t *testing.T, h Harness) {
	n := number(t)
	cheap, dear := h.Callback(t, n.money(0, 1)), h.Callback(t, n.money(1, 699900))
	refuse(t, h, Callback{Header: cheap.Header, Body: dear.Body}, "the header of another callback")
}

func testNoticeMalformed(t *testing.T, h Harness) {
	for _, content := range []string{"", "{", "null", "[]", "{}", `"text"`, "\xff\xfe", "0"} {
		callback := h.Sign(t, []byte(content))
		notice, err := h.Provider.Notice(t.Context(), callback.Header, callback.Body)
		if !errors.Is(err, payment.ErrMalformed) || notice != (payment.Notice{}) {
			t.Errorf("%q: %+v, %v, want %v", content, notice, err, payment.ErrMalformed)
		}
	}
}
