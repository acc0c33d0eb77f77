package storesql

import (
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"time"

	"seckill"
)

// millis returns a time as stored in a column.
func millis(t time.Time) int64 { return t.UnixMilli() }

// nullMillis is millis, with NULL for the zero time.
func nullMillis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// fromMillis returns the time of a column. 0 stands for NULL and gives the zero time.
func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// nullText returns a text, or NULL for the empty text.
func nullText(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// buyerBytes makes the database compare buyers byte by byte.
func buyerBytes(buyer string) any { return []byte(buyer) }

// orderNo scans an order number.
type orderNo struct{ *seckill.OrderNo }

func (no orderNo) Scan(value any) (err error) {
	switch text := value.(type) {
	case string:
		*no.OrderNo, err = seckill.ParseOrderNo(text)
	case []byte:
		*no.OrderNo, err = seckill.ParseOrderNo(text)
	default:
		err = errors.ErrUnsupported
	}
	if err != nil {
		return fmt.Errorf("%.60q is not an order number", value)
	}
	return nil
}

// nullOrderNo scans an order number. NULL and the empty text give the zero value.
type nullOrderNo struct{ *seckill.OrderNo }

func (no nullOrderNo) Scan(value any) error {
	var number string
	if err := (text{&number}).Scan(value); err != nil || number == "" {
		*no.OrderNo = seckill.OrderNo{}
		return err
	}
	return orderNo(no).Scan(number)
}

// millisTime scans a time. NULL gives the zero time.
type millisTime struct{ *time.Time }

func (t millisTime) Scan(value any) error {
	switch ms := value.(type) {
	case nil:
		*t.Time = time.Time{}
		return nil
	case int64:
		*t.Time = time.UnixMilli(ms).UTC()
		return nil
	}
	return fmt.Errorf("time is a %T", value)
}

// text scans a text. NULL gives the empty text.
type text struct{ *string }

func (t text) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*t.string = ""
		return nil
	case string:
		*t.string = v
		return nil
	case []byte:
		*t.string = string(v)
		return nil
	}
	return fmt.Errorf("text is a %T", value)
}

var idEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// newID makes an id of 128 random bits. Unlike a counter it stays unique at a payment provider
// when the database is restored or created again.
func newID(prefix string, random io.Reader) (string, error) {
	var bits [16]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return "", fmt.Errorf("make id: %w", err)
	}
	return prefix + idEncoding.EncodeToString(bits[:]), nil
}

// amount formats money for people, in the audit.
func amount(cents int64, currency string) string {
	return fmt.Sprintf("%d.%02d %s", cents/100, cents%100, currency)
}
