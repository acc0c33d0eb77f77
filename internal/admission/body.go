package admission

import (
	"bytes"
	"unicode/utf8"

	"seckill"
	"seckill/internal/api"
)

// claimBody is the body of a purchase.
type claimBody struct {
	quantity int
	token    []byte
	ref      string
}

// maxTokenBytes bounds a purchase token before any computation.
const maxTokenBytes = 512

// readBody reads {"quantity":1,"token":"…","ref":"…"}. A missing quantity is
// 1, an empty body is {}; unknown members are ignored. api.ReadObject
// says which bodies are refused.
func readBody(body []byte, limit int) (claimBody, error) {
	claim, plain := scanBody(body)
	if !plain {
		var err error
		if claim, err = decodeBody(body); err != nil {
			return claimBody{}, err
		}
	}
	if claim.quantity < 1 || claim.quantity > limit {
		return claimBody{}, seckill.Errorf(seckill.CodeBadRequest, "quantity must be 1 to %d", limit)
	}
	if len(claim.token) > maxTokenBytes {
		return claimBody{}, seckill.Errorf(seckill.CodeBadRequest, "token must have at most %d bytes", maxTokenBytes)
	}
	if err := seckill.CheckRef(claim.ref); err != nil {
		return claimBody{}, err
	}
	return claim, nil
}

// scanBody reads the usual spelling of a body without allocating: known members once
// each, no escapes, small whole numbers. It returns false for all other bodies;
// decodeBody reads those.
func scanBody(body []byte) (claim claimBody, plain bool) {
	claim.quantity = 1
	rest := bytes.TrimLeft(body, " \t\r\n")
	if len(rest) == 0 {
		return claim, true
	}
	if rest[0] != '{' {
		return claim, false
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	var seen [3]bool
	for first := true; len(rest) > 0; first = false {
		if rest[0] == '}' {
			return claim, first && len(bytes.TrimLeft(rest[1:], " \t\r\n")) == 0
		}
		var name, text []byte
		var ok bool
		if name, rest, ok = scanString(rest); !ok || len(rest) == 0 || rest[0] != ':' {
			return claim, false
		}
		rest = bytes.TrimLeft(rest[1:], " \t\r\n")
		switch {
		case string(name) == "quantity" && !seen[0]:
			claim.quantity, rest, ok = scanInt(rest)
			seen[0] = true
		case string(name) == "token" && !seen[1]:
			claim.token, rest, ok = scanString(rest)
			seen[1] = true
		case string(name) == "ref" && !seen[2]:
			text, rest, ok = scanString(rest)
			claim.ref = string(text)
			seen[2] = true
		default:
			ok = false
		}
		if !ok || len(rest) == 0 {
			return claim, false
		}
		switch rest[0] {
		case ',':
			rest = bytes.TrimLeft(rest[1:], " \t\r\n")
			if len(rest) > 0 && rest[0] == '}' {
				return claim, false
			}
		case '}':
			return claim, len(bytes.TrimLeft(rest[1:], " \t\r\n")) == 0
		default:
			return claim, false
		}
	}
	return claim, false
}

// scanString reads a string without escapes, and the white space after it.
func scanString(text []byte) (value, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			value = text[1:i]
			return value, bytes.TrimLeft(text[i+1:], " \t\r\n"), utf8.Valid(value)
		case c == '\\' || c < 0x20:
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// scanInt reads a whole number of one to six digits.
func scanInt(text []byte) (value int, rest []byte, ok bool) {
	i := 0
	for i < len(text) && i < 7 && text[i] >= '0' && text[i] <= '9' {
		value = value*10 + int(text[i]-'0')
		i++
	}
	if i == 0 || i > 6 || i > 1 && text[0] == '0' {
		return 0, nil, false
	}
	return value, bytes.TrimLeft(text[i:], " \t\r\n"), true
}

// decodeBody reads every other spelling.
func decodeBody(body []byte) (claimBody, error) {
	object, err := api.ReadObject(body)
	if err != nil {
		return claimBody{}, err
	}
	claim := claimBody{quantity: 1}
	var token string
	for _, field := range []struct {
		name string
		into any
	}{{"quantity", &claim.quantity}, {"token", &token}, {"ref", &claim.ref}} {
		if err := object.Decode(field.name, field.into); err != nil {
			return claimBody{}, err
		}
	}
	claim.token = []byte(token)
	return claim, nil
}
