package api

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"seckill"
)

// many is an object with so many members.
func many(members int) string {
	var text strings.Builder
	for i := range members {
		text.WriteString(`,"m` + strconv.Itoa(i) + `":` + strconv.Itoa(i))
	}
	return "{" + strings.TrimPrefix(text.String(), ",") + "}"
}

func TestReadObject_RefusesAmbiguousJSON(t *testing.T) {
	long := strings.Repeat("x", maxFoldedName+1)
	for name, c := range map[string]struct{ body, want string }{
		"not UTF-8":                     {"{\"a\":\"\xff\"}", "UTF-8"},
		"surrogate in UTF-8":            {"{\"a\":\"\xed\xa0\x80\"}", "UTF-8"},
		"empty":                         {``, "JSON object"},
		"blank":                         {" \n", "JSON object"},
		"array":                         {`[{}]`, "JSON object"},
		"null":                          {`null`, "JSON object"},
		"byte order mark":               {"\ufeff{}", "JSON object"},
		"cut off":                       {`{"a":1`, "well-formed"},
		"cut off in a string":           {`{"a":"\`, "well-formed"},
		"brace alone":                   {`{`, "well-formed"},
		"comma first":                   {`{,"a":1}`, "well-formed"},
		"comma last":                    {`{"a":1,}`, "well-formed"},
		"no colon":                      {`{"a"}`, "well-formed"},
		"two colons":                    {`{"a":1:2}`, "well-formed"},
		"no value":                      {`{"a":}`, "well-formed"},
		"wrong bracket":                 {`{"a":1]`, "well-formed"},
		"wrong brackets inside":         {`{"a":[1}}`, "well-formed"},
		"name without quotes":           {`{a:1}`, "well-formed"},
		"word":                          {`{"a":nul}`, "well-formed"},
		"leading zero":                  {`{"a":01}`, "well-formed"},
		"control character":             {"{\"a\":\"\n\"}", "well-formed"},
		"two objects":                   {`{}{}`, "nothing after"},
		"object and a word":             {`{"a":1} x`, "nothing after"},
		"65 members":                    {many(MaxMembers + 1), "at most 64"},
		"2000 members":                  {many(2000), "at most 64"},
		"twice":                         {`{"a":1,"b":2,"a":1}`, `"a" must be given once`},
		"twice in two cases":            {`{"quantity":1,"Quantity":2}`, `"Quantity" must be given once`},
		"twice, once escaped":           {`{"quantity":1,"quantit\u0079":2}`, `"quantity" must be given once`},
		"twice in odd letters":          {`{"tasks":1,"tas\u212a\u017f":2}`, "must be given once"},
		"twice in Chinese":              {`{"订单":1,"订单":2}`, `"订单" must be given once`},
		"a long name twice":             {`{"` + long + `":1,"` + long + `":2}`, "must be given once"},
		"lone high surrogate":           {`{"ref":"\ud800"}`, `"ref" has half of a surrogate pair`},
		"lone low surrogate":            {`{"ref":"a\udc00"}`, `"ref" has half`},
		"surrogates in the wrong order": {`{"ref":"\udc00\ud800"}`, `"ref" has half`},
		"two high surrogates":           {`{"ref":"\ud83d\ud83d\ude00"}`, `"ref" has half`},
		"high surrogate and a letter":   {`{"ref":"\ud800\u0041"}`, `"ref" has half`},
		"lone surrogate inside":         {`{"a":[{"b":["\ud800"]}]}`, `"a" has half`},
		"lone surrogate as name inside": {`{"a":{"\ud800":1}}`, `"a" has half`},
		"lone surrogate as name":        {`{"\uD800":1}`, "name of a field"},
	} {
		object, err := ReadObject([]byte(c.body))
		if err == nil || !strings.Contains(err.Error(), c.want) || seckill.CodeOf(err) != seckill.CodeBadRequest {
			t.Errorf("%s: read %v with error %v, want %q", name, object, err, c.want)
		}
	}
}

func TestReadObject_SplitsMembers(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:        ``,
		" {\t}\r\n": ``,
		` { "a" : 1 , "b":[1, {"b":2,"b":3}] ,"c":"x,}\":\\" } `: `a=1 b=[1, {"b":2,"b":3}] c="x,}\":\\"`,
		`{"\u0061\"":"\ud83d\ude00","":null}`:                    `a"="\ud83d\ude00" =null`,
		`{"a":"\\ud800","b":"\\\\udc00"}`:                        `a="\\ud800" b="\\\\udc00"`, // no escapes of surrogates
		`{"a":1e400}`:                                            `a=1e400`,                   // as encoding/json skips it
	} {
		object, err := ReadObject([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		var got []string
		for _, member := range object {
			got = append(got, member.Name+"="+string(member.Value))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if object, err := ReadObject([]byte(many(MaxMembers))); err != nil || len(object) != MaxMembers {
		t.Errorf("the largest object: %d members, %v", len(object), err)
	}
}

func TestDecode_AcceptsOnlyScalarsOfRightType(t *testing.T) {
	object, err := ReadObject([]byte(`{"n":7,"TEXT":"x","null":null,"list":[1],"object":{},"big":1e400}`))
	if err != nil {
		t.Fatal(err)
	}
	n, text := 1, "before"
	for name, into := range map[string]any{"n": &n, "text": &text, "absent": &text} {
		if err := object.Decode(name, into); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n != 7 || text != "x" {
		t.Errorf("decoded %d and %q", n, text)
	}
	var number float64
	for name, into := range map[string]any{"n": &text, "text": &n, "null": &text, "list": &[]int{}, "object": &struct{}{}, "big": &number} {
		if err := object.Decode(name, into); seckill.CodeOf(err) != seckill.CodeBadRequest || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want bad_request", name, err)
		}
	}
}

// reference reads an object with encoding/json under the same rules, surrogates
// aside.
func reference(body []byte) (names []string, values map[string]json.RawMessage, ok bool) {
	if !utf8.Valid(body) || !bytes.HasPrefix(bytes.TrimLeft(body, blank), []byte("{")) || json.Unmarshal(body, &values) != nil {
		return nil, nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	_, _ = decoder.Token() // {
	for decoder.More() {
		token, _ := decoder.Token()
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return nil, nil, false
		}
		name, _ := token.(string)
		for _, other := range names {
			if name == other || len(name) <= maxFoldedName && len(other) <= maxFoldedName && strings.EqualFold(name, other) {
				return nil, nil, false
			}
		}
		names = append(names, name)
	}
	return names, values, len(names) <= MaxMembers
}

// FuzzReadObject holds the splitter to encoding/json.
func FuzzReadObject(f *testing.F) {
	for _, body := range []string{
		`{}`, ` { "a" : 1 , "b":[1, {"b":2}] ,"c":"x,}\":\\" } `, `{"a":1,"A":2}`, `{"\u0061":1,"a":2}`, `{"a":1e400,"b":1e-400}`, `{"a":1}{}`, `{"a":1,}`,
		`{"a":[}]}`, `{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, `{"\ud83d":1}`, `{"tasks":1,"tas\u212a\u017f":2}`, `{"":{"":[""]}}`, many(64), many(65), "{\"\xff\":1}",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		object, err := ReadObject(body)
		names, values, ok := reference(body)
		if err != nil {
			if ok && !strings.Contains(err.Error(), "surrogate") {
				t.Fatalf("%q: refused with %v", body, err)
			}
			return
		}
		if !ok || len(object) != len(names) {
			t.Fatalf("%q: read %d members, encoding/json %d, %t", body, len(object), len(names), ok)
		}
		for i, member := range object {
			if member.Name != names[i] || !bytes.Equal(member.Value, values[member.Name]) {
				t.Fatalf("%q: member %d is %q = %s, want %q = %s", body, i, member.Name, member.Value, names[i], values[names[i]])
			}
		}
	})
}

// A lone surrogate is what encoding/json replaces, and nothing else is.
func FuzzLoneSurrogate(f *testing.F) {
	for _, text := range []string{`\ud800`, `\ud83d\ude00`, `\\ud800`, `\udc00\ud800`, "\ufffd", `\ufffd`, `\uD83D\uDE00\uD83D`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := []byte(`"` + text + `"`)
		var decoded string
		if !utf8.ValidString(text) || json.Unmarshal(quoted, &decoded) != nil {
			return
		}
		replaced := strings.Count(decoded, "\ufffd") > strings.Count(text, "\ufffd")+strings.Count(strings.ToLower(text), `\ufffd`)
		if replaced && !hasLoneSurrogate(quoted) {
			t.Errorf("%s: a replaced surrogate was not found", quoted)
		}
		again, err := json.Marshal(decoded)
		if err != nil {
			t.Fatal(err)
		}
		if hasLoneSurrogate(again) {
			t.Errorf("%s: a surrogate was found in %s", quoted, again)
		}
	})
}

// A name that the decoder takes for a field is the field's name here too.
func FuzzFoldedName(f *testing.F) {
	for _, name := range []string{"Quantity", "task", "tas\u212a", "ta\u017fk", "\xff", "\u0130"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		quoted, err := json.Marshal(name)
		if err != nil {
			return
		}
		for _, field := range []string{"quantity", "task", "ref"} {
			var read struct{ Quantity, Task, Ref int }
			if err := json.Unmarshal([]byte(`{`+string(quoted)+`:7}`), &read); err != nil {
				t.Fatal(err)
			}
			taken := map[string]int{"quantity": read.Quantity, "task": read.Task, "ref": read.Ref}[field] == 7
			if _, err := ReadObject([]byte(`{"` + field + `":1,` + string(quoted) + `:7}`)); (err != nil) != taken {
				t.Errorf("%q beside %q: %v, the decoder takes it: %v", name, field, err, taken)
			}
			object, err := ReadObject([]byte(`{` + string(quoted) + `:7}`))
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			if err := object.Decode(field, &n); err != nil || (n == 7) != taken {
				t.Errorf("%q for %q: decoded %d, %v, the decoder takes it: %v", name, field, n, err, taken)
			}
		}
	})
}
