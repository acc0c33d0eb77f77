package identity

import "cmp"

// infinity is the least number that float64 rounds to infinity, 2¹⁰²⁴ − 2⁹⁷⁰.
// Read as 0.1797…, it has the exponent infinityExponent.
const (
	infinity = "1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070963" +
		"3028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447573027" +
		"0069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792"
	infinityExponent = 309
	// exponentBound stops counting an exponent, far beyond the digits of a token.
	exponentBound = 10_000
)

// decimal is how large a number of JSON's grammar is: 0.ddd × 10^exponent, where
// the first digit is not 0. The sign is left out. It is found in one pass over
// the text. strconv.ParseFloat would take up to 60 µs for a number close to
// float64's bounds, and a token has room for a hundred.
type decimal struct {
	exponent int
	digits   int // 0 of a number that is 0
	order    int // how the digits compare to infinity's, as far as both go
}

func readDecimal(number []byte) (d decimal) {
	fraction := false
	for i, c := range number {
		switch {
		case c == '-':
		case c == '.':
			fraction = true
		case c == 'e' || c == 'E':
			d.exponent += readExponent(number[i+1:])
			return d
		case c == '0' && d.digits == 0:
			if fraction {
				d.exponent--
			}
		default:
			if !fraction {
				d.exponent++
			}
			if d.order == 0 && d.digits < len(infinity) {
				d.order = cmp.Compare(c, infinity[d.digits])
			}
			d.digits++
		}
	}
	return d
}

func readExponent(text []byte) (exponent int) {
	for _, c := range text {
		if c >= '0' && c <= '9' && exponent < exponentBound {
			exponent = exponent*10 + int(c-'0')
		}
	}
	if text[0] == '-' {
		return -exponent
	}
	return exponent
}

// overflows reports whether float64 has no such number. One that is too small
// for float64 is 0 there, and does not overflow.
func (d decimal) overflows() bool {
	switch {
	case d.digits == 0:
		return false
	case d.exponent != infinityExponent:
		return d.exponent > infinityExponent
	case d.order != 0:
		return d.order > 0
	}
	return d.digits >= len(infinity)
}
