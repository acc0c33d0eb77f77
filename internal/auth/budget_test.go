package auth

import (
	"strings"
	"testing"
	"time"

	"seckill"
)

// budgets are the allocations for a token that is new here, all of them in
// golang-jwt and the standard library. Later reads allocate nothing.
var budgets = map[string]float64{
	"RS256": 12, "RS384": 12, "RS512": 12, "PS256": 16, "PS384": 16, "PS512": 16, "ES256": 24, "ES384": 31, "ES512": 31, "EdDSA": 2,
}

func TestFromHeader_SecretTokenAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates itself; budgets are measured without it")
		return
	}
	v := open(t, secret, []byte("older"))
	for name, token := range map[string]string{
		"good":      seal(t, secret, hs256, `{"sub":"buyer-0000042","iat":`+at(0)+`,"exp":`+at(time.Hour)+`}`),
		"audiences": seal(t, secret, hs256, `{"sub":"buyer-0000042","iss":"shop","aud":["a","b"],"jti":"x","exp":`+at(time.Hour)+`}`),
		"escapes":   seal(t, secret, hs256, `{"sub":"\u7528\u6237","exp":`+at(time.Hour)+`}`),
		"expired":   seal(t, secret, hs256, `{"sub":"bob","exp":1}`),
		"forged":    seal(t, []byte("eve"), hs256, `{"sub":"bob","exp":1}`),
		"malformed": "nonsense",
	} {
		budget(t, name, v, token, 0)
	}
}

func TestFromHeader_KeyTokenAllocatesOnlyWhenNew(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates itself; budgets are measured without it")
		return
	}
	for _, alg := range publicAlgorithms {
		p := key(alg, "k")
		e := with(t, setOf(p))
		good := string(p.token())
		budget(t, alg+" again", e.Verifier, good, 0)
		budget(t, alg+" expired", e.Verifier, p.seal(p.header(), `{"sub":"bob","exp":1}`), 0)
		budget(t, alg+" unknown key", e.Verifier, string(key(alg, "x").token()), 0)
		forged := budgets[alg]
		if strings.HasPrefix(alg, "ES") {
			forged++ // crypto/ecdsa allocates its error
		}
		budget(t, alg+" forged", e.Verifier, string(otherKey(alg, "k").token()), forged)
		e.pass(KeysSpacing)
		budget(t, alg+" unknown key, a fetch is due", e.Verifier, string(key(alg, "x").token()), 0)

		buffer, token := make([]byte, 0, seckill.MaxBuyerBytes), []byte(good)
		allocs := testing.AllocsPerRun(100, func() {
			clear(e.seen.buckets)
			if _, err := e.AppendBuyer(buffer, token, Look{Now: now}); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > budgets[alg] {
			t.Errorf("%s at first sight: %v allocations, budget %v", alg, allocs, budgets[alg])
		}
	}
}

// budget checks the allocations for a token, accepted or not.
func budget(t *testing.T, name string, v *Verifier, token string, most float64) {
	t.Helper()
	header := []byte("Bearer " + token)
	buffer := make([]byte, 0, seckill.MaxBuyerBytes)
	if allocs := testing.AllocsPerRun(200, func() {
		_, _ = v.FromHeader(buffer, header, Look{Now: now})
		_, _ = v.Claimed(buffer, header)
	}); allocs > most {
		t.Errorf("%s: %v allocations, budget %v", name, allocs, most)
	}
}

const usual = `{"iss":"https://login.example.com","aud":"shop","sub":"buyer-0000042","iat":1794398400,"exp":1794484800}`

func BenchmarkFromHeader(b *testing.B) {
	bench(b, open(b, secret), seal(b, secret, hs256, usual))
}

func BenchmarkClaimed(b *testing.B) {
	v, header := open(b, secret), []byte("Bearer "+seal(b, secret, hs256, usual))
	buffer := make([]byte, 0, seckill.MaxBuyerBytes)
	b.ReportAllocs()
	for b.Loop() {
		if _, proof := v.Claimed(buffer, header); proof != ProofSecret {
			b.Fatal("nobody is claimed")
		}
	}
}

// BenchmarkClaims reads claims of a forged token.
func BenchmarkClaims(b *testing.B) {
	slow := strings.TrimSuffix(strings.Repeat("1.797693134862315807937e99,", 100), ",")
	for name, payload := range map[string]string{
		"usual":        `{"sub":"bob","exp":1731283200}`,
		"slow numbers": `{"sub":"bob","exp":1731283200,"x":[` + slow + `]}`,
		"slow dates":   `{"sub":"bob","exp":1.797693134862315807937e-99,"nbf":1.797693134862315807937e-99}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = readClaims([]byte(payload), "")
			}
		})
	}
}

// BenchmarkByKey reads, for each algorithm, a remembered token, a new token, and
// a token of an unknown key.
func BenchmarkByKey(b *testing.B) {
	for _, alg := range publicAlgorithms {
		p := key(alg, "2026-11")
		token := p.seal(p.header(), usual)
		b.Run(alg+"/again", func(b *testing.B) {
			e := with(b, setOf(p))
			e.seen = newVerified(verifiedBuckets)
			bench(b, e.Verifier, token)
		})
		b.Run(alg+"/first", func(b *testing.B) {
			e := with(b, setOf(p))
			e.seen = newVerified(1) // soon forgotten
			bytes := []byte(token)
			buffer := make([]byte, 0, seckill.MaxBuyerBytes)
			b.ReportAllocs()
			for b.Loop() {
				clear(e.seen.buckets)
				if _, err := e.AppendBuyer(buffer, bytes, Look{Now: now}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("unknown", func(b *testing.B) {
		e := with(b, setOf(key("RS256", "2026-11")))
		header := []byte("Bearer " + string(key("RS256", "other").token()))
		buffer := make([]byte, 0, seckill.MaxBuyerBytes)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := e.FromHeader(buffer, header, Look{Now: now}); err != ErrKey && err != ErrKeysDue {
				b.Fatal(err)
			}
		}
	})
}

func bench(b *testing.B, v *Verifier, token string) {
	b.Helper()
	header := []byte("Bearer " + token)
	buffer := make([]byte, 0, seckill.MaxBuyerBytes)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.FromHeader(buffer, header, Look{Now: now}); err != nil {
			b.Fatal(err)
		}
	}
}
