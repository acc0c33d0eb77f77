package carrier_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/carrier"
	"seckill/internal/queue"
)

func codec(t testing.TB, store string, secrets ...string) *carrier.Codec {
	t.Helper()
	var keys [][]byte
	for _, s := range secrets {
		keys = append(keys, []byte(s))
	}
	ring, err := auth.NewRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return &carrier.Codec{Store: store, Ring: ring}
}

// entry makes an entry with all kinds of texts.
func entry(random *rand.Rand, claims int) queue.Delivery {
	texts := []string{"plain", "手机 Pro", `with "quotes" \ and / slashes`, "<script>&\u2028", "🎉", ""}
	text := func() string { return texts[random.IntN(len(texts))] }
	at := time.Date(2026, 11, 16, 2, 0, 0, random.IntN(1e9), time.UTC)
	d := queue.Delivery{ID: queue.ID{Stream: "b12", Seq: random.Uint64() | 1, Tag: random.Uint64()}, Entry: seckill.Entry{
		ProductID: 1 + random.Uint32(), Group: random.Uint32(), Shard: random.IntN(64), Epoch: random.Uint64() >> 11, At: at,
		PriceCents: random.Int64(), Currency: "CNY", Name: text(), Limit: random.IntN(100),
	}}
	for range claims {
		d.Entry.Claims = append(d.Entry.Claims, seckill.Claim{
			OrderNo: seckill.NewOrderNo(at, d.Entry.ProductID, random.Uint64()), Buyer: "b" + text(), Quantity: 1 + random.IntN(9), Key: text(), Ref: text(),
		})
	}
	return d
}

func TestCodec_DecodesWhatItEncodes(t *testing.T) {
	c := codec(t, "s1", "0123456789abcdef")
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var want []queue.Delivery
		for range 1 + random.IntN(4) {
			want = append(want, entry(random, 1+random.IntN(5)))
		}
		m, err := c.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Decode(&m)
		if err != nil {
			t.Fatalf("%v: %s", err, m.Body)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("decoded\n%+v\nwant\n%+v", got, want)
		}
	}
}

func TestCodec_RefusesMessagesOfOthers(t *testing.T) {
	c := codec(t, "s1", "0123456789abcdef")
	m, err := c.Encode([]queue.Delivery{entry(rand.New(rand.NewPCG(5, 6)), 1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Decode(&carrier.Message{}); !errors.Is(err, carrier.ErrPoison) {
		t.Errorf("without a body: %v", err)
	}
	altered, unsigned, garbled := m, m, m
	altered.Body = append([]byte(" "), m.Body...)
	unsigned.Signature = ""
	garbled.Signature = "v1,!"
	for name, bad := range map[string]carrier.Message{"altered": altered, "unsigned": unsigned, "garbled": garbled} {
		if _, err := c.Decode(&bad); !errors.Is(err, carrier.ErrForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Decode(&carrier.Message{Key: m.Key}); !errors.Is(err, carrier.ErrPoison) {
		t.Errorf("empty: %v", err)
	}
	if _, err := codec(t, "s1", "another-secret-16").Decode(&m); !errors.Is(err, carrier.ErrForged) {
		t.Errorf("another secret: %v", err)
	}
	if _, err := codec(t, "s2", "0123456789abcdef").Decode(&m); !errors.Is(err, carrier.ErrForeign) {
		t.Errorf("another store: %v", err)
	}
	if _, err := codec(t, "s1", "another-secret-16", "0123456789abcdef").Decode(&m); err != nil {
		t.Errorf("while secrets are rotated: %v", err)
	}
}

// sealed signs a body like the engine.
func sealed(c *carrier.Codec, body string) carrier.Message { return c.Seal("1-0", []byte(body)) }

func TestCodec_IgnoresUnknownFieldsAndRefusesBadOnes(t *testing.T) {
	c := codec(t, "s1", "0123456789abcdef")
	const claim = `{"order_no":"SK01JCZ0000000000000000000AA","user_id":"b","quantity":1,"gift":true}`
	wrap := func(version, entries string) string {
		return `{"version":` + version + `,"store":"s1","later":{"a":[1]},"entries":[` + entries + `]}`
	}
	one := func(claim string) string {
		return `{"stream":"b1","seq":"7","tag":"9","product_id":1,"limit_group":1,"shard":0,"epoch":1,"reserved_at":"2026-11-16T02:00:00Z","price_cents":1,"currency":"CNY","product_name":"x","per_user_limit":1,"colour":"red","reservations":[` + claim + `]}`
	}
	cases := map[string]struct {
		body string
		good bool
	}{
		"unknown members":    {wrap("1", one(claim)), true},
		"a later version":    {wrap("2", one(claim)), false},
		"no entries":         {wrap("1", ""), false},
		"no reservations":    {wrap("1", one("")), false},
		"no order number":    {wrap("1", one(`{"order_no":"x","user_id":"b","quantity":1}`)), false},
		"no quantity":        {wrap("1", one(`{"order_no":"SK01JCZ0000000000000000000AA","user_id":"b","quantity":0}`)), false},
		"no JSON":            {`{`, false},
		"another type":       {`[]`, false},
		"a number for a seq": {strings.Replace(wrap("1", one(claim)), `"seq":"7"`, `"seq":7`, 1), false},
	}
	for name, test := range cases {
		m := sealed(c, test.body)
		_, err := c.Decode(&m)
		if test.good != (err == nil) || err != nil && !errors.Is(err, carrier.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCodec_DecodeNeverPanics(f *testing.F) {
	c := codec(f, "s1", "0123456789abcdef")
	m, err := c.Encode([]queue.Delivery{entry(rand.New(rand.NewPCG(7, 8)), 2)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(m.Body))
	f.Fuzz(func(t *testing.T, body string) {
		m := sealed(c, body)
		got, err := c.Decode(&m)
		if err == nil && len(got) == 0 {
			t.Error("no error and no entries")
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	c := codec(b, "s1", "0123456789abcdef")
	d := []queue.Delivery{entry(rand.New(rand.NewPCG(9, 9)), 100)}
	m, err := c.Encode(d)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Encode(d); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Decode(&m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
