package paysandbox

import (
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"seckill"
)

// bill is what the page asks the buyer to pay. It travels in the address, signed,
// so that no field can be altered. The page's button posts to the same address.
type bill struct {
	orderNo     seckill.OrderNo
	amountCents int64
	currency    string
	expires     time.Time // to the millisecond
	back        string    // where the buyer returns to; "" for the order's place on the shop's page
}

// What is signed begins with its purpose, so that an address does not serve as a
// callback, whose body begins with a brace.
const (
	purposeAddress = "sandbox address"
	purposeTrade   = "sandbox trade"
)

var (
	errAltered = errors.New("pay address is not one of ours")
	errExpired = errors.New("pay address has expired")
)

// message is what is signed of a bill for a purpose. No field can hold a line
// break but the last one, so no two bills read alike.
func message(purpose string, b bill) []byte {
	return fmt.Appendf(nil, "%s\n%s\n%d\n%s\n%d\n%s", purpose, b.orderNo, b.amountCents, b.currency, b.expires.UnixMilli(), b.back)
}

// pageURL is the signed address of the page.
func (s *Sandbox) pageURL(b bill) string {
	sum := s.ring.Sign(message(purposeAddress, b))
	return PagePath + "?" + url.Values{
		"order_no":     {b.orderNo.String()},
		"amount_cents": {strconv.FormatInt(b.amountCents, 10)},
		"currency":     {b.currency},
		"expires":      {strconv.FormatInt(b.expires.UnixMilli(), 10)},
		"back":         {b.back},
		"sig":          {base64.RawURLEncoding.EncodeToString(sum[:])},
	}.Encode()
}

// readBill reads the fields of an address and checks signature and expiry. With
// errExpired the bill is good otherwise.
func (s *Sandbox) readBill(fields url.Values) (bill, error) {
	b := bill{back: fields.Get("back")}
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
	expires, err := strconv.ParseInt(fields.Get("expires"), 10, 64)
	if err != nil {
		return bill{}, errAltered
	}
	b.expires = time.UnixMilli(expires).UTC()
	signature, err := base64.RawURLEncoding.DecodeString(fields.Get("sig"))
	if err != nil || !s.ring.Verify(message(purposeAddress, b), signature) {
		return bill{}, errAltered
	}
	if !s.now().Before(b.expires) {
		return b, errExpired
	}
	return b, nil
}

// tradeNo is the trade that a press of the page makes: 28 characters, the same for
// every press.
func (s *Sandbox) tradeNo(b bill) string {
	sum := s.ring.Sign(message(purposeTrade, b))
	return "SB" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
}
