package api

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"seckill"
)

const (
	// MaxMembers bounds the members of a request's object. Requests have at most
	// twenty.
	MaxMembers = 64
	// maxFoldedName is the longest name whose letter case is ignored. Folding a
	// letter costs up to 100 ns, and a name may fill the body. Known names have at
	// most 16 letters, of at most 3 bytes each in any spelling.
	maxFoldedName = 64
)

// Object has the members of a JSON object, in order.
type Object []Member

// Member is one member of an object, with its undecoded value.
type Member struct {
	Name  string
	Value []byte
}

// ReadObject splits a request's body into its members. All HTTP APIs use it, so all
// of them refuse with bad_request:
//
//   - A body that is not UTF-8, or not exactly one JSON object.
//   - More than MaxMembers members.
//   - A duplicate member: a proxy or a log may have read one of them and the engine
//     the other. Names that differ only in case are duplicates, as in encoding/json.
//   - Half of a surrogate pair in a name or a string. Decoders replace it, and
//     different texts would become equal.
//
// Members of nested objects are not checked: no request has any. The cost is linear
// in the body's length. Bodies with too many members are refused before parsing.
func ReadObject(body []byte) (Object, error) {
	if !utf8.Valid(body) {
		return nil, bad("the body must be UTF-8")
	}
	pairs, err := split(body)
	if err != nil {
		return nil, err
	}
	if !json.Valid(body) {
		return nil, errNotJSON
	}
	object, seen := make(Object, len(pairs)), make(map[string]bool, len(pairs))
	for i, pair := range pairs {
		if hasLoneSurrogate(pair.name) {
			return nil, bad("the name of a field has half of a surrogate pair")
		}
		name := unquote(pair.name)
		if hasLoneSurrogate(pair.value) {
			return nil, bad("field %.64q has half of a surrogate pair", name)
		}
		folded := fold(name)
		if seen[folded] {
			return nil, bad("field %.64q must be given once", name)
		}
		seen[folded] = true
		object[i] = Member{name, pair.value}
	}
	return object, nil
}

var errNotJSON = bad("the body must be well-formed JSON")

func bad(format string, args ...any) *seckill.Error {
	return seckill.Errorf(seckill.CodeBadRequest, format, args...)
}

// Decode decodes a string, number or boolean like json.Unmarshal. It does nothing if
// the member is absent. null has the wrong type.
func (o Object) Decode(name string, into any) error {
	for i := range o {
		if !strings.EqualFold(o[i].Name, name) {
			continue
		}
		switch o[i].Value[0] {
		case '{', '[', 'n': // nested values and null are refused without decoding
		default:
			if json.Unmarshal(o[i].Value, into) == nil {
				return nil
			}
		}
		return bad("%s has the wrong type", name)
	}
	return nil
}

// pair is a raw member of the body, with its name in quotes.
type pair struct{ name, value []byte }

// split finds the members of an object. It checks only quotes, brackets, colons and
// commas; the caller checks the rest of the JSON.
func split(body []byte) (pairs []pair, err error) {
	at := len(body) - len(bytes.TrimLeft(body, blank))
	if at == len(body) || body[at] != '{' {
		return nil, bad("the body must be a JSON object")
	}
	for delimiter := byte(','); delimiter != '}'; {
		if delimiter != ',' {
			return nil, errNotJSON
		}
		if len(pairs) == MaxMembers {
			return nil, bad("the body must have at most %d fields", MaxMembers)
		}
		colon, after := nextDelimiter(body, at+1)
		name := bytes.Trim(body[at+1:colon], blank)
		if at, delimiter = colon, after; delimiter == '}' && len(name) == 0 && len(pairs) == 0 {
			break // {}
		}
		if delimiter != ':' {
			return nil, errNotJSON
		}
		at, delimiter = nextDelimiter(body, colon+1)
		pairs = append(pairs, pair{name, bytes.Trim(body[colon+1:at], blank)})
	}
	if len(bytes.TrimLeft(body[at+1:], blank)) > 0 {
		return nil, bad("the body must be one JSON object and nothing after it")
	}
	return pairs, nil
}

// nextDelimiter returns the next colon, comma or closing bracket outside of strings
// and nested values, with its position. At the end of the body it returns 0.
func nextDelimiter(body []byte, i int) (at int, delimiter byte) {
	for depth := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']', ':', ',':
			if depth == 0 {
				return i, c
			}
			if c == '}' || c == ']' {
				depth--
			}
		}
	}
	return len(body), 0
}

// blank is JSON's white space.
const blank = " \t\r\n"

// unquote decodes a valid JSON string.
func unquote(quoted []byte) (text string) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	_ = json.Unmarshal(quoted, &text) // cannot fail: it is valid
	return text
}

// fold returns the same text for all spellings of a name that differ only in case.
func fold(name string) string {
	if len(name) > maxFoldedName {
		return name
	}
	folded := []rune(name)
	for i, letter := range folded {
		for next := unicode.SimpleFold(letter); next != letter; next = unicode.SimpleFold(next) {
			folded[i] = min(folded[i], next)
		}
	}
	return string(folded)
}

// hasLoneSurrogate reports whether a string in valid JSON has half of a surrogate
// pair. encoding/json would silently replace it by U+FFFD.
func hasLoneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		unit, ok := escapedUnit(raw[i:])
		if !ok {
			i++ // a two-byte escape
			continue
		}
		i += 5
		switch {
		case unit >= 0xDC00 && unit < 0xE000:
			return true
		case unit >= 0xD800 && unit < 0xDC00:
			low, ok := escapedUnit(raw[i+1:])
			if !ok || low < 0xDC00 || low >= 0xE000 {
				return true
			}
			i += 6
		}
	}
	return false
}

// escapedUnit reads the \uXXXX at the start of raw.
func escapedUnit(raw []byte) (uint64, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return unit, err == nil
}
