package paymenttest

import (
	"errors"
	"net/http"
	"testing"

	"seckill"
	"seckill/internal/payment"
)

func testAcknowledgeMoney(t *testing.T, h Harness) {
	got := h.Provider.Acknowledge(nil)
	if got.Status < 200 || got.Status > 299 {
		t.Errorf("status %d, want 2xx", got.Status)
	}
	checkContentType(t, got)
}

// A gateway that takes a refusal for an acknowledgement never sends the money
// again. Some gateways read the status, others only the body.
func testAcknowledgeRefusal(t *testing.T, h Harness) {
	success := h.Provider.Acknowledge(nil)
	for _, refusal := range []error{
		&seckill.Error{Code: seckill.CodeBusy},
		&seckill.Error{Code: seckill.CodeTokenInvalid},
		&seckill.Error{Code: seckill.CodeBadRequest},
		&seckill.Error{Code: seckill.CodeWrongState},
		errors.New("an error without a code"),
	} {
		got := h.Provider.Acknowledge(refusal)
		if got.Status == 0 { // the problem document, which has an error status
			if got.ContentType != "" || got.Body != nil {
				t.Errorf("%v: a body without a status: %+v", refusal, got)
			}
			continue
		}
		if http.StatusText(got.Status) == "" || got.Status < 200 {
			t.Errorf("%v: status %d", refusal, got.Status)
		}
		if got.Status == success.Status && string(got.Body) == string(success.Body) {
			t.Errorf("%v gets the answer of recorded money: %d %q", refusal, got.Status, got.Body)
		}
		checkContentType(t, got)
	}
}

func checkContentType(t *testing.T, got payment.Acknowledgement) {
	t.Helper()
	if len(got.Body) > 0 && got.ContentType == "" {
		t.Errorf("body %q has no content type", got.Body)
	}
}
