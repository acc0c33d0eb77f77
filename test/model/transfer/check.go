// Invariants of every state.
package main

import (
	"fmt"
)

// true in transit, all shards at one instant, epoch e
func transit(s *[NSH]Shard, cond bool) int {
	n := 0
	for d := 0; d < *nsh; d++ {
		if *fixed {
			for r := 0; r < *nsh; r++ {
				if s[d].OutU[r] > 0 && (!cond || s[r].InN[d] < s[d].OutN[r] || s[r].E != s[d].E) {
					n += int(s[d].OutU[r])
				}
			}
		} else {
			for x := 0; x < *nt; x++ {
				dd, r := ends(x)
				if dd == d && s[d].Rec[x] > 0 && (!cond || s[r].Id>>x&1 == 0 || s[r].E != s[d].E) {
					n++
				}
			}
		}
	}
	return n
}
func ar(s *[NSH]Shard) (n int) {
	for i := 0; i < *nsh; i++ {
		n += int(s[i].Avail) + int(s[i].Res)
	}
	return
}
func free(s *State) (n int) {
	for i := 0; i < *nsh; i++ {
		n += int(s.S[i].Avail)
	}
	return n + transit(&s.S, true)
}
func sameE(s *[NSH]Shard) bool {
	for i := 1; i < *nsh; i++ {
		if s[i].E != s[0].E {
			return false
		}
	}
	return true
}

// reports whether the numbers show a loss: the receiver knows more than the
// donor, or does not know the donor's cleared number
func noticed(s *State) bool {
	for d := 0; d < *nsh; d++ {
		for r := 0; r < *nsh; r++ {
			if s.S[r].InN[d] > s.S[d].OutN[r] || s.S[r].InN[d] == s.S[d].OutN[r] && s.S[r].InI[d] != s.S[d].OutI[r] {
				return true
			}
			if s.S[d].OutU[r] == 0 && s.S[r].InN[d] < s.S[d].OutN[r] {
				return true
			}
			if s.S[d].OutU[r] > 0 && s.S[r].InN[d]+1 < s.S[d].OutN[r] {
				return true
			}
		}
	}
	return false
}

var liveMax int

func bad(s *State) string {
	total := *units**nsh + int(int8(s.S[0].Al))
	if s.Lost {
		if *roll == 0 {
			return "T4 false alarm: lost without a failover"
		}
		return ""
	}
	if *chk == "true" && sameE(&s.S) {
		if got := ar(&s.S) + transit(&s.S, true); got != total {
			if *roll == 0 || !(*fixed && noticed(s)) {
				return fmt.Sprintf("T1 available+reserved+in transit = %d, must be %d", got, total)
			}
		}
		if *fixed && *roll == 0 {
			// local balance
			for i := 0; i < *nsh; i++ {
				if int(s.S[i].Avail)+int(s.S[i].Res)+int(s.S[i].Sent)-int(s.S[i].Recv) != *units+int(int8(s.S[i].Al)) {
					return "T3 local balance"
				}
			}
		}
	}
	// liveness: a helper alone finishes every open transfer of the common epoch: credit, clear
	if *fixed && sameE(&s.S) && *roll == 0 {
		t := *s
		for d := 0; d < *nsh; d++ {
			for r := 0; r < *nsh; r++ {
				if q := &t.S[d]; q.OutU[r] > 0 {
					if t.S[r].InN[d]+1 == q.OutN[r] {
						t.S[r].Avail += q.OutU[r]
						t.S[r].InN[d]++
					}
					if t.S[r].InN[d] >= q.OutN[r] {
						q.OutU[r] = 0
					}
				}
			}
		}
		if transit(&t.S, false) != 0 || ar(&t.S) != total {
			return "T2 a helper cannot finish"
		}
	}
	if *obs != "" {
		rounds := 1
		if *obs == "double" || *obs == "sold2" {
			rounds = 2
		}
		if int(s.Pos) == rounds**nsh && sameE(&s.R1) {
			switch *obs {
			case "naive":
				if got := ar(&s.R1) + transit(&s.R1, false); got != total {
					return fmt.Sprintf("O observer (records counted) reads %d, must be %d", got, total)
				}
			case "cond":
				if got := ar(&s.R1) + transit(&s.R1, true); got != total {
					return fmt.Sprintf("O observer (records not yet credited counted) reads %d, must be %d", got, total)
				}
			case "cum":
				got := ar(&s.R1)
				for i := 0; i < *nsh; i++ {
					got += int(s.R1[i].Sent) - int(s.R1[i].Recv)
				}
				if got != total {
					return fmt.Sprintf("O observer (cumulative counters, one pass) reads %d, must be %d", got, total)
				}
			case "double":
				same := sameE(&s.R2) && s.R1[0].E == s.R2[0].E
				for i := 0; i < *nsh; i++ {
					if s.R1[i].Tc != s.R2[i].Tc {
						same = false
					}
				}
				if same {
					if got := ar(&s.R2) + transit(&s.R2, true); got != total {
						return fmt.Sprintf("O observer (double read) reads %d, must be %d", got, total)
					}
				}
			case "sold", "sold2":
				f := 0
				for i := 0; i < *nsh; i++ {
					f += int(s.R1[i].Avail) + int(s.R1[i].Sent) - int(s.R1[i].Recv)
				}
				ok := f < 1
				if *obs == "sold2" {
					for i := 0; i < *nsh; i++ {
						if s.R1[i].Rels != s.R2[i].Rels || s.R1[i].E != s.R2[i].E || *allot && s.R1[i].Al != s.R2[i].Al {
							ok = false
						}
					}
				}
				if ok && s.LowFree >= 1 {
					return "I7 observer says sold out, free units (transit included) were never below 1 during the reading"
				}
			}
		}
	}
	return ""
}
