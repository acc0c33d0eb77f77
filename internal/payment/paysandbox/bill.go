package paysandbox

import (
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"seckill"
)

// bill is what the page asks the buyer to pay. It travels in the address and
// in the form, signed, so that no field can be altered.
type bill struct {
	orderNo     seckill.OrderNo
	amountCents int64
	currency    string
	expires     time.Time // to the millisecond
	back        string    // where the buyer returns to; "" for the order's place on the shop's page
}

// What is signed begins with its purpose, so that an address does not serve
// as a form and neither serves as a callback, whose body begins with a brace.
const (
	purposeAddress = "sandbox address"
	purposeForm    = "sandbox form"
	purposeTrade   = "sandbox trade"
)

const nonceBytes = 16

var (
	errAltered = errors.New("pay address is not one of ours")
	errExpired = errors.New("pay address has expired")
)

// message is what is signed of a bill for a purpose; nonce is empty in an
// address. No field can hold a line break but the nonce, which is the last, so
// no two bills read alike.
func message(purpose string, b bill, nonce string) []byte {
	return fmt.Appendf(nil, "%s\n%s\n%d\n%s\n%d\n%s\n%s",
		purpose, b.orderNo, b.amountCents, b.currency, b.expires.UnixMilli(), b.back, nonce)
}

// fields are the bill as address and form carry it, with its signature.
func (s *Sandbox) fields(purpose string, b bill, nonce string) url.Values {
	sum := s.ring.Sign(message(purpose, b, nonce))
	return url.Values{
		"order_no":     {b.orderNo.String()},
		"amount_cents": {strconv.FormatInt(b.amountCents, 10)},
		"currency":     {b.currency},
		"expires":      {strconv.FormatInt(b.expires.UnixMilli(), 10)},
		"back":         {b.back},
		"sig":          {base64.RawURLEncoding.EncodeToString(sum[:])},
	}
}

// pageURL is the signed address of the page; lang is empty to leave the
// language to the browser.
func (s *Sandbox) pageURL(b bill, lang string) string {
	query := s.fields(purposeAddress, b, "")
	if lang != "" {
		query.Set("lang", lang)
	}
	return PagePath + "?" + query.Encode()
}

// readBill reads the fields of an address or a form and checks signature and
// expiry. With errExpired the bill is good otherwise.
func (s *Sandbox) readBill(purpose string, fields url.Values, nonce string) (bill, error) {
	var b bill
	var err error
	if b.orderNo, err = seckill.ParseOrderNo(fields.Get("order_no")); err != nil {
		return bill{}, errAltered
	}
	if b.amountCents, err = strconv.ParseInt(fields.Get("amount_cents"), 10, 64); err != nil {
		return bill{}, errAltered
	}
	if b.currency = fields.Get("currency"); checkCurrency(b.currency) != nil {
		return bill{}, errAltered
	}
	if b.back = fields.Get("back"); strings.Contains(b.back, "\n") {
		return bill{}, errAltered
	}
	expires, err := strconv.ParseInt(fields.Get("expires"), 10, 64)
	if err != nil {
		return bill{}, errAltered
	}
	b.expires = time.UnixMilli(expires).UTC()
	signature, err := base64.RawURLEncoding.DecodeString(fields.Get("sig"))
	if err != nil || !s.ring.Verify(message(purpose, b, nonce), signature) {
		return bill{}, errAltered
	}
	if !s.now().Before(b.expires) {
		return b, errExpired
	}
	return b, nil
}

// newNonce names one drawing of the page. Two presses of one page have it in
// common, and with it the trade number.
func (s *Sandbox) newNonce() (string, error) {
	var nonce [nonceBytes]byte
	if _, err := io.ReadFull(s.random, nonce[:]); err != nil {
		return "", fmt.Errorf("draw nonce: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(nonce[:]), nil
}

// tradeNo is the trade that a press of the page makes: 28 characters, the
// same for every press of one drawn page.
func (s *Sandbox) tradeNo(b bill, nonce string) string {
	sum := s.ring.Sign(message(purposeTrade, b, nonce))
	return "SB" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
}
