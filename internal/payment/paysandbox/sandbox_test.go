package paysandbox

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/payment"
	"seckill/internal/payment/paymenttest"
)

var secret = []byte("the sandbox's secret")

// shop is the sandbox with a server for its page and an inbox for callbacks.
type shop struct {
	*Sandbox
	now   time.Time
	inbox []paymenttest.Callback
	fail  error // the result of Deliver
	log   bytes.Buffer
	url   string
}

func open(t testing.TB) *shop {
	t.Helper()
	s := &shop{now: time.Now().UTC()}
	var err error
	s.Sandbox, err = New(Options{
		Secret:  secret,
		BaseURL: func() string { return s.url },
		Deliver: func(_ context.Context, header http.Header, body []byte) error {
			s.inbox = append(s.inbox, paymenttest.Callback{Header: header, Body: body})
			return s.fail
		},
		Now: func() time.Time { return s.now },
		Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(PagePath, s.Page())
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// signature signs like a shop's cashier.
func signature(secret, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// signed makes a callback with any content.
func signed(content []byte) paymenttest.Callback {
	header := http.Header{}
	header.Set(SignatureHeader, signature(secret, content))
	return paymenttest.Callback{Header: header, Body: content}
}

func TestConformance(t *testing.T) {
	paymenttest.Run(t, func(t *testing.T) paymenttest.Harness {
		s := open(t)
		return paymenttest.Harness{
			Provider: s,
			Callback: func(_ testing.TB, money payment.Notice) paymenttest.Callback {
				return signed(fmt.Appendf(nil, `{"order_no":%q,"trade_no":%q,"amount_cents":%d,"paid_at":%q}`,
					money.OrderNo, money.TradeNo, money.AmountCents, money.PaidAt.Format(time.RFC3339)))
			},
			Sign: func(_ testing.TB, content []byte) paymenttest.Callback { return signed(content) },
			Pay: func(t testing.TB, session payment.Session) paymenttest.Callback {
				s.press(t, session.PayURL, "")
				return s.inbox[len(s.inbox)-1]
			},
			Returned: func(_ testing.TB, id string) int64 { return s.Returned(id) },
		}
	})
}

// The format of the callback is fixed, because shops and tests sign it
// themselves. The signature here is the output of
//
//	printf '%s' "$body" | openssl dgst -sha256 -hmac "the sandbox's secret"
func TestNotice_FormatIsFixed(t *testing.T) {
	s := open(t)
	body := []byte(`{"order_no":"SK01","trade_no":"T1","amount_cents":699900}`)
	callback := paymenttest.Callback{Header: http.Header{"X-Signature": {
		"8171dc84417b9be09410ffaf9dda8b29578dff55b64dae18c49b59286d8890ca",
	}}, Body: body}
	notice, err := s.Notice(t.Context(), callback.Header, body)
	want := payment.Notice{Provider: "sandbox", OrderNo: "SK01", TradeNo: "T1", AmountCents: 699900, Currency: "CNY", PaidAt: s.now}
	if err != nil || notice != want {
		t.Errorf("read %+v, %v, want %+v", notice, err, want)
	}
	if signature(secret, body) != callback.Header.Get(SignatureHeader) {
		t.Error("the signature differs")
	}
	callback.Header.Set(SignatureHeader, strings.ToUpper(signature(secret, body)))
	if _, err := s.Notice(t.Context(), callback.Header, body); err != nil {
		t.Errorf("hex in upper case: %v", err)
	}
	callback.Header.Add(SignatureHeader, signature(secret, body))
	if _, err := s.Notice(t.Context(), callback.Header, body); !errors.Is(err, payment.ErrNotAuthentic) {
		t.Errorf("two signatures: %v", err)
	}
	callback.Header.Set(SignatureHeader, signature([]byte("other"), body))
	if _, err := s.Notice(t.Context(), callback.Header, body); !errors.Is(err, payment.ErrNotAuthentic) {
		t.Errorf("another secret: %v", err)
	}
}

func TestNotice_AcceptsExactlyTheKnownFields(t *testing.T) {
	const base = `"order_no":"SK1","trade_no":"T1","amount_cents":1`
	for _, tc := range []struct {
		name, body string
		ok         bool
	}{
		{"the three", `{` + base + `}`, true},
		{"white space", " {\n" + base + "\t} ", true},
		{"currency", `{` + base + `,"currency":"USD"}`, true},
		{"paid_at", `{` + base + `,"paid_at":"2026-11-11T20:00:00.5+08:00"}`, true},
		{"amount 0", `{"order_no":"SK1","trade_no":"T1","amount_cents":0}`, true},
		{"largest amount", `{"order_no":"SK1","trade_no":"T1","amount_cents":100000000000000}`, true},
		{"unknown member", `{` + base + `,"extra":1}`, false},
		{"member in another case", `{"Order_no":"SK1","trade_no":"T1","amount_cents":1}`, false},
		{"member twice", `{` + base + `,"amount_cents":2}`, false},
		{"member twice, once escaped", `{` + base + `,"\u0061mount_cents":2}`, false},
		{"order_no missing", `{"trade_no":"T1","amount_cents":1}`, false},
		{"trade_no missing", `{"order_no":"SK1","amount_cents":1}`, false},
		{"amount missing", `{"order_no":"SK1","trade_no":"T1"}`, false},
		{"amount null", `{"order_no":"SK1","trade_no":"T1","amount_cents":null}`, false},
		{"amount a string", `{"order_no":"SK1","trade_no":"T1","amount_cents":"1"}`, false},
		{"amount with a fraction", `{"order_no":"SK1","trade_no":"T1","amount_cents":1.0}`, false},
		{"amount with an exponent", `{"order_no":"SK1","trade_no":"T1","amount_cents":1e2}`, false},
		{"amount negative", `{"order_no":"SK1","trade_no":"T1","amount_cents":-1}`, false},
		{"amount too large", `{"order_no":"SK1","trade_no":"T1","amount_cents":100000000000001}`, false},
		{"amount beyond 64 bits", `{"order_no":"SK1","trade_no":"T1","amount_cents":99999999999999999999}`, false},
		{"order_no empty", `{"order_no":"","trade_no":"T1","amount_cents":1}`, false},
		{"order_no a number", `{"order_no":1,"trade_no":"T1","amount_cents":1}`, false},
		{"order_no too long", `{"order_no":"` + strings.Repeat("x", 65) + `","trade_no":"T1","amount_cents":1}`, false},
		{"trade_no with a space", `{"order_no":"SK1","trade_no":"T 1","amount_cents":1}`, false},
		{"trade_no not ASCII", `{"order_no":"SK1","trade_no":"号","amount_cents":1}`, false},
		{"trade_no nested", `{"order_no":"SK1","trade_no":{"a":1},"amount_cents":1}`, false},
		{"currency in lower case", `{` + base + `,"currency":"usd"}`, false},
		{"paid_at no time", `{` + base + `,"paid_at":"yesterday"}`, false},
		{"paid_at year 1", `{` + base + `,"paid_at":"0001-01-01T00:00:00Z"}`, false},
		{"not UTF-8", "{\"order_no\":\"SK\xff\",\"trade_no\":\"T1\",\"amount_cents\":1}", false},
		{"something after", `{` + base + `} {}`, false},
		{"a bracket after", `{` + base + `}]`, false},
		{"cut", `{` + base, false},
		{"too long", `{` + base + strings.Repeat(" ", maxBodyBytes) + `}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			callback := signed([]byte(tc.body))
			notice, err := open(t).Notice(t.Context(), callback.Header, callback.Body)
			if tc.ok != (err == nil) || err != nil && !errors.Is(err, payment.ErrMalformed) {
				t.Errorf("%+v, error %v", notice, err)
			}
		})
	}
}

func TestRefund_IsLoggedOnceAndInvalidOnesAreRefused(t *testing.T) {
	s := open(t)
	good := payment.Refund{ID: "R1", TradeNo: "T1", OrderNo: "SK1", AmountCents: 100, Currency: "CNY", Reason: "late"}
	for range 3 {
		if err := s.Refund(t.Context(), good); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Count(s.log.String(), "sandbox refund"); lines != 1 {
		t.Errorf("logged %d times, want once", lines)
	}
	for name, change := range map[string]func(*payment.Refund){
		"no id":              func(r *payment.Refund) { r.ID = "" },
		"no trade":           func(r *payment.Refund) { r.ID, r.TradeNo = "R2", "" },
		"negative":           func(r *payment.Refund) { r.ID, r.AmountCents = "R3", -1 },
		"no currency":        func(r *payment.Refund) { r.ID, r.Currency = "R4", "" },
		"id of other money":  func(r *payment.Refund) { r.AmountCents = 99 },
		"id of other trade":  func(r *payment.Refund) { r.TradeNo = "T2" },
		"id, other currency": func(r *payment.Refund) { r.Currency = "USD" },
	} {
		bad := good
		change(&bad)
		if err := s.Refund(t.Context(), bad); !errors.Is(err, payment.ErrRefused) {
			t.Errorf("%s: error %v, want %v", name, err, payment.ErrRefused)
		}
	}
	if len(s.refunds.done) != 1 || s.Returned("R1") != 100 {
		t.Errorf("refunds are %v, want R1 of 100 alone", s.refunds.done)
	}
}

func TestRefund_MemoryIsBounded(t *testing.T) {
	var m refundMemory
	refund := func(i int) payment.Refund {
		return payment.Refund{ID: fmt.Sprint(i), TradeNo: "T", AmountCents: 1, Currency: "CNY"}
	}
	for i := range rememberedRefunds + 10 {
		m.record(refund(i))
	}
	if len(m.done) > rememberedRefunds {
		t.Errorf("remembers %d refunds, bound %d", len(m.done), rememberedRefunds)
	}
	if fresh, _ := m.record(refund(rememberedRefunds + 9)); fresh {
		t.Error("the newest was forgotten")
	}
	if fresh, _ := m.record(refund(0)); !fresh {
		t.Error("the oldest is still remembered beyond the bound")
	}
}

func TestBegin_OrderWithoutDeadlineIsPayableForHalfAnHour(t *testing.T) {
	s := open(t)
	session, err := s.Begin(t.Context(), &seckill.Order{OrderNo: seckill.NewOrderNo(s.now, 1, 1), PriceCents: 1, Quantity: 1, Currency: "CNY"}, "")
	if err != nil || !session.ExpiresAt.Equal(s.now.Add(openEnded).Truncate(time.Millisecond)) {
		t.Errorf("%+v, %v", session, err)
	}
}

func FuzzNotice(f *testing.F) {
	f.Add([]byte(`{"order_no":"SK1","trade_no":"T1","amount_cents":1,"currency":"CNY","paid_at":"2026-11-11T00:00:00Z"}`))
	f.Add([]byte(`{"order_no":"SK1","order_no":"SK2"}`))
	f.Add([]byte(`{"a":[{}]}`))
	s := open(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		callback := signed(body)
		notice, err := s.Notice(t.Context(), callback.Header, body)
		if err != nil {
			if !errors.Is(err, payment.ErrMalformed) || notice != (payment.Notice{}) {
				t.Fatalf("%+v, %v", notice, err)
			}
			return
		}
		var plain struct {
			OrderNo     string `json:"order_no"`
			TradeNo     string `json:"trade_no"`
			AmountCents int64  `json:"amount_cents"`
		}
		if err := json.Unmarshal(body, &plain); err != nil || plain.OrderNo != notice.OrderNo ||
			plain.TradeNo != notice.TradeNo || plain.AmountCents != notice.AmountCents {
			t.Fatalf("read %+v where the standard decoder reads %+v, %v", notice, plain, err)
		}
	})
}

// Returned returns the cents returned for a refund id, or 0 if it is not
// remembered.
func (s *Sandbox) Returned(refundID string) int64 {
	s.refunds.mu.Lock()
	defer s.refunds.mu.Unlock()
	return s.refunds.done[refundID].AmountCents
}
