package paysandbox

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/auth"
	"seckill/internal/payment"
)

const (
	// maxBodyBytes is far above any callback: five short fields.
	maxBodyBytes = 4 << 10
	// maxNumberBytes bounds order and trade numbers, like the store's columns.
	maxNumberBytes = 64
	// maxAmountCents is the highest amount of an order.
	maxAmountCents = seckill.MaxPriceCents * seckill.MaxPerUserLimit

	defaultCurrency = "CNY"
)

// Notice reads a callback: {"order_no","trade_no","amount_cents"} with an
// optional "currency" (CNY) and an optional "paid_at" (RFC 3339; now).
func (s *Sandbox) Notice(_ context.Context, header http.Header, body []byte) (payment.Notice, error) {
	if !s.authentic(header, body) {
		return payment.Notice{}, payment.ErrNotAuthentic
	}
	notice, err := readNotice(body)
	if err != nil {
		return payment.Notice{}, fmt.Errorf("%w: %w", payment.ErrMalformed, err)
	}
	if notice.PaidAt.IsZero() {
		notice.PaidAt = s.now().UTC()
	}
	return notice, nil
}

// Acknowledge answers recorded money with {"result":"ok"}, and a refusal with
// the problem document of the shop API.
func (s *Sandbox) Acknowledge(refusal error) payment.Acknowledgement {
	if refusal != nil {
		return payment.Acknowledgement{}
	}
	return payment.Acknowledgement{Status: http.StatusOK, ContentType: "application/json", Body: []byte(`{"result":"ok"}`)}
}

func (s *Sandbox) authentic(header http.Header, body []byte) bool {
	values := header.Values(SignatureHeader)
	if len(values) != 1 || len(values[0]) != hex.EncodedLen(auth.Size) {
		return false
	}
	signature, err := hex.DecodeString(values[0])
	return err == nil && s.ring.Verify(body, signature)
}

// readNotice accepts an object with exactly the known members, in exactly this
// spelling.
func readNotice(body []byte) (payment.Notice, error) {
	notice := payment.Notice{Provider: Name, Currency: defaultCurrency}
	if len(body) > maxBodyBytes {
		return notice, fmt.Errorf("body is longer than %d bytes", maxBodyBytes)
	}
	object, err := api.ReadObject(body)
	if err != nil {
		return notice, err
	}
	given := map[string]bool{}
	for _, member := range object {
		given[member.Name] = true
		if err := setMember(&notice, member.Name, member.Value); err != nil {
			return notice, err
		}
	}
	for _, member := range []string{"order_no", "trade_no", "amount_cents"} {
		if !given[member] {
			return notice, fmt.Errorf("%s is missing", member)
		}
	}
	return notice, nil
}

// setMember checks a value and sets it.
func setMember(notice *payment.Notice, member string, value []byte) error {
	if member == "amount_cents" {
		amount, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || amount < 0 || amount > maxAmountCents {
			return fmt.Errorf("amount_cents must be a whole number from 0 to %d", int64(maxAmountCents))
		}
		notice.AmountCents = amount
		return nil
	}
	var text string
	if value[0] != '"' || json.Unmarshal(value, &text) != nil {
		return fmt.Errorf("%.64q must be a string", member)
	}
	switch member {
	case "order_no":
		notice.OrderNo = text
		return checkNumber(member, text)
	case "trade_no":
		notice.TradeNo = text
		return checkNumber(member, text)
	case "currency":
		notice.Currency = text
		return checkCurrency(text)
	case "paid_at":
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || at.Year() < 2000 || at.Year() > 9999 {
			return errors.New("paid_at must be an RFC 3339 time of the years 2000 to 9999")
		}
		notice.PaidAt = at.UTC()
		return nil
	}
	return fmt.Errorf("%.64q is unknown", member)
}

// checkNumber accepts visible ASCII only: gateways use nothing else in their
// numbers.
func checkNumber(member, text string) error {
	if len(text) < 1 || len(text) > maxNumberBytes {
		return fmt.Errorf("%s must have 1 to %d bytes", member, maxNumberBytes)
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("%s must be visible ASCII", member)
		}
	}
	return nil
}

func checkCurrency(text string) error {
	if len(text) != 3 {
		return errors.New("currency must be an ISO 4217 code")
	}
	for _, c := range []byte(text) {
		if c < 'A' || c > 'Z' {
			return errors.New("currency must be an ISO 4217 code")
		}
	}
	return nil
}

// callback makes the callback of a paid bill.
func (s *Sandbox) callback(b bill, tradeNo string) (http.Header, []byte, error) {
	body, err := json.Marshal(struct {
		OrderNo     seckill.OrderNo `json:"order_no"`
		TradeNo     string          `json:"trade_no"`
		AmountCents int64           `json:"amount_cents"`
		Currency    string          `json:"currency"`
		PaidAt      string          `json:"paid_at"`
	}{b.orderNo, tradeNo, b.amountCents, b.currency, s.now().UTC().Format(time.RFC3339Nano)})
	if err != nil {
		return nil, nil, fmt.Errorf("make callback: %w", err)
	}
	signature := s.ring.Sign(body)
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set(SignatureHeader, hex.EncodeToString(signature[:]))
	return header, body, nil
}
