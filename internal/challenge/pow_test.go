package challenge

import (
	"crypto/rand"
	"math"
	"strings"
	"testing"
	"time"
)

func TestDifficultyRisesWithEachDoublingUpToItsBound(t *testing.T) {
	const calm = 500
	for _, tc := range []struct {
		name        string
		base        int
		alternative bool
		perSecond   float64
		want        int
	}{
		{"nobody", 15, false, 0, 15},
		{"calm", 15, false, 500, 15},
		{"a little more", 15, false, 999, 15},
		{"twice", 15, false, 1000, 16},
		{"less than four times", 15, false, 1999, 16},
		{"four times", 15, false, 2000, 17},
		{"sixteen times", 15, false, 8000, 19},
		{"beyond the bound", 15, false, 1e9, 15 + MaxRise},
		{"without end", 15, false, math.Inf(1), 15 + MaxRise},
		{"not a number", 15, false, math.NaN(), 15},
		{"the alternative", 15, true, 0, 15 + AlternativeBits},
		{"the alternative under load", 15, true, 1000, 20},
		{"all together is bounded", 15, true, 1e9, maxDifficulty},
		{"the highest that can be set", MaxPowBits, false, 1e9, maxDifficulty},
		{"a base beyond the bound does not fall", MaxPowBits, true, 1e9, MaxPowBits + AlternativeBits},
	} {
		if got := difficulty(tc.base, tc.alternative, tc.perSecond, calm); got != tc.want {
			t.Errorf("%s: %d bits, want %d", tc.name, got, tc.want)
		}
	}
	if got := rise(100, 0); got != 0 {
		t.Errorf("without a measure: %d", got)
	}
}

func TestSolvedCountsTheZeroBitsOfTheHash(t *testing.T) {
	answer := Solve("challenge", 12)
	if !Solved("challenge", answer, 12) || !Solved("challenge", answer, 0) {
		t.Errorf("%s does not solve what it was found for", answer)
	}
	for name, wrong := range map[string]string{
		"empty": "", "letters": "12a", "a sign": "-1", "a space": answer + " ", "too long": strings.Repeat("1", 21), "other digits": "١",
	} {
		if Solved("challenge", wrong, 0) {
			t.Errorf("%s: %q is taken for digits", name, wrong)
		}
	}
	if Solved("another challenge", answer, 12) {
		t.Error("an answer serves two challenges")
	}
	if !Solved("challenge", strings.Repeat("9", maxSolutionBytes), 0) {
		t.Error("twenty digits are not taken")
	}
}

func TestLoweredDifficultyDoesNotHelp(t *testing.T) {
	d := open(t, Pow, func(o *Options) { o.PowBits = 12 })
	c := d.pose(t, "ann", product(1))
	for n := range 64 { // an answer that would do for less
		answer := Solve(c.ID, n%8)
		if Solved(c.ID, answer, c.Difficulty) {
			continue
		}
		if _, err := d.redeem(t, c, answer); err == nil {
			t.Fatal("accepted")
		}
		return
	}
}

func TestLoadOnThisInstanceMakesChallengesHarder(t *testing.T) {
	d := open(t, Pow, func(o *Options) { o.CalmPerSecond, o.PerBuyerPerMinute = 10, 1000 })
	if c := d.pose(t, "ann", product(1)); c.Difficulty != 8 {
		t.Errorf("the first has %d bits", c.Difficulty)
	}
	var last Challenge
	for range 100 {
		last = d.pose(t, "ann", product(1))
	}
	if last.Difficulty != 8+3 {
		t.Errorf("at ten times the calm rate: %d bits, want 11", last.Difficulty)
	}
	if _, err := d.redeem(t, last, Solve(last.ID, last.Difficulty)); err != nil {
		t.Error(err)
	}
	c, err := d.Pose(t.Context(), Ask{Product: product(1), Buyer: "ann"}, now.Add(10*time.Second))
	if err != nil || c.Difficulty != 8 {
		t.Errorf("ten seconds later: %d bits, %v", c.Difficulty, err)
	}
}

func TestTheMeterSlidesOverASecond(t *testing.T) {
	var m meter
	start := time.Unix(1_800_000_000, 0)
	var rate float64
	for i := range 3000 { // 1000 a second for three seconds
		rate = m.count(start.Add(time.Duration(i) * time.Millisecond))
	}
	if rate < 990 || rate > 1010 {
		t.Errorf("measured %.0f a second, want 1000", rate)
	}
	if rate = m.count(start.Add(3500 * time.Millisecond)); rate < 490 || rate > 510 {
		t.Errorf("after a pause of half a second: %.0f, want 500", rate)
	}
	if rate = m.count(start.Add(time.Hour)); rate != 1 {
		t.Errorf("after an hour: %.0f", rate)
	}
	if rate = m.count(start); rate != 1 {
		t.Errorf("after the clock was set back: %.0f", rate)
	}
}

func TestSymbolsAreDrawnEvenly(t *testing.T) {
	counts := map[byte]int{}
	const draws = 4000
	for range draws {
		answer, err := drawSymbols(rand.Reader)
		if err != nil || len(answer) != pictureLength {
			t.Fatalf("%q, %v", answer, err)
		}
		for i := range len(answer) {
			counts[answer[i]]++
		}
	}
	mean := float64(draws*pictureLength) / float64(len(symbols))
	for i := range len(symbols) {
		if n := float64(counts[symbols[i]]); math.Abs(n-mean) > 6*math.Sqrt(mean) {
			t.Errorf("%c came %.0f times of %.0f", symbols[i], n, mean)
		}
	}
	if len(counts) != len(symbols) {
		t.Errorf("%d symbols came", len(counts))
	}
}

func BenchmarkSolved(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Solved(strings.Repeat("c", textLen), "1234567", 15)
	}
}

// BenchmarkHash is one try of whoever solves, in native code.
func BenchmarkHash(b *testing.B) {
	id := strings.Repeat("c", textLen)
	for b.Loop() {
		Solve(id, 0)
	}
}
