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
	// MaxPowBits bounds what can be configured, and what load and a picture's
	// alternative make of it: 8 to 12 s of a phone in the mean.
	MaxPowBits = 20
	// MaxRise bounds what load adds: sixteen times the work. Beyond it people
	// would give up before robots do.
	MaxRise = 4
	// AlternativeBits make the proof of work that stands in for a picture 32 times
	// as hard as one that is asked of everybody. Without them the alternative,
	// which people who cannot see a picture depend on, would be the cheapest way
	// in for a robot. With the usual 14 bits it has 19: 100 ms of a server's core,
	// 4 to 6 s of a phone, and below 27 s for 99 of 100 slow phones. The page
	// begins at least 40 s before the start, so one bit more would be too late for
	// some of them.
	AlternativeBits = 5
	// maxDifficulty bounds all of it together, with the asker's reputation. A slow
	// phone makes 90,000 hashes a second, 2²² in 47 s in the mean. The chance that
	// it needs longer than a challenge's TTL of 300 s is e^(-300·90,000/2²²), 2 in
	// 1,000. With 23 bits it would be 4 in 100.
	maxDifficulty = 22
	// maxSolutionBytes is every number below 2⁶⁴.
	maxSolutionBytes = 20
)

// difficulty of a proof of work, in bits: the base and the load are the same for
// everybody at one moment, the reputation is the asker's own.
func difficulty(base, load, reputation int) int {
	return min(min(base+load, MaxPowBits)+reputation, maxDifficulty)
}

// rise is one bit for each doubling beyond calm, up to a bound: whoever asks for
// twice as many challenges has to work twice as much for each.
func rise(measured, calm float64, most int) int {
	if !(measured > calm) || !(calm > 0) {
		return 0
	}
	return int(min(math.Floor(math.Log2(measured/calm)), float64(most)))
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
