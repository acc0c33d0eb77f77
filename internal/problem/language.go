package problem

import (
	"bytes"
	"strconv"

	"seckill"
)

const (
	// notNamed is the score of a language that a header does not name.
	notNamed = -1.0
	// maxRanges bounds the entries of a header that are read. Browsers send fewer
	// than ten.
	maxRanges = 32
)

// Language is the language that an Accept-Language header asks for (RFC 9110,
// 12.5.4): the heavier of en and zh, regional variants included, the first
// named at equal weight, English when it names neither. It does not allocate
// for a well-formed header.
func Language(header []byte) seckill.Lang {
	english, chinese, others := notNamed, notNamed, notNamed
	for place := 0; len(header) > 0 && place < maxRanges; place++ {
		var entry []byte
		entry, header, _ = bytes.Cut(header, []byte{','})
		tag, parameter, weighted := bytes.Cut(entry, []byte{';'})
		weight := 1.0
		if weighted {
			weight = parseWeight(parameter)
		}
		if weight < 0 {
			continue
		}
		// At equal weight the first counts: its place takes a billionth off, which
		// is far from the last digit of a weight.
		score := weight - float64(place)*1e-9
		switch tag = bytes.Trim(tag, " \t"); {
		case isVariant(tag, "en"):
			english = max(english, score)
		case isVariant(tag, "zh"):
			chinese = max(chinese, score)
		case string(tag) == "*":
			others = max(others, score)
		}
	}
	if english == notNamed {
		english = others
	}
	if chinese == notNamed {
		chinese = others
	}
	if chinese > 0 && chinese > english {
		return seckill.Chinese
	}
	return seckill.English
}

// isVariant reports whether a tag is a language or a variant of it.
func isVariant(tag []byte, language string) bool {
	n := len(language)
	return len(tag) >= n && bytes.EqualFold(tag[:n], []byte(language)) && (len(tag) == n || tag[n] == '-')
}

// parseWeight reads "q=0", "q=1", "q=0.8", "q=0.123" or "q=1.000"; -1 for
// anything else.
func parseWeight(parameter []byte) float64 {
	name, value, _ := bytes.Cut(bytes.Trim(parameter, " \t"), []byte{'='})
	if (string(name) != "q" && string(name) != "Q") || len(value) > len("0.123") || len(bytes.Trim(value, "0123456789.")) > 0 {
		return -1
	}
	weight, err := strconv.ParseFloat(string(value), 64)
	if err != nil || weight > 1 {
		return -1
	}
	return weight
}
