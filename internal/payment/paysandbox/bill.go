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

// bill is the payment that the page asks for. The page's address contains it
// with a signature, so that no field can be changed. The page's button posts to
// the same address.
type bill struct {
	orderNo     seckill.OrderNo
	amountCents int64
	currency    string
	expires     time.Time // to the millisecond
	back        string    // return address of the buyer; "" for the order on the shop's page
}

// Signed data begins with its purpose, so that an address cannot be used as a
// callback. The body of a callback begins with a brace.
const (
	purposeAddress = "sandbox address"
	purposeTrade   = "sandbox trade"
)

var (
	errAltered = errors.New("pay address is not one of ours")
	errExpired = errors.New("pay address has expired")
)

// message returns the signed bytes of a bill. Only the last field can contain a
// line break, so two different bills never have the same bytes.
func message(purpose string, b bill) []byte {
	return fmt.Appendf(nil, "%s\n%s\n%d\n%s\n%d\n%s", purpose, b.orderNo, b.amountCents, b.currency, b.expires.UnixMilli(), b.back)
}

// pageURL returns the signed address of the page.
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
// errExpired the bill is valid otherwise.
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

// tradeNo returns the trade number of a payment: 28 characters, the same each
// time the button is pressed.
func (s *Sandbox) tradeNo(b bill) string {
	sum := s.ring.Sign(message(purposeTrade, b))
	return "SB" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
}
