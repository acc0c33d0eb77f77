package carrier_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/carrier"
	"seckill/internal/queue"
)

func expiryOf(n int) carrier.Expiry {
	at := time.Date(2026, 11, 16, 2, 0, 0, 123e6, time.UTC)
	e := carrier.Expiry{ProductID: 7, Due: at.Add(30 * time.Minute)}
	for i := range n {
		e.Orders = append(e.Orders, seckill.NewOrderNo(at, 7, uint64(i)))
	}
	return e
}

func TestCodec_DecodesTheExpiryThatItEncodes(t *testing.T) {
	c := codec(t, "s1", "0123456789abcdef")
	for _, n := range []int{1, 2, 500} {
		want := expiryOf(n)
		m, err := c.EncodeExpiry(&want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.DecodeExpiry(&m)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("decoded %+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := c.EncodeExpiry(&carrier.Expiry{ProductID: 7, Due: time.Now()}); err == nil {
		t.Error("a message without orders was encoded")
	}
}

func TestCodec_RefusesExpiriesOfOthers(t *testing.T) {
	c := codec(t, "s1", "0123456789abcdef")
	e := expiryOf(1)
	m, err := c.EncodeExpiry(&e)
	if err != nil {
		t.Fatal(err)
	}
	altered := m
	altered.Body = append([]byte(" "), m.Body...)
	if _, err := c.DecodeExpiry(&altered); !errors.Is(err, carrier.ErrForged) {
		t.Errorf("altered: %v", err)
	}
	if _, err := codec(t, "s2", "0123456789abcdef").DecodeExpiry(&m); !errors.Is(err, carrier.ErrForeign) {
		t.Errorf("another store: %v", err)
	}
}

// One ring signs both kinds of messages. Neither may be accepted as the other.
func TestCodec_MessageOfTheOtherKindIsPoison(t *testing.T) {
	c := codec(t, "s1", "0123456789abcdef")
	e := expiryOf(1)
	expiry, err := c.EncodeExpiry(&e)
	if err != nil {
		t.Fatal(err)
	}
	reservations, err := c.Encode([]queue.Delivery{entry(rand.New(rand.NewPCG(1, 1)), 2)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Decode(&expiry); !errors.Is(err, carrier.ErrPoison) {
		t.Errorf("an expiry as reservations: %v", err)
	}
	if _, err := c.DecodeExpiry(&reservations); !errors.Is(err, carrier.ErrPoison) {
		t.Errorf("reservations as an expiry: %v", err)
	}
}

func TestCodec_ExpiryIgnoresUnknownFieldsAndRefusesBadOnes(t *testing.T) {
	c := codec(t, "s1", "0123456789abcdef")
	const good = `{"version":1,"store":"s1","product_id":7,"due":"2026-11-16T02:30:00Z","orders":["SK01JCZ0000000000000000000AA"],"later":{"a":[1]}}`
	for name, test := range map[string]struct {
		old, new string
		good     bool
	}{
		"unknown members":    {"", "", true},
		"a later version":    {`"version":1`, `"version":2`, false},
		"no product":         {`"product_id":7`, `"product_id":0`, false},
		"no due":             {`"due":"2026-11-16T02:30:00Z",`, "", false},
		"a bad due":          {"2026-11-16", "yesterday", false},
		"no orders":          {`["SK01JCZ0000000000000000000AA"]`, `[]`, false},
		"a bad order number": {"SK01JCZ", "XX01JCZ", false},
		"no JSON":            {"{", "[", false},
	} {
		m := sealed(c, strings.Replace(good, test.old, test.new, 1))
		_, err := c.DecodeExpiry(&m)
		if test.good != (err == nil) || err != nil && !errors.Is(err, carrier.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCodec_DecodeExpiryNeverPanics(f *testing.F) {
	c := codec(f, "s1", "0123456789abcdef")
	e := expiryOf(2)
	m, err := c.EncodeExpiry(&e)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(m.Body))
	f.Fuzz(func(t *testing.T, body string) {
		m := sealed(c, body)
		got, err := c.DecodeExpiry(&m)
		if err == nil && len(got.Orders) == 0 {
			t.Error("no error and no orders")
		}
	})
}
