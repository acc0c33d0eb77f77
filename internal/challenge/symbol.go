package challenge

import (
	"fmt"
	"io"
	"strings"
)

// Symbols of pictures: digits and capitals without those that people take for
// each other when they are bent or struck through (0 and O and Q, 1 and I and L,
// 2 and Z, 5 and S, 8 and B, C and G, U and V).
//
// A picture of five has 21⁵ = 4,084,101 answers. A challenge may be guessed at
// once, and a buyer gets ten of them a minute: in the minute before the start a
// robot with 10,000 accounts makes 100,000 guesses, and has one token with a
// chance of 2.4%. An account that guesses for a whole hour has one with a chance
// of 0.015%.
//
// That is for robots that cannot see. In a trial attack a small network, trained
// for eight minutes on pictures of this generator, read 57% of them.
const (
	symbols       = "34679ACDEFHJKMNPRTWXY"
	pictureLength = 5
)

// DefaultPerBuyerPerMinute is how many challenges a buyer may ask for: enough
// to have some pictures drawn anew, and what the arithmetic above reckons with.
const DefaultPerBuyerPerMinute = 10

// drawSymbols draws a picture's answer, every one as likely as any other.
func drawSymbols(random io.Reader) (string, error) {
	// Bytes beyond the last whole multiple would make the first symbols likelier.
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

// typed is the answer as it was meant: in capitals, without the spaces that
// people put between symbols, and in ASCII also where an input method for
// Chinese has typed full-width forms.
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
