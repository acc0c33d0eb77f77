// The possible next steps of a state.
package main

import (
	"fmt"
)

func next(s *State) (out []succ) {
	add := func(t State, f string, a ...any) {
		if *obs != "" && t.Pos > 0 {
			f2 := int8(free(&t))
			if f2 < t.LowFree {
				t.LowFree = f2
			}
		}
		out = append(out, succ{t, fmt.Sprintf(f, a...)})
	}
	// recover: the store opens a new epoch; installs go to shards at any time, late and repeated
	if int(s.Inst) < *ne {
		t := *s
		t.Inst++
		add(t, "store opens epoch %d", t.Inst)
	}
	for e := 2; e <= int(s.Inst); e++ {
		for i := 0; i < *nsh; i++ {
			sh := &s.S[i]
			if *instE && int(sh.E) >= e {
				continue
			}
			t := *s
			t.S[i] = Shard{E: uint8(e), Avail: uint8(*units)}
			if t != *s {
				add(t, "install epoch %d at shard %d", e, i)
			}
		}
	}
	if s.Lost {
		return nil
	}
	for e := 1; e <= *ne; e++ {
		if *nonce {
			nonceSteps(s, e, add)
		} else if *fixed {
			for d := 0; d < *nsh; d++ {
				for r := 0; r < *nsh; r++ {
					if !pairOK(d, r) {
						continue
					}
					for n := 1; n <= *nt; n++ {
						b := uint32(1) << (d*NSH*NT + r*NT + n - 1)
						x := d*NSH*NT + r*NT + n - 1
						sd, sr := &s.S[d], &s.S[r]
						// a process that read OutN == n-1 (now or long ago) sends debit n
						if s.D[e-1]&b == 0 && int(sd.E) == e && int(sd.OutN[r]) == n-1 {
							t := *s
							t.D[e-1] |= b
							add(t, "send debit e%d %d->%d #%d", e, d, r, n)
						}
						if s.D[e-1]&b != 0 && okE(sd, e) && int(sd.OutN[r]) == n-1 && sd.OutU[r] == 0 {
							for a := 1; a <= *amt && a <= int(sd.Avail); a++ {
								t := *s
								q := &t.S[d]
								q.Avail -= uint8(a)
								q.OutN[r] = uint8(n)
								q.OutU[r] = uint8(a)
								q.Sent += uint8(a)
								q.Tc++
								add(t, "debit %d->%d #%d of %d at donor", d, r, n, a)
							}
						}
						// any process sees the open record and sends credit
						if sd.OutU[r] > 0 && int(sd.OutN[r]) == n && int(sd.E) == e && s.C[e-1]&b == 0 {
							t := *s
							t.C[e-1] |= b
							t.CU[e-1][x] = sd.OutU[r]
							add(t, "send credit e%d %d->%d #%d of %d", e, d, r, n, sd.OutU[r])
						}
						if s.C[e-1]&b != 0 && okE(sr, e) {
							if int(sr.InN[d]) == n-1 {
								t := *s
								q := &t.S[r]
								q.Avail += s.CU[e-1][x]
								q.InN[d] = uint8(n)
								q.Recv += s.CU[e-1][x]
								q.Tc++
								add(t, "credit %d->%d #%d at receiver", d, r, n)
							} else if int(sr.InN[d]) >= n && s.X[e-1]&b == 0 {
								t := *s
								t.X[e-1] |= b
								add(t, "receiver answers credited; send clear e%d %d->%d #%d", e, d, r, n)
							}
						}
						if s.X[e-1]&b != 0 && okE(sd, e) && int(sd.OutN[r]) == n && sd.OutU[r] > 0 {
							t := *s
							t.S[d].OutU[r] = 0
							t.S[d].Tc++
							add(t, "clear record %d->%d #%d", d, r, n)
						}
					}
				}
			}
		} else {
			for x := 0; x < *nt; x++ {
				d, r := ends(x)
				b := uint32(1) << x
				sd, sr := &s.S[d], &s.S[r]
				if s.D[e-1]&b == 0 && int(sd.E) == e {
					t := *s
					t.D[e-1] |= b
					add(t, "send debit t%d e%d (%d->%d)", x, e, d, r)
				}
				if s.D[e-1]&b != 0 && okE(sd, e) && sd.Rec[x] == 0 && sd.Avail > 0 {
					t := *s
					t.S[d].Avail--
					t.S[d].Rec[x] = 1
					t.S[d].Tc++
					add(t, "debit t%d at donor %d", x, d)
				}
				if sd.Rec[x] > 0 && int(sd.E) == e && s.C[e-1]&b == 0 {
					t := *s
					t.C[e-1] |= b
					add(t, "send credit t%d e%d", x, e)
				}
				if s.C[e-1]&b != 0 && okE(sr, e) {
					if sr.Id&uint8(b) == 0 {
						t := *s
						t.S[r].Avail++
						t.S[r].Id |= uint8(b)
						t.S[r].Tc++
						add(t, "credit t%d at receiver %d", x, r)
					} else if s.X[e-1]&b == 0 {
						t := *s
						t.X[e-1] |= b
						add(t, "receiver answers credited; send clear record t%d e%d", x, e)
					}
				}
				if s.X[e-1]&b != 0 && okE(sd, e) {
					if sd.Rec[x] > 0 {
						t := *s
						t.S[d].Rec[x] = 0
						t.S[d].Tc++
						add(t, "clear record t%d at donor", x)
					} else if s.Y[e-1]&b == 0 {
						t := *s
						t.Y[e-1] |= b
						add(t, "donor answers cleared; send clear id t%d e%d", x, e)
					}
				}
				if s.Y[e-1]&b != 0 && okE(sr, e) && sr.Id&uint8(b) != 0 {
					t := *s
					t.S[r].Id &^= uint8(b)
					t.S[r].Tc++
					add(t, "clear id t%d at receiver", x)
				}
			}
		}
	}
	if *sell && *stock && s.Sells > 0 {
		t := *s
		t.S[0].Avail++
		t.S[0].Al++
		t.Sells--
		add(t, "stock change up at shard 0")
		if s.S[0].Avail > 0 {
			t := *s
			t.S[0].Avail--
			t.S[0].Al--
			t.Sells--
			add(t, "stock change down at shard 0")
		}
	}
	if *sell && s.Sells > 0 {
		for i := 0; i < *nsh; i++ {
			if s.S[i].Avail > 0 {
				t := *s
				t.S[i].Avail--
				t.S[i].Res++
				t.Sells--
				add(t, "reserve 1 at shard %d", i)
			}
			if s.S[i].Res > 0 {
				t := *s
				t.S[i].Avail++
				t.S[i].Res--
				t.S[i].Rels++
				t.Sells--
				add(t, "release 1 at shard %d", i)
			}
		}
	}
	if s.Roll > 0 {
		for i := 0; i < *nsh; i++ {
			if s.SnI == 0 {
				t := *s
				t.SnI = uint8(i + 1)
				t.Sn = t.S[i]
				add(t, "(replica state of shard %d recorded)", i)
			}
		}
		if s.SnI > 0 && s.S[s.SnI-1] != s.Sn {
			t := *s
			t.S[s.SnI-1] = t.Sn
			t.Roll--
			add(t, "FAILOVER of shard %d to the recorded state", s.SnI-1)
		}
	}
	if *obs != "" {
		rounds := 1
		if *obs == "double" || *obs == "sold2" {
			rounds = 2
		}
		if int(s.Pos) < rounds**nsh {
			t := *s
			i := int(s.Pos) % *nsh
			if *last && int(s.Pos) >= *nsh {
				i = *nsh - 1 - i
			}
			if s.Pos == 0 {
				t.LowFree = int8(free(s))
			}
			if int(s.Pos) < *nsh {
				t.R1[i] = s.S[i]
			} else {
				t.R2[i] = s.S[i]
			}
			t.Pos++
			add(t, "observer reads shard %d (avail %d)", i, s.S[i].Avail)
		}
	}
	return
}
