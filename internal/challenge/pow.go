package challenge

import (
	"crypto/sha256"
	"math"
	"math/bits"
	"strconv"
)

const (
	// DefaultPowBits is a mean of 2¹⁴ hashes. The page's worker makes 540,000 a
	// second in Chromium on one core of an AMD EPYC (the best of 80 stretches of
	// 40 ms, so that neighbours do not count). A phone is taken to be four to six
	// times slower, as Chrome's own presets for mobile devices have it: 0.12 to
	// 0.18 s in the mean, and below 0.85 s for 99 of 100.
	DefaultPowBits = 14
	// MaxPowBits bounds what can be configured.
	MaxPowBits = 20
	// MaxRise bounds what load adds: sixteen times the work. Beyond it people
	// would give up before robots do.
	MaxRise = 4
	// AlternativeBits make the proof of work that stands in for a picture
	// sixteen times as hard as one that is asked of everybody. Without them the
	// alternative, which people who cannot see a picture depend on, would be the
	// cheapest way in for a robot.
	AlternativeBits = 4
	// maxDifficulty bounds all of it together: ten seconds of a phone, within the
	// lead that a token has.
	maxDifficulty = 20
	// maxSolutionBytes is every number below 2⁶⁴.
	maxSolutionBytes = 20
)

// difficulty of a proof of work: base bits, more for one that stands in for a
// picture, and more under load.
func difficulty(base int, alternative bool, perSecond, calm float64) int {
	if alternative {
		base += AlternativeBits
	}
	return min(base+rise(perSecond, calm), max(base, maxDifficulty))
}

// rise is one bit for each doubling of the rate beyond calm: whoever asks for
// twice as many challenges has to work twice as much for each.
func rise(perSecond, calm float64) int {
	if !(perSecond > calm) || !(calm > 0) {
		return 0
	}
	return int(min(math.Floor(math.Log2(perSecond/calm)), MaxRise))
}

// Solved reports whether the answer, up to 20 digits, solves a proof of work:
// SHA-256 of the challenge's id, ":" and the answer begins with so many zero
// bits.
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
