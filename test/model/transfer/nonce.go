// The steps of numbered transfers whose messages carry an id of their own.
package main

import (
	"slices"
)

func put(l *[8]uint32, m uint32) bool {
	for i := range l {
		if l[i] == m {
			return false
		}
	}
	for i := range l {
		if l[i] == 0 {
			l[i] = m
			slices.Sort(l[:])
			return true
		}
	}
	panic("list full")
}
func pk(e, d, r, n, u, id int) uint32 {
	return uint32(e)<<20 | uint32(d)<<16 | uint32(r)<<12 | uint32(n)<<8 | uint32(u)<<4 | uint32(id)
}
func nonceSteps(s *State, e int, add func(State, string, ...any)) {
	for d := 0; d < *nsh; d++ {
		for r := 0; r < *nsh; r++ {
			if !pairOK(d, r) {
				continue
			}
			sd := &s.S[d]
			for n := 1; n <= *nt; n++ {
				b := uint32(1) << (d*NSH*NT + r*NT + n - 1)
				if s.D[e-1]&b == 0 && int(sd.E) == e && int(sd.OutN[r]) == n-1 {
					t := *s
					t.D[e-1] |= b
					add(t, "send debit e%d %d->%d #%d", e, d, r, n)
				}
				if s.D[e-1]&b != 0 && okE(sd, e) && int(sd.OutN[r]) == n-1 && sd.OutU[r] == 0 {
					for a := 1; a <= *amt && a <= int(sd.Avail); a++ {
						t := *s
						q := &t.S[d]
						t.Nid++
						q.Avail -= uint8(a)
						q.OutN[r], q.OutU[r], q.OutI[r] = uint8(n), uint8(a), t.Nid
						q.Sent += uint8(a)
						q.Tc++
						add(t, "debit %d->%d #%d id%d of %d at donor", d, r, n, t.Nid, a)
					}
				}
			}
			if sd.OutU[r] > 0 && int(sd.E) == e {
				t := *s
				if put(&t.CL, pk(e, d, r, int(sd.OutN[r]), int(sd.OutU[r]), int(sd.OutI[r]))) {
					add(t, "send credit %d->%d #%d id%d of %d", d, r, sd.OutN[r], sd.OutI[r], sd.OutU[r])
				}
			}
		}
	}
	for _, m := range s.CL {
		me, d, r, n, u, id := int(m>>20), int(m>>16&15), int(m>>12&15), int(m>>8&15), int(m>>4&15), int(m&15)
		if m == 0 || me != e || !okE(&s.S[r], e) {
			continue
		}
		sr := &s.S[r]
		switch {
		case int(sr.InN[d]) == n-1:
			t := *s
			q := &t.S[r]
			q.Avail += uint8(u)
			q.InN[d], q.InI[d] = uint8(n), uint8(id)
			q.Recv += uint8(u)
			q.Tc++
			add(t, "credit %d->%d #%d id%d at receiver", d, r, n, id)
		case int(sr.InN[d]) < n-1:
			t := *s
			t.Lost = true
			add(t, "credit %d->%d #%d -> gap: LOST", d, r, n)
		default:
			t := *s
			if put(&t.XL, pk(e, d, r, int(sr.InN[d]), 0, int(sr.InI[d]))) {
				add(t, "receiver says (#%d id%d); send clear %d->%d", sr.InN[d], sr.InI[d], d, r)
			}
		}
	}
	for _, m := range s.XL {
		me, d, r, n, id := int(m>>20), int(m>>16&15), int(m>>12&15), int(m>>8&15), int(m&15)
		if m == 0 || me != e || !okE(&s.S[d], e) {
			continue
		}
		sd := &s.S[d]
		switch {
		case n > int(sd.OutN[r]) || n == int(sd.OutN[r]) && id != int(sd.OutI[r]):
			t := *s
			t.Lost = true
			add(t, "clear %d->%d (#%d id%d) at donor (#%d id%d): LOST", d, r, n, id, sd.OutN[r], sd.OutI[r])
		case n == int(sd.OutN[r]) && sd.OutU[r] > 0:
			t := *s
			t.S[d].OutU[r] = 0
			t.S[d].Tc++
			add(t, "clear %d->%d #%d id%d", d, r, n, id)
		}
	}
}

// true in transit, all shards at one instant, epoch e
