package problem

import "seckill"

// wants is how much a reader wants one language: a weight in thousandths, and
// where in the header it stood.
type wants struct {
	weight int // -1: not named
	place  int
}

// better keeps the heavier of two wishes for the same language.
func (w *wants) better(weight, place int) {
	if weight > w.weight {
		w.weight, w.place = weight, place
	}
}

// Language is the language that an Accept-Language header asks for (RFC 9110,
// 12.5.4): the heavier of en and zh, regional variants included, the first
// named at equal weight, English when it names neither. It does not allocate.
func Language[T string | []byte](header T) seckill.Lang {
	english, chinese, any := wants{weight: -1}, wants{weight: -1}, wants{weight: -1}
	for place, start := 0, 0; start <= len(header); place++ {
		end := start
		for end < len(header) && header[end] != ',' {
			end++
		}
		tagEnd, weight := parseRange(header, start, end)
		switch first := skipBlank(header, start, tagEnd); {
		case weight < 0:
		case speaks(header, first, tagEnd, 'e', 'n'):
			english.better(weight, place)
		case speaks(header, first, tagEnd, 'z', 'h'):
			chinese.better(weight, place)
		case tagEnd-first == 1 && header[first] == '*':
			any.better(weight, place)
		}
		start = end + 1
	}
	if english.weight < 0 {
		english = any
	}
	if chinese.weight < 0 {
		chinese = any
	}
	heavier := chinese.weight > english.weight
	earlier := chinese.weight == english.weight && chinese.place < english.place
	if chinese.weight > 0 && (heavier || earlier) {
		return seckill.Chinese
	}
	return seckill.English
}

// speaks reports whether header[from:to] is a language or a variant of it.
func speaks[T string | []byte](header T, from, to int, a, b byte) bool {
	return to-from >= 2 && header[from]|0x20 == a && header[from+1]|0x20 == b &&
		(to-from == 2 || header[from+2] == '-')
}

func skipBlank[T string | []byte](header T, from, to int) int {
	for from < to && (header[from] == ' ' || header[from] == '\t') {
		from++
	}
	return from
}

// parseRange finds where the tag of one range ends, and its weight in
// thousandths: 1000 without a q, -1 when the q is none.
func parseRange[T string | []byte](header T, start, end int) (tagEnd, weight int) {
	semicolon := start
	for semicolon < end && header[semicolon] != ';' {
		semicolon++
	}
	tagEnd = semicolon
	for tagEnd > start && (header[tagEnd-1] == ' ' || header[tagEnd-1] == '\t') {
		tagEnd--
	}
	if semicolon == end {
		return tagEnd, 1000
	}
	at := skipBlank(header, semicolon+1, end)
	if at+2 >= end || header[at]|0x20 != 'q' || header[at+1] != '=' {
		return tagEnd, -1
	}
	return tagEnd, parseWeight(header, at+2, end)
}

// parseWeight reads "0", "1", "0.8", "0.123" or "1.000".
func parseWeight[T string | []byte](header T, from, to int) int {
	for to > from && (header[to-1] == ' ' || header[to-1] == '\t') {
		to--
	}
	if to-from > 5 || from == to || header[from] != '0' && header[from] != '1' {
		return -1
	}
	weight, unit := int(header[from]-'0')*1000, 100
	if to-from > 1 && header[from+1] != '.' {
		return -1
	}
	for i := from + 2; i < to; i++ {
		if header[i] < '0' || header[i] > '9' {
			return -1
		}
		weight += int(header[i]-'0') * unit
		unit /= 10
	}
	if weight > 1000 {
		return -1
	}
	return weight
}
