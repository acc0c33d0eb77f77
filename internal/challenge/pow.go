package challenge

import (
	"crypto/sha256"
	"math"
	"math/bits"
	"strconv"
)

const (
	// DefaultPowBits needs 2¹⁴ hashes on average. The page's worker makes 540,000
	// a second in Chromium on one core of an AMD EPYC (the best of 80 stretches of
	// 40 ms, to exclude other load). Chrome's presets for mobile devices assume
	// phones four to six times slower: 0.12 to 0.18 s on average, and below 0.85 s
	// in 99 of 100 cases.
	DefaultPowBits = 14
	// MaxPowBits bounds the configured value, also with load and for a picture's
	// alternative: 8 to 12 s on average on a phone.
	MaxPowBits = 20
	// MaxRise bounds the bits that load adds: sixteen times the work. With more,
	// people would give up before robots do.
	MaxRise = 4
	// AlternativeBits make the alternative to a picture 32 times as hard as the
	// usual proof of work. People who cannot see a picture need the alternative.
	// Without these bits it would be the cheapest way for a robot. With the usual
	// 14 bits it has 19: 100 ms of a server's core, 4 to 6 s of a phone, and below
	// 27 s for 99 of 100 slow phones. The page begins at least 40 s before the
	// start. One bit more would be too late for some phones.
	AlternativeBits = 5
	// maxDifficulty bounds the sum, reputation included. A slow phone makes 90,000
	// hashes a second, 2²² in 47 s on average. The chance that it needs longer than
	// a challenge's TTL of 300 s is e^(-300·90,000/2²²), 2 in 1,000. With 23 bits
	// it would be 4 in 100.
	maxDifficulty = 22
	// maxSolutionBytes fits every number below 2⁶⁴.
	maxSolutionBytes = 20
)

// difficulty returns the bits of a proof of work. Base and load are the same for
// all buyers; reputation is the buyer's own.
func difficulty(base, load, reputation int) int {
	return min(min(base+load, MaxPowBits)+reputation, maxDifficulty)
}

// rise returns one bit for each doubling of measured above calm, up to most. So
// twice as many challenges cost twice as much work each.
func rise(measured, calm float64, most int) int {
	if !(measured > calm) || !(calm > 0) {
		return 0
	}
	return int(min(math.Floor(math.Log2(measured/calm)), float64(most)))
}

// Solved reports whether answer, up to 20 digits, solves a proof of work: SHA-256
// of the challenge's id, ":" and the answer has this number of leading zero bits.
func Solved(challengeID, answer string, zeros int) bool {
	if len(answer) == 0 || len(answer) > maxSolutionBytes {
		return false
	}
	for i := range len(answer) {
		if answer[i] < '0' || answer[i] > '9' {
			return false
		}
	}
	sum := sha256.Sum256([]byte(challengeID + ":" + answer))
	return leadingZeros(&sum) >= zeros
}

// Solve finds the smallest solution, as a client does.
func Solve(challengeID string, zeros int) (answer string) {
	message := append([]byte(challengeID), ':')
	for n := uint64(0); ; n++ {
		digits := strconv.AppendUint(message, n, 10)
		if sum := sha256.Sum256(digits); leadingZeros(&sum) >= zeros {
			return string(digits[len(message):])
		}
	}
}

func leadingZeros(sum *[sha256.Size]byte) (zeros int) {
	for _, b := range sum {
		if b != 0 {
			return zeros + bits.LeadingZeros8(b)
		}
		zeros += 8
	}
	return zeros
}
