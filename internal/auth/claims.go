package auth

import (
	"strconv"
	"unicode/utf8"
)

// maxMembers bounds the members of header and claims, and so the search for
// duplicates. Tokens with roles and profiles have about twenty.
const maxMembers = 64

// object walks the members of a JSON object. It refuses duplicate names: two
// readers of such a token may see two different buyers.
type object struct {
	scanner
	names [maxMembers]span
	count int
}

// span is the position of a name in the text. Offsets keep the array small and
// free of pointers. Decoded parts are shorter than 64 KiB.
type span struct{ from, to uint16 }

// begin reads the opening brace.
func (o *object) begin() bool { return o.space() && o.take('{') }

// next returns the name of the next member and stops before its value. At the
// closing brace the name is nil; ok is then false if text follows. An empty name
// is a valid name and not nil.
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

// readHeader returns the algorithm of a token and the name of its key, nil if it
// has none. It refuses tokens with `crit`: they need extensions.
func readHeader(header []byte) (alg algorithm, kid []byte, err error) {
	o := object{scanner: scanner{text: header}}
	if !utf8.Valid(header) || !o.begin() {
		return 0, nil, ErrMalformed
	}
	for {
		name, ok := o.next()
		if !ok {
			return 0, nil, ErrMalformed
		}
		if name == nil {
			break
		}
		switch string(name) {
		case "alg":
			value, ok := o.str()
			if alg = algorithmOf(value); !ok || alg == 0 {
				return 0, nil, ErrAlgorithm
			}
		case "kid":
			kid, ok = o.str()
		case "typ":
			_, ok = o.str()
		case "crit":
			return 0, nil, ErrAlgorithm
		default:
			ok = o.skip(0)
		}
		if !ok {
			return 0, nil, ErrMalformed
		}
	}
	if alg == 0 {
		return 0, nil, ErrAlgorithm
	}
	return alg, kid, nil
}

// claims are the claims that the verifier uses. Dates are Unix seconds, -1 if absent.
type claims struct {
	subject, issuer, id []byte
	exp, nbf, iat       int64
	// addressed: the token is for the configured audience. login: it is a
	// login code.
	addressed, login bool
}

// notBefore is the instant from which the token is valid.
func (c *claims) notBefore() int64 { return max(c.nbf, c.iat) }

// readClaims reads a payload. audience is the configured one.
func readClaims(payload []byte, audience string) (claims, error) {
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
			case "iss":
				c.issuer, ok = o.str()
			case "jti":
				c.id, ok = o.str()
			case "aud":
				ok = c.readAudience(&o, audience)
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

// readAudience reads one audience or an array of audiences.
func (c *claims) readAudience(o *object, audience string) bool {
	if !o.take('[') {
		return c.readOneAudience(o, audience)
	}
	if o.space(); o.take(']') {
		return true
	}
	for {
		if o.space(); !c.readOneAudience(o, audience) {
			return false
		}
		if o.space(); o.take(']') {
			return true
		}
		if !o.take(',') {
			return false
		}
	}
}

func (c *claims) readOneAudience(o *object, audience string) bool {
	value, ok := o.str()
	c.addressed = c.addressed || string(value) == audience
	c.login = c.login || string(value) == LoginAudience
	return ok
}

// checkDates refuses tokens that have expired or are not valid yet.
func (v *Verifier) checkDates(exp, notBefore, now int64) error {
	switch {
	case exp < 0:
		return ErrNoExpiry
	case now >= exp+v.leeway:
		return ErrExpired
	case now < notBefore-v.leeway:
		return ErrNotYetValid
	}
	return nil
}

// date reads a NumericDate, a number of seconds, and drops its fraction.
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

// oddDate reads rare spellings such as 1.7e9 and 1731283200.25.
func oddDate(text []byte) (int64, bool) {
	seconds, err := strconv.ParseFloat(string(text), 64)
	if err != nil || seconds < 0 || seconds > maxSeconds {
		return 0, false
	}
	return int64(seconds), true
}
