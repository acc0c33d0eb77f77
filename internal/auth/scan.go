package auth

import (
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the recursion into skipped values.
const maxDepth = 16

// scanner reads JSON (RFC 8259) over bytes that it may change: it decodes strings
// with escapes in place, which makes them shorter. The caller has checked that
// the text is valid UTF-8.
type scanner struct {
	text []byte
	at   int
}

// space skips white space. It always returns true, for use in conditions.
func (s *scanner) space() bool {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return true
		}
	}
	return true
}

// take skips c if it comes next.
func (s *scanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// str reads and decodes a string. The result points into the text.
func (s *scanner) str() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	for i := s.at; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			value := s.text[s.at:i]
			s.at = i + 1
			return value, true
		case c == '\\':
			return s.escaped(i)
		case c < 0x20:
			return nil, false
		}
	}
	return nil, false
}

// escaped continues a string at its first escape. It reads at from and writes at
// to; writing never overtakes reading.
func (s *scanner) escaped(from int) ([]byte, bool) {
	begin, to := s.at, from
	for from < len(s.text) {
		c := s.text[from]
		switch {
		case c == '"':
			s.at = from + 1
			return s.text[begin:to], true
		case c < 0x20:
			return nil, false
		case c != '\\':
			s.text[to] = c
			from, to = from+1, to+1
		default:
			r, length := unescape(s.text[from:])
			if length == 0 {
				return nil, false
			}
			// A rune takes at most 3 of the 6 bytes of its escape, or 4 of 12.
			to += utf8.EncodeRune(s.text[to:from+length], r)
			from += length
		}
	}
	return nil, false
}

// unescape reads one escape, which may be a surrogate pair, and returns its
// length. Length 0 means a mistake. A single surrogate is one: decoders replace
// it, so two buyers would become one.
func unescape(text []byte) (rune, int) {
	if len(text) < 2 {
		return 0, 0
	}
	switch text[1] {
	case '"', '\\', '/':
		return rune(text[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	r, ok := hex4(text)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	low, ok := hex4(text[6:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

// hex4 reads \uXXXX.
func hex4(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	r := rune(0)
	for _, c := range text[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// A number has at most maxNumber characters, and its exponent at most
// maxExponentDigits, so that float64 can hold it. JWT libraries read numbers as
// float64 and refuse a token with a larger one.
const (
	maxNumber         = 64
	maxExponentDigits = 2
)

// number skips a JSON number within the bounds.
func (s *scanner) number() bool {
	from := s.at
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		exponent := s.at
		if !s.digits() || s.at-exponent > maxExponentDigits {
			return false
		}
	}
	return s.at-from <= maxNumber
}

// digits skips at least one digit.
func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

// skip skips a value of any type.
func (s *scanner) skip(depth int) bool {
	if s.at == len(s.text) || depth > maxDepth {
		return false
	}
	switch s.text[s.at] {
	case '"':
		_, ok := s.str()
		return ok
	case '{':
		return s.skipAll('}', depth, true)
	case '[':
		return s.skipAll(']', depth, false)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

// skipAll skips an array, or an object if named.
func (s *scanner) skipAll(end byte, depth int, named bool) bool {
	s.at++
	s.space()
	if s.take(end) {
		return true
	}
	for {
		s.space()
		if named {
			if _, ok := s.str(); !ok || !s.space() || !s.take(':') || !s.space() {
				return false
			}
		}
		if !s.skip(depth+1) || !s.space() {
			return false
		}
		if s.take(end) {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *scanner) word(word string) bool {
	if len(s.text)-s.at < len(word) || string(s.text[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}
