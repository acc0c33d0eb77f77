package seckill_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"seckill"
)

// lastInstant is the latest time in 48 bits of milliseconds.
var lastInstant = time.UnixMilli(1<<48 - 1).UTC()

func drawOrderNo(t *rapid.T) (no seckill.OrderNo, at time.Time, product uint32) {
	at = time.UnixMilli(rapid.Int64Range(1, 1<<48-1).Draw(t, "ms")).UTC()
	product = rapid.Uint32Range(1, math.MaxUint32).Draw(t, "product")
	return seckill.NewOrderNo(at, product, rapid.Uint64().Draw(t, "random")), at, product
}

func TestOrderNo_KeepsTimeAndProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		no, at, product := drawOrderNo(t)
		if no.ProductID() != product {
			t.Fatalf("product is %d, want %d", no.ProductID(), product)
		}
		if !no.Time().Equal(at) {
			t.Fatalf("time is %s, want %s", no.Time(), at)
		}
		text := no.String()
		if len(text) != seckill.OrderNoLen || !strings.HasPrefix(text, "SK") {
			t.Fatalf("text is %q", text)
		}
		for _, parse := range []func() (seckill.OrderNo, error){
			func() (seckill.OrderNo, error) { return seckill.ParseOrderNo(text) },
			func() (seckill.OrderNo, error) { return seckill.ParseOrderNo([]byte(text)) },
		} {
			if back, err := parse(); err != nil || back != no {
				t.Fatalf("%q reads as %v, %v", text, back, err)
			}
		}
	})
}

func TestOrderNo_IsAULID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		no, at, _ := drawOrderNo(t)
		text := no.String()[2:]
		if want := ulid.ULID(no).String(); text != want {
			t.Fatalf("text is %s, want %s", text, want)
		}
		id, err := ulid.ParseStrict(text)
		if err != nil || seckill.OrderNo(id) != no {
			t.Fatalf("the library reads %s as %v, %v", text, id, err)
		}
		if !ulid.Time(id.Time()).Equal(at) {
			t.Fatalf("the library reads the time %s, want %s", ulid.Time(id.Time()), at)
		}
	})
}

func TestOrderNo_SortsByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, atA, _ := drawOrderNo(t)
		b, atB, _ := drawOrderNo(t)
		byText := strings.Compare(a.String(), b.String())
		if byBytes := seckill.NewestFirst(b, a); byText != byBytes {
			t.Fatalf("texts compare %d, bytes %d", byText, byBytes)
		}
		if atA.Before(atB) && byText >= 0 {
			t.Fatalf("%s is older than %s and sorts after it", a, b)
		}
	})
}

func TestOrderNo_UsesTheLow48BitsOfRandom(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	low := seckill.NewOrderNo(at, 7, 42)
	if high := seckill.NewOrderNo(at, 7, 42|0xFFFF<<48); high != low {
		t.Errorf("high bits of random reach the number: %s and %s", high, low)
	}
	if other := seckill.NewOrderNo(at, 7, 43); other == low {
		t.Error("low bits of random do not reach the number")
	}
	full := seckill.NewOrderNo(lastInstant, math.MaxUint32, math.MaxUint64)
	if got, want := full.String(), "SK7"+strings.Repeat("Z", 25); got != want {
		t.Errorf("the greatest number is %s, want %s", got, want)
	}
}

func TestOrderNo_HasOneSpelling(t *testing.T) {
	good := seckill.NewOrderNo(time.UnixMilli(1_700_000_000_000), 1, 1).String()
	cases := map[string]string{
		"empty":                 "",
		"lower case":            strings.ToLower(good),
		"lower prefix":          "sk" + good[2:],
		"another prefix":        "SX" + good[2:],
		"no prefix":             good[2:],
		"too short":             good[:27],
		"too long":              good + "0",
		"space before":          " " + good[:27],
		"space after":           good[:27] + " ",
		"I for 1":               good[:27] + "I",
		"L for 1":               good[:27] + "L",
		"O for 0":               good[:27] + "O",
		"U":                     good[:27] + "U",
		"hyphen":                good[:27] + "-",
		"beyond 128 bits":       "SK8" + strings.Repeat("0", 25),
		"first not in alphabet": "SKI" + good[3:],
		"not ASCII":             good[:25] + "秒",
		"zero byte":             good[:27] + "\x00",
		"the zero value":        "SK" + strings.Repeat("0", 26),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if no, err := seckill.ParseOrderNo(text); err == nil || !no.IsZero() {
				t.Errorf("%q reads as %v, %v", text, no, err)
			}
		})
	}
}

func TestOrderNo_InJSON(t *testing.T) {
	type document struct {
		OrderNo seckill.OrderNo `json:"order_no"`
	}
	for _, no := range []seckill.OrderNo{{}, seckill.NewOrderNo(time.UnixMilli(1), 1, 0)} {
		text, err := json.Marshal(document{no})
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"order_no":"` + no.String() + `"}`; string(text) != want {
			t.Errorf("JSON is %s, want %s", text, want)
		}
		back := document{seckill.NewOrderNo(time.UnixMilli(9), 9, 9)}
		if err := json.Unmarshal(text, &back); err != nil || back.OrderNo != no {
			t.Errorf("%s reads as %v, %v", text, back.OrderNo, err)
		}
	}
	before := seckill.NewOrderNo(time.UnixMilli(9), 9, 9)
	after := before
	if err := after.UnmarshalText([]byte("SK")); err == nil || after != before {
		t.Errorf("a bad text gives %v and leaves %v", err, after)
	}
	if (seckill.OrderNo{}).String() != "" {
		t.Error("the zero value has a text")
	}
}

func TestOrderNo_AppendsWithoutAllocating(t *testing.T) {
	no, buffer := seckill.NewOrderNo(time.UnixMilli(1), 1, 1), make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { buffer, _ = no.AppendText(buffer[:0]) }); n != 0 {
		t.Errorf("AppendText allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = seckill.ParseOrderNo(buffer) }); n != 0 {
		t.Errorf("ParseOrderNo allocates %v times", n)
	}
}

// FuzzParseOrderNo checks that every accepted text is the canonical one.
func FuzzParseOrderNo(f *testing.F) {
	for _, seed := range []string{"", "SK", "SK01HF7YAT00000000010000001", "SK7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "sk01hf7yat0000000001000000011"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		no, err := seckill.ParseOrderNo(text)
		fromBytes, errBytes := seckill.ParseOrderNo([]byte(text))
		if fromBytes != no || (err == nil) != (errBytes == nil) {
			t.Fatalf("%q reads as %v as a string, %v as bytes", text, no, fromBytes)
		}
		if err != nil {
			if !no.IsZero() {
				t.Fatalf("%q is refused with the number %v", text, no)
			}
			return
		}
		if no.String() != text {
			t.Fatalf("%q and %q are the same number", text, no)
		}
		if marshalled, err := no.MarshalText(); err != nil || !slices.Equal(marshalled, []byte(text)) {
			t.Fatalf("%q is marshalled as %q, %v", text, marshalled, err)
		}
	})
}
