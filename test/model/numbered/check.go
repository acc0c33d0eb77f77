// Invariants of every state.
package main

import (
	"fmt"
	"math/bits"
)

var checks = map[string]bool{}

func bad(s *State) string {
	S := &s.S
	if int(S.Avail)+bits.OnesCount32(S.Out)-bits.OnesCount32(S.Rel) != *stock {
		return "A4 units not conserved"
	}
	det := false
	for i := 0; i < *np; i++ {
		if !s.P[i].Dead && lostCheck(S, i, int(s.P[i].Seen), int(s.P[i].SeenV)) {
			det = true
		}
	}
	if *wit && wdet(s) { // the worker keeps the ids of confirmed entries; the shard has them or has lost data
		det = true
	}
	for i := 0; i < *np; i++ {
		p := &s.P[i]
		pdet := S.Closed || lostCheck(S, i, int(p.Seen), int(p.SeenV))
		for n := 1; n <= *nn; n++ {
			o := ord(i, n)
			in := S.Out>>o&1 == 1
			st := p.St[n-1]
			// the order behind a repeated key
			if st == 2 {
				g := s.G[i][n-1]
				in = g != 0 && S.Out>>(g-1)&1 == 1
			}
			if !p.Dead && !pdet {
				if checks["A1"] && st == 4 && S.Out>>o&1 == 1 {
					return fmt.Sprintf("A1 p%d#%d was reported not applied, yet it is applied (a second application follows when the claim is sent again); p%d's next call does not report lost", i, n, i)
				}
				if checks["A2"] && st == 2 && !in {
					return fmt.Sprintf("A2 p%d#%d answered 202, not in the outbox, p%d's next call does not report lost", i, n, i)
				}
				if checks["A6"] && st == 3 && S.Out>>o&1 == 1 {
					return fmt.Sprintf("A6 p%d#%d answered sold_out but applied", i, n)
				}
				if checks["A7"] && (st == 2 || st == 3 || st == 6) && S.R[i].Hist>>(n-1)&1 == 0 {
					return fmt.Sprintf("A7 p%d saw #%d answered, shard's history lacks it, not detected", i, n)
				}
			}
			if *silent && st == 2 && !in && !S.Closed && !det {
				if *anywit {
					for j := 0; j < *np; j++ {
						q := &s.P[j]
						if q.Dead {
							continue
						}
						for x := 1; x <= int(q.Seen); x++ {
							if (q.St[x-1] == 2 || q.St[x-1] == 3 || q.St[x-1] == 6) && S.R[j].Hist>>(x-1)&1 == 0 {
								return fmt.Sprintf("silent loss of p%d#%d although live p%d saw #%d of the lost suffix", i, n, j, x)
							}
						}
					}
				} else {
					return fmt.Sprintf("silent loss of p%d#%d (dead=%v)", i, n, p.Dead)
				}
			}
		}
	}
	if checks["A3"] && *key {
		all := S.Out
		if checks["A3s"] {
			all = s.Sto
			if !*cancel && *store {
				// what the store ends with
			}
		}
		for a := 0; a < NP*NN; a++ {
			for b := a + 1; b < NP*NN; b++ {
				if all>>a&1 == 1 && all>>b&1 == 1 && s.P[a/NN].Cl[a%NN] == s.P[b/NN].Cl[b%NN] {
					return fmt.Sprintf("A3 two orders for claim %d: p%d#%d and p%d#%d", s.P[a/NN].Cl[a%NN], a/NN, a%NN+1, b/NN, b%NN+1)
				}
			}
		}
	}
	if checks["A8"] && !S.Closed && !det && s.Sto&^S.Out != 0 {
		return "A8 the store holds an order that the shard lost, nobody detects"
	}
	if checks["A5"] && !S.Closed && !det {
		if bits.OnesCount32(s.Sto|S.Out&^s.SF)+int(S.Avail) > *stock {
			return "A5 store orders + outbox + available exceed the stock, nobody detects"
		}
	}
	return ""
}
