package seckill_test

import (
	"strings"
	"testing"

	"seckill"
)

func TestClaim_TextBounds(t *testing.T) {
	checks := []struct {
		name     string
		check    func(string) error
		field    string
		most     int
		optional bool
	}{
		{"buyer", seckill.CheckBuyer, "buyer", seckill.MaxBuyerBytes, false},
		{"key", seckill.CheckKey, "Idempotency-Key", seckill.MaxKeyBytes, true},
		{"ref", seckill.CheckRef, "ref", seckill.MaxRefBytes, true},
	}
	for _, c := range checks {
		cases := []struct {
			name, text string
			allowed    bool
		}{
			{"empty", "", c.optional},
			{"one byte", "a", true},
			{"spaces", " a b ", true},
			{"Chinese", "鲍勃", true},
			{"emoji", "😀", true},
			{"the longest", strings.Repeat("x", c.most), true},
			{"the longest in bytes, not characters", strings.Repeat("é", c.most/2), true},
			{"too long by a byte", strings.Repeat("x", c.most+1), false},
			{"short in characters, too long in bytes", strings.Repeat("é", c.most/2+1), false},
			{"not UTF-8", "a\xff", false},
			{"cut in a character", "鲍"[:2], false},
			{"surrogate", "\xed\xa0\x80", false},
			{"zero byte", "a\x00", false},
			{"newline", "a\nb", false},
			{"tab", "a\tb", false},
			{"escape", "\x1b[0m", false},
			{"delete", "a\x7f", false},
			{"control of the second block", "a\u0085", false},
			{"last control of the second block", "a\u009f", false},
			{"no-break space is no control", "a\u00a0b", true},
		}
		for _, text := range cases {
			t.Run(c.name+" "+text.name, func(t *testing.T) {
				field := c.field
				if text.allowed {
					field = ""
				}
				wantRefusal(t, c.check(text.text), field)
			})
		}
	}
}
