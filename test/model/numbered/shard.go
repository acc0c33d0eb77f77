// The shard's handling of a call, and a process's handling of the reply.
package main

import (
	"fmt"
	"math/bits"
)

func apply(st *State, S *Shard, pid, n, cl int) int { // verdict 2 ok 3 sold
	r := &S.R[pid]
	v := 3
	if *key && S.Mark[cl] != 0 {
		v = 2 // repeat: same order
		st.G[pid][n-1] = S.Mark[cl]
	} else if *key && *tomb && S.Tomb>>cl&1 == 1 {
		v = 2 // the key's old (cancelled) order
		st.G[pid][n-1] = S.TombO[cl]
	} else if S.Avail > 0 {
		S.Avail--
		S.Mark[cl] = uint8(ord(pid, n) + 1)
		st.G[pid][n-1] = S.Mark[cl]
		S.Out |= 1 << ord(pid, n)
		if *store {
			S.Sq++
			S.OSeq[ord(pid, n)] = S.Sq
		}
		v = 2
	}
	r.App |= bit(n)
	if v == 2 {
		r.Ok |= bit(n)
	} else {
		r.Sold |= bit(n)
	}
	return v
}
func prune(r *Rec, ack int) {
	var keep uint8
	if *fixed {
		for i := 1; i <= NN; i++ {
			if i > ack {
				keep |= bit(i)
			}
		}
	} else {
		for i := 1; i <= NN; i++ {
			if i > int(r.Last)-*k {
				keep |= bit(i)
			}
		}
	}
	r.Ok &= keep
	r.Sold &= keep
	r.Burn &= keep
}
func lostCheck(S *Shard, pid, seen, sv int) bool {
	r := &S.R[pid]
	if seen > int(r.Last) {
		return true
	}
	if *digest && seen > 0 {
		b := bit(seen)
		switch sv {
		case 2:
			return r.Ok&b == 0
		case 3:
			return r.Sold&b == 0
		case 4:
			return r.Burn&b == 0 && (r.Ok|r.Sold)&b != 0
		}
	}
	return false
}

// deliver request i; returns label, reply or 0
func deliver(s *State, m uint32) (string, uint32) {
	kind, pid, n, seen, cl, sv := int(m>>24), int(m>>20&15), int(m>>16&15), int(m>>12&15), int(m>>8&15), int(m&15)
	S := &s.S
	r := &S.R[pid]
	name := "reserve"
	if kind == kA {
		name = "ask"
	}
	lab := fmt.Sprintf("shard gets %s(p%d #%d seen=%d)", name, pid, n, seen)
	if S.Closed {
		return lab + " -> closed", rep(3, pid, n, 0, 0, 0)
	}
	if lostCheck(S, pid, seen, sv) {
		S.Closed = true
		return lab + " -> LOST, closes", rep(3, pid, n, 0, 0, 0)
	}
	if *fixed {
		prune(r, seen)
		if n <= int(r.Last) {
			return lab + " -> stale", rep(4, pid, n, 0, 0, 0)
		}
		if kind == kR {
			if n != int(r.Last)+1 {
				return lab + " -> gap", rep(4, pid, n, 0, 0, 0)
			}
			v := apply(s, S, pid, n, cl)
			r.Last = uint8(n)
			r.Hist |= bit(n)
			if bits.OnesCount8(r.Ok|r.Sold) > *w {
				panic("K bound")
			}
			return fmt.Sprintf("%s -> applied v=%d", lab, v), rep(1, pid, n, v, 0, 0)
		}
		r.Last = uint8(n)
		r.Hist |= bit(n)
		return fmt.Sprintf("%s -> verdicts ok=%b sold=%b", lab, r.Ok, r.Sold), rep(2, pid, n, 0, r.Ok, r.Sold)
	}
	known := func() int {
		switch b := bit(n); {
		case r.Ok&b != 0:
			return 2
		case r.Sold&b != 0:
			return 3
		default:
			return 4
		}
	}
	if kind == kR {
		fresh := false
		switch *order {
		case "high":
			fresh = n > int(r.Last)
		case "set":
			fresh = (r.App|r.Burn)&bit(n) == 0 && n > int(r.Last)-*k || n > int(r.Last)
		case "strict":
			fresh = n == int(r.Last)+1
			if n > int(r.Last)+1 {
				return lab + " -> gap", rep(4, pid, n, 0, 0, 0)
			}
		}
		if !fresh {
			v := known()
			return fmt.Sprintf("%s -> replay v=%d", lab, v), rep(1, pid, n, v, 0, 0)
		}
		v := apply(s, S, pid, n, cl)
		if n > int(r.Last) {
			r.Last = uint8(n)
		}
		r.Hist |= bit(n)
		prune(r, 0)
		return fmt.Sprintf("%s -> applied v=%d", lab, v), rep(1, pid, n, v, 0, 0)
	}
	// ask
	seenBefore := n <= int(r.Last)
	if *order == "set" {
		seenBefore = (r.App|r.Burn)&bit(n) != 0
	}
	if seenBefore {
		v := known()
		return fmt.Sprintf("%s -> replay v=%d", lab, v), rep(1, pid, n, v, 0, 0)
	}
	if *order == "strict" && n != int(r.Last)+1 {
		return lab + " -> gap", rep(4, pid, n, 0, 0, 0)
	}
	r.Burn |= bit(n)
	r.Hist |= bit(n)
	if n > int(r.Last) {
		r.Last = uint8(n)
	}
	prune(r, 0)
	return lab + " -> burned", rep(1, pid, n, 4, 0, 0)
}

func outstanding(p *Proc) (c, low int) {
	for i := 1; i <= NN; i++ {
		if p.St[i-1] == 1 {
			c++
			if low == 0 {
				low = i
			}
		}
	}
	return
}

// process takes reply
