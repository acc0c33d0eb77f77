package identity

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// maxMembers bounds the members of header and claims, and with them the
// search for duplicates. Tokens with roles and profiles have about twenty.
const maxMembers = 64

// object walks the members of a JSON object and refuses one that has two of
// the same name: two readers of such a token may see two different buyers.
type object struct {
	scanner
	names [maxMembers]span
	count int
}

// span is a name's place in the text: offsets keep the array small and free
// of pointers. Decoded parts are shorter than 64 KiB.
type span struct{ from, to uint16 }

// begin takes the opening brace.
func (o *object) begin() bool { return o.space() && o.take('{') }

// next is the name of the next member; its value comes next in the text. At
// the closing brace, after which nothing may follow, it is nil: an empty name
// is a member like others, and is not.
func (o *object) next() (name []byte, ok bool) {
	o.space()
	if o.take('}') {
		o.space()
		return nil, o.at == len(o.text)
	}
	if o.count > 0 && !o.take(',') {
		return nil, false
	}
	o.space()
	from := o.at + 1
	name, ok = o.str()
	if !ok || o.count == maxMembers {
		return nil, false
	}
	for _, s := range o.names[:o.count] {
		if string(o.text[s.from:s.to]) == string(name) {
			return nil, false
		}
	}
	o.names[o.count] = span{uint16(from), uint16(from + len(name))}
	o.count++
	o.space()
	if !o.take(':') {
		return nil, false
	}
	o.space()
	return name, true
}

// checkHeader demands HS256 and nothing that has to be understood beyond it.
func checkHeader(header []byte) error {
	o := object{scanner: scanner{text: header}}
	if !utf8.Valid(header) || !o.begin() {
		return ErrMalformed
	}
	hs256 := false
	for {
		name, ok := o.next()
		if !ok {
			return ErrMalformed
		}
		if name == nil {
			break
		}
		switch string(name) {
		case "alg":
			value, ok := o.str()
			if hs256 = ok && string(value) == "HS256"; !hs256 {
				return ErrAlgorithm
			}
		case "typ":
			if _, ok := o.str(); !ok {
				return ErrMalformed
			}
		case "crit":
			return ErrAlgorithm
		default:
			if !o.skip(0) {
				return ErrMalformed
			}
		}
	}
	if !hs256 {
		return ErrAlgorithm
	}
	return nil
}

// claims are the members that count. Dates are Unix seconds, -1 when absent.
type claims struct {
	subject       []byte
	exp, nbf, iat int64
}

// appendSubject reads the claims of a token whose signature has been verified.
func appendSubject(dst, payload []byte, now int64) ([]byte, error) {
	c, err := readClaims(payload)
	switch {
	case err != nil:
		return dst, err
	case c.exp < 0:
		return dst, ErrNoExpiry
	case now >= c.exp+leewaySeconds:
		return dst, ErrExpired
	case now < c.nbf-leewaySeconds || now < c.iat-leewaySeconds:
		return dst, ErrNotYetValid
	}
	if err := checkBuyer(c.subject); err != nil {
		return dst, err
	}
	return append(dst, c.subject...), nil
}

func readClaims(payload []byte) (claims, error) {
	c := claims{exp: -1, nbf: -1, iat: -1}
	o := object{scanner: scanner{text: payload}}
	if !utf8.Valid(payload) || !o.begin() {
		return c, ErrClaims
	}
	for {
		name, ok := o.next()
		if ok && name == nil {
			return c, nil
		}
		if ok {
			switch string(name) {
			case "sub":
				c.subject, ok = o.str()
			case "exp":
				c.exp, ok = o.date()
			case "nbf":
				c.nbf, ok = o.date()
			case "iat":
				c.iat, ok = o.date()
			default:
				ok = o.skip(0)
			}
		}
		if !ok {
			return c, ErrClaims
		}
	}
}

// date is a NumericDate: a number of seconds, from which a fraction is cut.
func (o *object) date() (int64, bool) {
	from := o.at
	if !o.number() {
		return 0, false
	}
	text := o.text[from:o.at]
	seconds := int64(0)
	for _, c := range text {
		if c < '0' || c > '9' {
			return oddDate(text)
		}
		if seconds = seconds*10 + int64(c-'0'); seconds > maxSeconds {
			return 0, false
		}
	}
	return seconds, true
}

// oddDate reads the spellings that few issuers use: 1.7e9, 1731283200.25.
func oddDate(text []byte) (int64, bool) {
	seconds, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsNaN(seconds) || seconds < 0 || seconds > maxSeconds {
		return 0, false
	}
	return int64(seconds), true
}
