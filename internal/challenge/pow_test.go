package challenge

import (
	"crypto/rand"
	"math"
	"strings"
	"testing"
	"time"
)

func TestRise_OneBitPerDoublingUpToBound(t *testing.T) {
	const calm = 500
	for _, tc := range []struct {
		name     string
		measured float64
		want     int
	}{
		{"nobody", 0, 0},
		{"calm", 500, 0},
		{"a little more", 999, 0},
		{"twice", 1000, 1},
		{"less than four times", 1999, 1},
		{"four times", 2000, 2},
		{"sixteen times", 8000, 4},
		{"beyond the bound", 1e9, MaxRise},
		{"without end", math.Inf(1), MaxRise},
		{"not a number", math.NaN(), 0},
	} {
		if got := rise(tc.measured, calm, MaxRise); got != tc.want {
			t.Errorf("%s: %d bits, want %d", tc.name, got, tc.want)
		}
	}
	if got := rise(100, 0, MaxRise); got != 0 {
		t.Errorf("without a measure: %d", got)
	}
}

func TestDifficulty(t *testing.T) {
	for _, tc := range []struct {
		name                   string
		base, load, reputation int
		want                   int
	}{
		{"calm", 14, 0, 0, 14},
		{"load", 14, 2, 0, 16},
		{"most load", 14, MaxRise, 0, 18},
		{"reputation in calm", 14, 0, 3, 17},
		{"worst reputation in calm", 14, 0, MaxReputation, 19},
		{"load and reputation", 14, 2, 3, 19},
		{"all together is bounded", 14, MaxRise, MaxReputation, maxDifficulty},
		{"load alone has a lower bound", 19, MaxRise, 0, MaxPowBits},
		{"reputation goes beyond it", 19, MaxRise, 1, MaxPowBits + 1},
		{"the highest that can be set", MaxPowBits, MaxRise, MaxReputation, maxDifficulty},
		{"the lowest", 1, 0, 0, 1},
	} {
		if got := difficulty(tc.base, tc.load, tc.reputation); got != tc.want {
			t.Errorf("%s: %d bits, want %d", tc.name, got, tc.want)
		}
	}
}

func TestSolved_CountsLeadingZeroBits(t *testing.T) {
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

func TestRedeem_LoweredDifficultyIsRefused(t *testing.T) {
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

func TestPose_LoadRaisesDifficulty(t *testing.T) {
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

func TestMeter_CountsLastSecond(t *testing.T) {
	var m meter
	start := time.Unix(1_800_000_000, 0)
	var rate float64
	for i := range 3000 { // 1000 a second for three seconds
		rate = m.count(1, start.Add(time.Duration(i)*time.Millisecond))
	}
	if rate < 990 || rate > 1010 {
		t.Errorf("measured %.0f a second, want 1000", rate)
	}
	if rate = m.count(1, start.Add(3500*time.Millisecond)); rate < 490 || rate > 510 {
		t.Errorf("after a pause of half a second: %.0f, want 500", rate)
	}
	if rate = m.count(1, start.Add(time.Hour)); rate != 1 {
		t.Errorf("after an hour: %.0f", rate)
	}
	if rate = m.count(1, start); rate != 1 {
		t.Errorf("after the clock was set back: %.0f", rate)
	}
}

func TestDrawSymbols_IsUniform(t *testing.T) {
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

// BenchmarkHash is one try of a solver in native code.
func BenchmarkHash(b *testing.B) {
	id := strings.Repeat("c", textLen)
	for b.Loop() {
		Solve(id, 0)
	}
}
