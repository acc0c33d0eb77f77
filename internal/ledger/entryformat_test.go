package ledger

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
	"time"

	"seckill"
)

func exampleEntry() seckill.Entry {
	at := time.Date(2026, 11, 11, 0, 0, 0, 123456789, time.UTC)
	return seckill.Entry{
		ProductID: 4_000_000_001, Group: 7, Shard: 255, Epoch: 1<<53 - 1, At: at,
		PriceCents: 699900, Currency: "CNY", Name: "手机 Pro",
		Claims: []seckill.Claim{
			{OrderNo: seckill.NewOrderNo(at, 4_000_000_001, 1), Buyer: "张三", Quantity: 2, Key: "key 1", Ref: "ref\x00"},
			{OrderNo: seckill.NewOrderNo(at, 4_000_000_001, 2), Buyer: "b", Quantity: MaxQuantity},
		},
	}
}

// encoded returns the entry's head and claims.
func encoded(e seckill.Entry) (h, c string) {
	var claims []byte
	for i := range e.Claims {
		claims = AppendClaim(claims, &e.Claims[i])
	}
	return string(AppendHead(nil, &e)), string(claims)
}

// decoded is the inverse of encoded.
func decoded(h, c string) (seckill.Entry, error) {
	e, err := DecodeHead(h)
	if err == nil {
		e.Claims, err = DecodeClaims(c)
	}
	return e, err
}

func TestEntry_DecodesAsEncoded(t *testing.T) {
	want := exampleEntry()
	got, err := decoded(encoded(want))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}

// later returns an order in the form of a mark, from its number on, with a field of a later
// version at its end.
func later(order string) string {
	end := 20 + int(order[18])
	return order[:18] + string(rune(order[18]+5)) + order[19:end] + "later" + order[end:]
}

func TestDecode_SkipsFieldsOfLaterVersions(t *testing.T) {
	want := exampleEntry()
	h, c := encoded(want)
	var claims string
	for c != "" {
		end := 2 + int(binary.BigEndian.Uint16([]byte(c)))
		claim := later(c[2:end]) + "and more"
		claims += string(binary.BigEndian.AppendUint16(nil, uint16(len(claim)))) + claim
		c = c[end:]
	}
	if got, err := decoded(h+"more", claims); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}

func TestDecode_DamagedEntryIsAnError(t *testing.T) {
	h, c := encoded(exampleEntry())
	for n := range len(h) - len(laterHead) {
		if _, err := DecodeHead(h[:n]); !errors.Is(err, ErrShort) {
			t.Fatalf("head of %d bytes: %v", n, err)
		}
	}
	first := len(c) - ClaimBytes - len("b")
	for n := 1; n < len(c); n++ {
		if claims, err := DecodeClaims(c[:n]); (n == first) != (err == nil) {
			t.Fatalf("claims of %d bytes: %v, %v", n, claims, err)
		}
	}
	if _, err := DecodeClaims("\x00\x14" + c[2:22]); !errors.Is(err, ErrShort) {
		t.Errorf("a claim that ends with its quantity: %v", err)
	}
	if _, err := DecodeClaims(c[:21] + "\xFF" + c[22:]); !errors.Is(err, ErrShort) {
		t.Errorf("a key beyond its order: %v", err)
	}
	if _, err := DecodeHead("\x02"); !errors.Is(err, ErrEntryVersion) {
		t.Errorf("a head of version 2: %v", err)
	}
}
