package ledgerredis

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

func exampleEntry() seckill.Entry {
	at := time.Date(2026, 11, 11, 0, 0, 0, 123456789, time.UTC)
	return seckill.Entry{
		ProductID: 4_000_000_001, Group: 7, Shard: 255, Epoch: 1<<53 - 1, At: at,
		PriceCents: 699900, Currency: "CNY", Name: "手机 Pro", Limit: 3,
		Claims: []seckill.Claim{
			{OrderNo: seckill.NewOrderNo(at, 4_000_000_001, 1), Buyer: "张三", Quantity: 2, Key: "key 1", Ref: "ref\x00"},
			{OrderNo: seckill.NewOrderNo(at, 4_000_000_001, 2), Buyer: "b", Quantity: maxQuantity},
		},
	}
}

// encoded is the entry as the stream has it.
func encoded(e seckill.Entry) (h, l, c string) {
	shard := ledger.Shard{Product: e.ProductID, Group: e.Group, Index: e.Shard, Epoch: e.Epoch}
	head := appendHead(nil, shard, &ledger.Reserve{At: e.At, PriceCents: e.PriceCents, Currency: e.Currency, Name: e.Name})
	var claims []byte
	for i := range e.Claims {
		claims = appendClaim(claims, &e.Claims[i])
	}
	return string(head), "3", string(claims)
}

func TestAnEntryIsReadAsItWasWritten(t *testing.T) {
	want := exampleEntry()
	got, err := decodeEntry(encoded(want))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}

// later is an order as a mark keeps it from its number on, or what follows one,
// with a field of a later version at the order's end.
func later(order string) string {
	end := 20 + int(order[18])
	return order[:18] + string(rune(order[18]+5)) + order[19:end] + "later" + order[end:]
}

func TestDecode_SkipsFieldsOfLaterVersions(t *testing.T) {
	want := exampleEntry()
	h, l, c := encoded(want)
	var claims string
	for c != "" {
		end := 2 + int(binary.BigEndian.Uint16([]byte(c)))
		claim := later(c[2:end]) + "and more"
		claims += string(binary.BigEndian.AppendUint16(nil, uint16(len(claim)))) + claim
		c = c[end:]
	}
	if got, err := decodeEntry(h+"more", l, claims); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}

func TestADamagedEntryIsAnErrorNotAnOrder(t *testing.T) {
	h, l, c := encoded(exampleEntry())
	for n := range len(h) - len(laterHead) {
		if _, err := decodeEntry(h[:n], l, c); !errors.Is(err, errShort) {
			t.Fatalf("head of %d bytes: %v", n, err)
		}
	}
	first := len(c) - claimBytes - len("b") - len(laterOrder) - len(laterClaim)
	for n := 1; n < len(c); n++ {
		if claims, err := decodeClaims(c[:n]); (n == first) != (err == nil) {
			t.Fatalf("claims of %d bytes: %v, %v", n, claims, err)
		}
	}
	if _, err := decodeClaims("\x00\x14" + c[2:22]); !errors.Is(err, errShort) {
		t.Errorf("a claim that ends with its quantity: %v", err)
	}
	if _, err := decodeClaims(c[:21] + "\xFF" + c[22:]); !errors.Is(err, errShort) {
		t.Errorf("a key beyond its order: %v", err)
	}
	if _, err := decodeEntry("\x02"+h[1:], l, c); !errors.Is(err, errVersion) {
		t.Errorf("a head of version 2: %v", err)
	}
	if _, err := decodeEntry(h, "many", c); err == nil {
		t.Error("a limit that is no number was read")
	}
}
