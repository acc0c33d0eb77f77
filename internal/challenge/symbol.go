package challenge

import (
	"fmt"
	"io"
	"strings"
)

// Symbols of pictures: digits and capitals, without those that look alike when
// they are bent or struck through (0 and O and Q, 1 and I and L, 2 and Z, 5 and S,
// 8 and B, C and G, U and V).
//
// A picture of five symbols has 21⁵ = 4,084,101 answers. A challenge allows one
// guess, and a buyer gets ten challenges a minute. In the minute before the start, a
// robot with 10,000 accounts makes 100,000 guesses and gets one token with a
// chance of 2.4%. An account that guesses for an hour gets one with a chance
// of 0.015%.
//
// This holds for robots that cannot read pictures. In a trial attack, a small
// network read 57% of them after eight minutes of training with this generator.
const (
	symbols       = "34679ACDEFHJKMNPRTWXY"
	pictureLength = 5
)

// DefaultPerBuyerPerMinute is how many challenges a buyer may request. It allows
// some redrawn pictures. The arithmetic above uses it.
const DefaultPerBuyerPerMinute = 10

// drawSymbols draws a picture's answer. All answers are equally likely.
func drawSymbols(random io.Reader) (string, error) {
	// Skip larger bytes: they would make the first symbols more likely.
	const most = 256 / len(symbols) * len(symbols)
	answer := make([]byte, 0, pictureLength)
	var drawn [4 * pictureLength]byte
	for {
		if _, err := io.ReadFull(random, drawn[:]); err != nil {
			return "", fmt.Errorf("draw symbols: %w", err)
		}
		for _, b := range drawn {
			if int(b) < most {
				answer = append(answer, symbols[int(b)%len(symbols)])
			}
			if len(answer) == pictureLength {
				return string(answer), nil
			}
		}
	}
}

// typed normalizes an answer: capitals, no spaces between symbols, and ASCII
// instead of the full-width forms of Chinese input methods.
func typed(answer string) string {
	return strings.Map(func(r rune) rune {
		if r >= '！' && r <= '～' {
			r -= '！' - '!'
		}
		switch {
		case r == ' ' || r == '\u3000' || r == '\t' || r == '\n' || r == '\r':
			return -1
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		}
		return r
	}, answer)
}
