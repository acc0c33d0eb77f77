package carrier

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"seckill"
)

// maxExpiryOrders bounds the orders of one expiry message. A reader refuses
// more.
const maxExpiryOrders = 10_000

// Expiry is a delayed message of the engine to itself: expire these orders at
// Due, if they are not paid by then.
type Expiry struct {
	ProductID uint32
	Due       time.Time
	Orders    []seckill.OrderNo
}

// expiryBody is the body of an expiry message.
type expiryBody struct {
	head
	ProductID uint32    `json:"product_id"`
	Due       time.Time `json:"due"`
	Orders    []string  `json:"orders"`
}

// ExpiryKey returns the key of a product's expiry messages.
func ExpiryKey(product uint32) string { return strconv.FormatUint(uint64(product), 10) }

// EncodeExpiry makes one message of orders of one product.
func (c *Codec) EncodeExpiry(e *Expiry) (Message, error) {
	if n := len(e.Orders); n == 0 || n > maxExpiryOrders {
		return Message{}, fmt.Errorf("carrier: an expiry message has 1 to %d orders, not %d", maxExpiryOrders, n)
	}
	orders := make([]string, len(e.Orders))
	for i, no := range e.Orders {
		orders[i] = no.String()
	}
	body, err := json.Marshal(expiryBody{
		head: head{Version, c.Store}, ProductID: e.ProductID, Due: e.Due.UTC(), Orders: orders,
	})
	if err != nil {
		return Message{}, fmt.Errorf("carrier: encode an expiry message: %w", err)
	}
	return c.Seal(ExpiryKey(e.ProductID), body), nil
}

// DecodeExpiry decodes an expiry message. Its error is ErrForged, ErrForeign or
// ErrPoison.
func (c *Codec) DecodeExpiry(m *Message) (Expiry, error) {
	var body expiryBody
	if err := c.open(m, &body); err != nil {
		return Expiry{}, err
	}
	switch {
	case body.ProductID == 0 || body.Due.IsZero():
		return Expiry{}, fmt.Errorf("%w: product and due are needed", ErrPoison)
	case len(body.Orders) == 0 || len(body.Orders) > maxExpiryOrders:
		return Expiry{}, fmt.Errorf("%w: %d orders", ErrPoison, len(body.Orders))
	}
	e := Expiry{ProductID: body.ProductID, Due: body.Due, Orders: make([]seckill.OrderNo, len(body.Orders))}
	for i, text := range body.Orders {
		var err error
		if e.Orders[i], err = seckill.ParseOrderNo(text); err != nil {
			return Expiry{}, fmt.Errorf("%w: order %d: %w", ErrPoison, i, err)
		}
	}
	return e, nil
}
