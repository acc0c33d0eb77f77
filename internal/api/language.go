package api

import (
	"bytes"

	"seckill"
)

// maxRanges bounds the header entries that are read. Browsers send fewer than ten.
const maxRanges = 32

// Language returns the first of en and zh, with regional variants, in an
// Accept-Language header, and English if there is neither. Browsers list preferred
// languages first, so weights are not read. It does not allocate.
func Language(header []byte) seckill.Lang {
	for range maxRanges {
		entry, rest, more := bytes.Cut(header, []byte{','})
		tag, _, _ := bytes.Cut(entry, []byte{';'})
		switch tag = bytes.Trim(tag, " \t"); {
		case isVariant(tag, "en"):
			return seckill.English
		case isVariant(tag, "zh"):
			return seckill.Chinese
		case !more:
			return seckill.English
		}
		header = rest
	}
	return seckill.English
}

// isVariant reports whether a tag is a language or a variant of it.
func isVariant(tag []byte, language string) bool {
	n := len(language)
	return len(tag) >= n && bytes.EqualFold(tag[:n], []byte(language)) && (len(tag) == n || tag[n] == '-')
}
