// The possible next steps, and the normal form in which equivalent states are
// equal.
package main

import (
	"fmt"
	"math/bits"
	"sort"
)

// process takes reply
func take(s *State, m uint32) string {
	kind, pid, n, v, ok, sold := int(m>>28), int(m>>24&15), int(m>>20&15), int(m>>16&15), uint8(m>>8), uint8(m)
	p := &s.P[pid]
	if p.Dead {
		return ""
	}
	names := []string{"", "", "202", "sold_out", "not applied"}
	switch kind {
	case 1:
		if p.St[n-1] != 1 {
			return ""
		}
		if *fixed {
			_, low := outstanding(p)
			if p.Ask != 0 && !*late {
				return ""
			}
			if n != low {
				return "wait"
			}
		}
		p.St[n-1] = uint8(v)
		if n > int(p.Seen) {
			p.Seen = uint8(n)
			p.SeenV = uint8(v)
		}
		return fmt.Sprintf("p%d hears #%d = %s", pid, n, names[v])
	case 2:
		if int(p.Ask) != n {
			return ""
		}
		p.Ask = 0
		for i := 1; i < n; i++ {
			if p.St[i-1] == 1 {
				switch {
				case ok&bit(i) != 0:
					p.St[i-1] = 2
				case sold&bit(i) != 0:
					p.St[i-1] = 3
				default:
					p.St[i-1] = 4
				}
			}
		}
		p.Seen = uint8(n)
		p.St[n-1] = 6
		return fmt.Sprintf("p%d hears ask #%d: ok=%b sold=%b", pid, n, ok, sold)
	}
	return ""
}

type succ struct {
	s   State
	lab string
}

func canon(s *State) {
	if s.Fo == 0 {
		s.Sn = [NS]Shard{}
	}
	// drop dead replies
	ch := false
	for i := range s.Rp {
		m := s.Rp[i]
		if m == 0 {
			continue
		}
		t := *s
		if take(&t, m) == "" {
			s.Rp[i] = 0
			ch = true
		}
	}
	if ch {
		sort.Slice(s.Rp[:], func(a, b int) bool { return s.Rp[a] > s.Rp[b] })
	}
	if *ns == 2 {
		// order slots
		if lessS(&s.Sn[1], &s.Sn[0]) {
			s.Sn[0], s.Sn[1] = s.Sn[1], s.Sn[0]
		}
	}
}
func lessS(a, b *Shard) bool {
	if a.Out != b.Out {
		return a.Out < b.Out
	}
	for i := range a.R {
		if a.R[i].Last != b.R[i].Last {
			return a.R[i].Last < b.R[i].Last
		}
		if a.R[i].Hist != b.R[i].Hist {
			return a.R[i].Hist < b.R[i].Hist
		}
	}
	return false
}

