package identity

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"
)

func TestInfinity_IsWhereFloat64Ends(t *testing.T) {
	least := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 1024), new(big.Int).Lsh(big.NewInt(1), 970))
	if infinity != least.String() || len(infinity) != infinityExponent {
		t.Errorf("infinity is %s", infinity)
	}
	for _, c := range []struct {
		number   string
		overflow bool
	}{
		{infinity, true}, {"-" + infinity, true}, {infinity + ".0", true}, {infinity[:308] + "1.999999", false}, {new(big.Int).Sub(least, big.NewInt(1)).String(), false},
		{"0." + infinity + "e309", true}, {"0.000" + infinity + "E+312", true}, {infinity + "000e-3", true}, {infinity + "e-1", false},
	} {
		if _, err := strconv.ParseFloat(c.number, 64); (err != nil) != c.overflow || readDecimal([]byte(c.number)).overflows() != c.overflow {
			t.Errorf("%s: overflows is %t, strconv says %v", c.number, !c.overflow, err)
		}
	}
}

// FuzzNumber holds the scanner's numbers to those of encoding/json.
func FuzzNumber(f *testing.F) {
	for _, number := range numbers {
		f.Add(number)
	}
	f.Add(infinity)
	f.Fuzz(func(t *testing.T, number string) {
		if len(number) > maxDecoded || strings.TrimSpace(number) != number || len(number) == 0 || number[0] != '-' && (number[0] < '0' || number[0] > '9') {
			return
		}
		s := scanner{text: []byte(number)}
		ours := s.number() && s.at == len(number)
		var value any
		if theirs := json.Unmarshal([]byte(number), &value); ours != (theirs == nil) {
			t.Errorf("%s: we take it: %t, encoding/json says %v", number, ours, theirs)
		}
	})
}

// BenchmarkClaims reads claims that a forger may send.
func BenchmarkClaims(b *testing.B) {
	slow := strings.TrimSuffix(strings.Repeat("1.797693134862315807937e308,", 100), ",")
	for name, payload := range map[string]string{
		"usual":        `{"sub":"bob","exp":1731283200}`,
		"slow numbers": `{"sub":"bob","exp":1731283200,"x":[` + slow + `]}`,
		"slow dates":   `{"sub":"bob","exp":1.797693134862315807937e308,"nbf":1.797693134862315807937e308}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = readClaims([]byte(payload), "")
			}
		})
	}
}
