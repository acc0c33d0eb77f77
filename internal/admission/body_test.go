package admission

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"seckill"
	"seckill/internal/api"
)

func TestReadBody(t *testing.T) {
	long := strings.Repeat("x", 200)
	var many strings.Builder // 64 members
	for i := range api.MaxMembers {
		fmt.Fprintf(&many, `"m%d":%d,`, i, i)
	}
	for _, c := range []struct {
		name, body string
		quantity   int // 0 means bad_request
		token, ref string
	}{
		{"plain", `{"quantity":2,"token":"tok","ref":"shop-1"}`, 2, "tok", "shop-1"},
		{"spaced", " {\t\"ref\" : \"a b\" ,\r\n \"quantity\" : 3 } ", 3, "", "a b"},
		{"empty body", ``, 1, "", ""},
		{"empty object", `{}`, 1, "", ""},
		{"unknown members are ignored", `{"quantity":1,"colour":{"a":[1,2]}}`, 1, "", ""},
		{"escapes", `{"ref":"\u00e9\"x"}`, 1, "", `é"x`},
		{"Chinese", `{"ref":"订单"}`, 1, "", "订单"},
		{"given twice", `{"quantity":1,"quantity":2}`, 0, "", ""},
		{"given twice alike", `{"quantity":1,"quantity":1}`, 0, "", ""},
		{"given twice in two cases", `{"quantity":1,"Quantity":2}`, 0, "", ""},
		{"given twice, once escaped", `{"quantity":1,"quantit\u0079":2}`, 0, "", ""},
		{"a text given twice", `{"ref":"a","ref":"b"}`, 0, "", ""},
		{"an unknown member given twice", `{"colour":1,"colour":2}`, 0, "", ""},
		{"64 members", `{` + strings.TrimSuffix(many.String(), ",") + `}`, 1, "", ""},
		{"65 members", `{` + many.String() + `"quantity":1}`, 0, "", ""},
		{"a lone surrogate", `{"ref":"\ud800"}`, 0, "", ""},
		{"a lone surrogate in a token", `{"token":"\udc00"}`, 0, "", ""},
		{"a lone surrogate in an unknown member", `{"x":["\ud800"]}`, 0, "", ""},
		{"a lone surrogate in a name", `{"\ud800":1}`, 0, "", ""},
		{"a surrogate pair", `{"ref":"\ud83d\ude00"}`, 1, "", "😀"},
		{"an unknown number out of range", `{"x":1e400}`, 1, "", ""}, // skipped, as encoding/json does
		{"zero", `{"quantity":0}`, 0, "", ""},
		{"negative", `{"quantity":-1}`, 0, "", ""},
		{"above the limit", `{"quantity":6}`, 0, "", ""},
		{"huge", `{"quantity":99999999999999999999}`, 0, "", ""},
		{"fraction", `{"quantity":1.5}`, 0, "", ""},
		{"exponent", `{"quantity":1e0}`, 0, "", ""},
		{"leading zero", `{"quantity":01}`, 0, "", ""},
		{"text for a number", `{"quantity":"1"}`, 0, "", ""},
		{"null quantity", `{"quantity":null}`, 0, "", ""},
		{"null ref", `{"ref":null}`, 0, "", ""},
		{"number for a text", `{"ref":5}`, 0, "", ""},
		{"array", `[]`, 0, "", ""},
		{"number", `1`, 0, "", ""},
		{"cut short", `{"quantity":1`, 0, "", ""},
		{"trailing comma", `{"quantity":1,}`, 0, "", ""},
		{"trailing data", `{"quantity":1}{}`, 0, "", ""},
		{"not UTF-8", "{\"ref\":\"\xff\"}", 0, "", ""},
		{"control character", "{\"ref\":\"\\u0007\"}", 0, "", ""},
		{"long ref", `{"ref":"` + long + `"}`, 0, "", ""},
		{"long token", `{"token":"` + strings.Repeat("x", 600) + `"}`, 0, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			claim, err := readBody([]byte(c.body), 5)
			if c.quantity == 0 {
				if seckill.CodeOf(err) != seckill.CodeBadRequest {
					t.Fatalf("got %+v, %v; want bad_request", claim, err)
				}
				return
			}
			if err != nil || claim.quantity != c.quantity || string(claim.token) != c.token || claim.ref != c.ref {
				t.Fatalf("got %+v, %v", claim, err)
			}
		})
	}
}

func TestReadBody_NamesDuplicateMember(t *testing.T) {
	_, err := readBody([]byte(`{"quantity":1,"quantity":2}`), 5)
	if err == nil || !strings.Contains(err.Error(), `field "quantity" must be given once`) {
		t.Errorf("the refusal is %v", err)
	}
}

// The fast reader accepts only what the full decoder accepts, with the same result.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"quantity":1}`, `{"quantity":2,"token":"t","ref":"r"}`, `{"ref":"\u00e9"}`, `{"quantity":1,}`, "{\"ref\":\"\xff\"}", `{"a":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		fast, plain := scanBody(body)
		if !plain || len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
			return
		}
		full, err := decodeBody(body)
		if err != nil {
			t.Fatalf("the fast reader took %q, the decoder says %v", body, err)
		}
		if fast.quantity != full.quantity || string(fast.token) != string(full.token) || fast.ref != full.ref {
			t.Fatalf("%q: fast %+v, full %+v", body, fast, full)
		}
	})
}
