// The state of the search: shard, processes, and the messages on their way.
package main

import (
	"sort"
)

type Rec struct {
	Last           uint8
	Ok, Sold, Burn uint8 // bit n-1; literal: window of K by number; fixed: only > seen
	App            uint8 // ghost: every number applied on this history (ok or sold)
	Hist           uint8 // ghost: every number (calls) processed on this history
}
type Shard struct {
	Closed bool
	Avail  uint8
	Out    uint32 // ghost+outbox: all entries ever written on this history
	Rel    uint32 // released (cancelled)
	Mark   [NC]uint8
	Tomb   uint8
	TombO  [NC]uint8
	R      [NP]Rec
	Sq     uint8
	OSeq   [NP * NN]uint8
}
type Proc struct {
	Dead  bool
	Next  uint8 // next number
	Seen  uint8 // highest number answered
	SeenV uint8 // the answer that was received for it
	Asks  uint8
	Ask   uint8     // fixed: number of the outstanding ask
	St    [NN]uint8 // 0 unused 1 waiting 2 ok(202) 3 sold 4 notapplied 5 ask(answered or not)
	Cl    [NN]uint8 // claim
}
type State struct {
	S                          Shard
	Sn                         [NS]Shard
	P                          [NP]Proc
	M                          [NM]uint32
	Rp                         [NR]uint32
	Fo                         uint8
	Cr                         uint8
	At                         [NC]uint8
	Sto                        uint32        // store: confirmed orders
	SF                         uint32        // store: refused (explicit failure)
	WHi, WHiSeq, Pend, PendSeq uint8         // worker: highest confirmed entry +1 (kept in the store), entry in hand +1
	G                          [NP][NN]uint8 // ghost: order number (+1) given by the verdict of (process, number); a request is applied at most once over all forks
	PC                         bool          // entry in hand is confirmed in the store, not yet acknowledged to the shard
}

// message: kind(2) pid(2) n(4) seen(4) claim(2) seenv(3)
const (
	kR = 1
	kA = 2
)

func msg(kind, pid, n, seen, cl, sv int) uint32 {
	return uint32(kind)<<24 | uint32(pid)<<20 | uint32(n)<<16 | uint32(seen)<<12 | uint32(cl)<<8 | uint32(sv)
}
func addM(s *State, m uint32) bool {
	for i := range s.M {
		if s.M[i] == m {
			return true
		}
	}
	for i := range s.M {
		if s.M[i] == 0 {
			s.M[i] = m
			sort.Slice(s.M[:], func(a, b int) bool { return s.M[a] > s.M[b] })
			return true
		}
	}
	return false
}
func addR(s *State, m uint32) bool {
	for i := range s.Rp {
		if s.Rp[i] == m {
			return true
		}
	}
	for i := range s.Rp {
		if s.Rp[i] == 0 {
			s.Rp[i] = m
			sort.Slice(s.Rp[:], func(a, b int) bool { return s.Rp[a] > s.Rp[b] })
			return true
		}
	}
	return false
}
func ord(pid, n int) int { return pid*NN + n - 1 }

// reply: kind(1 verdict of n, 2 ask reply fixed, 3 lost, 4 gap) pid n ok sold
func rep(kind, pid, n, v int, ok, sold uint8) uint32 {
	return uint32(kind)<<28 | uint32(pid)<<24 | uint32(n)<<20 | uint32(v)<<16 | uint32(ok)<<8 | uint32(sold)
}

func bit(n int) uint8 { return 1 << (n - 1) }