func next(s *State) (out []succ) {
	add := func(t State, lab string) { canon(&t); out = append(out, succ{t, lab}) }
	for i := 0; i < *np; i++ {
		p := &s.P[i]
		if p.Dead {
			continue
		}
		c, _ := outstanding(p)
		if c < *w && int(p.Next) <= *nn && (!*fixed || p.Ask == 0) {
			for cl := 0; cl < *nc; cl++ {
				if int(s.At[cl]) >= *att {
					continue
				}
				if cl > 0 && s.At[cl-1] == 0 {
					continue // symmetry of fresh claims
				}
				t := *s
				q := &t.P[i]
				n := int(q.Next)
				q.Next++
				q.St[n-1] = 1
				q.Cl[n-1] = uint8(cl)
				t.At[cl]++
				if addM(&t, msg(kR, i, n, int(q.Seen), cl, int(q.SeenV))) {
					add(t, fmt.Sprintf("p%d sends reserve #%d claim %d (seen=%d)", i, n, cl, q.Seen))
				}
			}
		}
		if c > 0 && int(p.Asks) < *asks {
			if *fixed {
				if int(p.Next) <= *nn {
					t := *s
					q := &t.P[i]
					n := int(q.Next)
					q.Next++
					q.Asks++
					q.Ask = uint8(n)
					q.St[n-1] = 5
					if addM(&t, msg(kA, i, n, int(q.Seen), 0, 0)) {
						add(t, fmt.Sprintf("p%d times out, new connection, sends ask #%d (seen=%d)", i, n, q.Seen))
					}
				}
			} else {
				for n := 1; n <= *nn; n++ {
					if p.St[n-1] != 1 {
						continue
					}
					t := *s
					q := &t.P[i]
					q.Asks++
					m := msg(kA, i, n, int(q.Seen), int(q.Asks), int(q.SeenV))
					if addM(&t, m) {
						add(t, fmt.Sprintf("p%d times out, sends ask(#%d) (seen=%d)", i, n, q.Seen))
					}
				}
			}
		}
		if s.Cr > 0 {
			t := *s
			t.Cr--
			q := &t.P[i]
			q.Dead = true
			q.Asks = 0
			q.Ask = 0
			add(t, fmt.Sprintf("p%d CRASHES", i))
		}
	}
	for i, m := range s.M {
		if m == 0 {
			continue
		}
		if *dseen && *fixed { // FIFO per connection: a reserve waits for lower reserves of the same connection still in flight
			blk := false
			for _, m2 := range s.M {
				if m2 != 0 && m2>>20 == m>>20 && m>>24 == kR && (m2>>16&15) < (m>>16&15) {
					blk = true
				}
			}
			if blk {
				continue
			}
		}
		for d := 0; d < 2; d++ {
			if d == 1 && !*dup {
				break
			}
			t := *s
			if d == 0 {
				t.M[i] = 0
				sort.Slice(t.M[:], func(a, b int) bool { return t.M[a] > t.M[b] })
			}
			lab, r := deliver(&t, m)
			if r == 0 || r>>28 >= 3 {
				add(t, lab)
				continue
			}
			if addR(&t, r) {
				add(t, lab)
			}
		}
	}
	for i, m := range s.Rp {
		if m == 0 {
			continue
		}
		t := *s
		t.Rp[i] = 0
		sort.Slice(t.Rp[:], func(a, b int) bool { return t.Rp[a] > t.Rp[b] })
		lab := take(&t, m)
		if lab != "" && lab != "wait" {
			add(t, lab)
		}
	}
	if s.Fo > 0 {
		for i := 0; i < *ns; i++ {
			if s.Sn[i] != s.S {
				t := *s
				t.Sn[i] = t.S
				add(t, "(replica state recorded)")
				t = *s
				t.S = t.Sn[i]
				t.Fo--
				add(t, "FAILOVER to the recorded state")
			}
		}
	}
	if *cancel && !s.S.Closed {
		for c := 0; c < *nc; c++ {
			if o := s.S.Mark[c]; o != 0 {
				pid, n := int(o-1)/NN, int(o-1)%NN+1
				if s.P[pid].St[n-1] == 2 || anyHeard(s, c) {
					t := *s
					t.S.Mark[c] = 0
					t.S.Tomb |= 1 << c
					t.S.TombO[c] = o
					t.S.Avail++
					t.S.Rel |= 1 << (o - 1)
					add(t, fmt.Sprintf("order p%d#%d (claim %d) cancelled and released", pid, n, c))
				}
			}
		}
	}
	if *store {
		if s.Pend == 0 && !s.S.Closed {
			for o := 0; o < NP*NN; o++ {
				if s.S.Out>>o&1 == 1 && s.Sto>>o&1 == 0 && s.SF>>o&1 == 0 {
					t := *s
					t.Pend, t.PendSeq = uint8(o+1), s.S.OSeq[o]
					add(t, fmt.Sprintf("worker reads entry p%d#%d", o/NN, o%NN+1))
				}
			}
		}
		if s.Pend != 0 && !s.PC {
			t := *s
			o := int(s.Pend - 1)
			pid, n := o/NN, o%NN+1
			cl := s.P[pid].Cl[n-1]
			dupk := false
			for o2 := 0; o2 < NP*NN; o2++ {
				if s.Sto>>o2&1 == 1 && s.P[o2/NN].Cl[o2%NN] == cl {
					dupk = true
				}
			}
			t.PC = true
			if *skey && dupk || bits.OnesCount32(s.Sto) >= *stock {
				t.SF |= 1 << o
				add(t, fmt.Sprintf("store refuses p%d#%d", pid, n))
			} else {
				t.Sto |= 1 << o
				add(t, fmt.Sprintf("store confirms p%d#%d", pid, n))
			}
		}
		if s.Pend != 0 && s.PC && !s.S.Closed {
			t := *s
			if *wit && wdet(s) {
				t.S.Closed = true
				add(t, "worker acks -> LOST, closes")
			} else {
				if t.PendSeq > t.WHiSeq || *wall {
					t.WHi, t.WHiSeq = t.Pend, t.PendSeq
				}
				t.Pend, t.PendSeq, t.PC = 0, 0, false
				add(t, "worker acks")
			}
		}
	}
	return
}
func wdet(s *State) bool {
	return s.WHi != 0 && s.S.Out>>(s.WHi-1)&1 == 0 || s.Pend != 0 && s.S.Out>>(s.Pend-1)&1 == 0
}
func anyHeard(s *State, c int) bool {
	for i := range s.P {
		for n := range s.P[i].St {
			if s.P[i].St[n] == 2 && int(s.P[i].Cl[n]) == c {
				return true
			}
		}
	}
	return false
}
