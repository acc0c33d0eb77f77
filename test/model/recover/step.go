// The possible next steps of a state.
package main

import (
	"fmt"
	"model/mc"
)

// byKey stands in place of an epoch and means that an adoption was refused
// because of the key.
const byKey = 7

func next(s S) (r []mc.Step[S]) {
	if s.capped {
		return
	}
	add := func(fault bool, n S, f string, a ...any) {
		canon(&n)
		r = append(r, mc.Step[S]{L: fmt.Sprintf(f, a...), S: n, Fault: fault})
	}
	ledNames := [2]string{"L", "OLD"}
	// instances
	for i := uint8(0); i < 2; i++ {
		if !s.alive[i] {
			continue
		}
		v := s.view[i]
		l := led(&s, v)
		if s.iep[i] != s.sEp {
			n := s
			n.iep[i], n.sent[i] = s.sEp, 0
			add(false, n, "instance %d reads epoch %d in the store", i, s.sEp)
		}
		if l.ep == s.iep[i] && l.open && l.hi[i] < s.sent[i] {
			n := s
			led(&n, v).open = false
			add(false, n, "instance %d: %s knows fewer numbers: lost, closes itself", i, ledNames[v])
		}
		for o := uint8(0); o < NO; o++ {
			if *only>>o&1 == 1 && s.by[o] == 0 && (o != 2 || s.by[0] != 0) && l.open && l.ep == s.iep[i] && l.hi[i] >= s.sent[i] && l.avail > 0 && held(l.mark, buyer[o]) == 0 &&
				!taken(l.keys, o) {
				n := s
				nl := led(&n, v)
				nl.avail--
				nl.mark |= 1 << o
				if _, shared := twin(o); shared {
					nl.keys |= 1 << o
				}
				n.again = nl.ep == s.sEp && taken(s.had, o)
				nl.out[o] |= 1 << nl.ep
				nl.hi[i]++
				n.sent[i] = nl.hi[i]
				n.by[o] = 1 + i
				n.mem[o] = nl.ep
				add(true, n, "instance %d reserves o%d (buyer %c) on %s epoch %d; 202", i, o, 'A'+rune(buyer[o]), ledNames[v], nl.ep)
			}
			if s.mem[o] != 0 && s.by[o] == 1+i && s.row[o] != none {
				n := s
				n.mem[o] = 0
				add(false, n, "instance %d sees o%d in the store, forgets it", i, o)
			}
			// releaser on instance i
			if st := s.rel[o]; st != 0 && l.ep != 0 {
				ok := l.open && (!F["relep"] || l.ep == st) && l.ep == s.iep[i]
				skip := F["relep"] && l.ep > st
				if l.ep == s.iep[i] && l.hi[i] < s.sent[i] && !skip {
					ok = false // replies lost
				}
				if ok || skip {
					n := s
					nl := led(&n, v)
					what := "not held"
					if !skip && nl.mark>>o&1 == 1 {
						nl.mark &^= 1 << o
						nl.avail++
						what = "unit back"
					}
					if skip {
						what = "newer epoch: already counted"
					} else if F["relnum"] {
						nl.hi[i]++
						n.sent[i] = nl.hi[i]
					}
					if s.dup < uint8(*maxDup) {
						m := n
						m.dup++
						m.late[o] |= 1 << st
						add(true, m, "release o%d (stamp %d) told to %s epoch %d: %s; reply lost, a copy stays in the network", o, st, ledNames[v], nl.ep, what)
					}
					n.rel[o] = 0
					add(false, n, "release o%d (stamp %d) told to %s epoch %d: %s; heard", o, st, ledNames[v], nl.ep, what)
				}
			}
		}
		if s.death < uint8(*maxDeath) {
			n := s
			n.death++
			n.alive[i] = false
			for o := 0; o < NO; o++ {
				if n.by[o] == 1+i {
					n.mem[o] = 0
				}
			}
			add(true, n, "instance %d dies", i)
		}
		if v == 1 {
			n := s
			n.view[i] = 0
			add(true, n, "instance %d finds the new master", i)
		}
	}
	// late copies of releases
	for o := uint8(0); o < NO; o++ {
		for st := uint8(1); st < 7; st++ {
			if s.late[o]>>st&1 == 1 {
				n := s
				n.late[o] &^= 1 << st
				add(true, n, "copy of release o%d is lost", o)
				l := &n.L
				if !F["relorder"] && l.open && held(l.mark, buyer[o]) > 0 { // released by buyer
					l.mark &^= 0b101
					l.avail++
					add(true, n, "late copy of release o%d acts on buyer's mark, L epoch %d", o, l.ep)
				} else if l.open && (!F["relep"] || l.ep == st) && l.mark>>o&1 == 1 {
					l.mark &^= 1 << o
					l.avail++
					add(true, n, "late copy of release o%d (stamp %d) acts on L epoch %d", o, st, l.ep)
				}
			}
		}
	}
	// old master goes away
	if s.Old.ep != 0 {
		n := s
		wipe(&n, s.Old, Led{})
		n.Old = Led{}
		n.view[1] = 0
		for k := range n.W {
			if n.W[k].src == 1 && n.W[k].pc != 0 && false {
				n.W[k] = Wk{}
			}
		}
		add(false, n, "old master is gone")
	}
	// losses
	if s.loss < uint8(*maxLoss) {
		n := s
		n.loss++
		wipe(&n, s.L, Led{})
		n.L = Led{}
		add(true, n, "FLUSHALL")
		if s.K != s.L {
			n = s
			n.loss++
			wipe(&n, s.L, s.K)
			n.L = s.K
			add(true, n, "ledger rolled back")
			if *split && s.Old.ep == 0 && s.L.ep != 0 {
				n = s
				n.loss++
				n.Old = s.L
				n.L = s.K
				n.view[1] = 1
				add(true, n, "failover: L rolled back, instance 1 still on the old master")
			}
		}
		if *split && s.Old.ep == 0 && s.L.ep != 0 && s.K == s.L {
			n = s
			n.loss++
			n.Old = s.L
			n.view[1] = 1
			add(true, n, "failover without loss, instance 1 still on the old master")
		}
		if s.persist < uint8(*maxPersist) && s.K != s.L {
			n = s
			n.persist++
			n.K = s.L
			add(true, n, "replica is at this state")
		}
	}
	// relay
	if *relay {
		for o := 0; o < NO; o++ {
			if x := s.L.out[o]; x != 0 {
				n := s
				n.brk[o] |= x
				n.L.out[o] = 0
				add(true, n, "relay moves o%d to the broker", o)
			}
			if x := s.Old.out[o]; x != 0 {
				n := s
				n.brk[o] |= x
				n.Old.out[o] = 0
				add(true, n, "relay moves o%d from the old master to the broker", o)
			}
		}
	}
	// workers
	for k := 0; k < *nw; k++ {
		w := s.W[k]
		if w.pc == 0 {
			if k == 1 && s.W[0].pc == 0 {
				continue // symmetric
			}
			for o := uint8(0); o < NO; o++ {
				for src := uint8(0); src < 4; src++ {
					var set uint8
					switch src {
					case 0:
						set = s.L.out[o]
					case 1:
						set = s.Old.out[o]
					case 2:
						set = s.brk[o]
					case 3:
						if s.mem[o] != 0 && (s.reb || s.mem[o] < s.sEp) && s.row[o] == none {
							set = 1 << s.mem[o]
						}
					}
					for e := uint8(1); e < 7; e++ {
						if set>>e&1 == 0 {
							continue
						}
						n := s
						nw := &n.W[k]
						*nw = Wk{o: o, ep: e, src: src}
						from := [4]string{"L outbox", "OLD outbox", "broker", "instance memory"}[src]
						if !F["short"] && e == s.sEp && s.row[o] == none && !taken(keyed(&s), o) && (s.stock == 0 || held(live(&s), buyer[o]) > 0) {
							continue // alert only: waits for ever
						}
						if s.row[o] != none {
							if F["dead"] && s.row[o] != pending {
								n.rel[o] = s.sEp
							}
							ack(&n, nw)
							*nw = Wk{}
							add(false, n, "worker: o%d epoch %d from %s is a replay (row %d); ack", o, e, from, s.row[o])
						} else if e == s.sEp {
							nw.pc, nw.ver = 1, true
							add(false, n, "worker reads o%d epoch %d from %s", o, e, from)
						} else {
							nw.pc, nw.rep = 2, s.sEp
							add(false, n, "worker reads o%d OLD epoch %d (store %d) from %s: adopt", o, e, s.sEp, from)
						}
					}
				}
			}
			continue
		}
		n := s
		nw := &n.W[k]
		if s.crash < uint8(*maxCrash) {
			m := s
			m.W[k] = Wk{}
			m.crash++
			add(true, m, "worker with o%d killed", w.o)
		}
		fin := func(f string, a ...any) {
			if s.dup < uint8(*maxDup) {
				m := n
				m.dup++
				m.W[k] = Wk{}
				add(true, m, f+"; killed before ack", a...)
			}
			ack(&n, nw)
			n.W[k] = Wk{}
			add(false, n, f+"; ack", a...)
		}
		switch w.pc {
		case 1:
			if !w.ver || s.row[w.o] != none { // order_no is unique
				n.W[k] = Wk{}
				add(false, n, "worker: version moved, reads again")
				break
			}
			lim := held(live(&s), buyer[w.o]) > 0
			switch {
			case taken(keyed(&s), w.o):
				n.row[w.o] = duplicate
				n.rel[w.o] = s.sEp
				fin("worker: the key of o%d is another order's: failed, release pending", w.o)
			case s.stock > 0 && !lim:
				n.row[w.o] = pending
				n.stock--
				touched(&n)
				fin("worker commits o%d (entry epoch %d, store now %d)", w.o, w.ep, s.sEp)
			case lim && !F["limitrec"]:
				n.row[w.o] = failed
				n.rel[w.o] = s.sEp
				fin("worker: o%d over the limit: failed, release pending", w.o)
			case F["short"]:
				n.W[k] = Wk{}
				n.reb = true
				add(false, n, "worker: o%d does not fit the store: product set to rebuilding, entry stays", w.o)
			default:
				n.W[k] = Wk{}
				add(false, n, "worker: o%d does not fit the store: alert", w.o)
			}
		case 2:
			for i := 0; i < 2; i++ {
				n = s
				nw = &n.W[k]
				v := s.view[i]
				l := led(&n, v)
				if l.ep == 0 || !s.alive[i] || l.ep == s.iep[i] && l.hi[i] < s.sent[i] {
					continue
				}
				if F["adoptnum"] && l.open && l.ep == w.rep && s.iep[i] == l.ep && l.mark>>w.o&1 == 0 && l.avail > 0 && held(l.mark, buyer[w.o]) == 0 && l.keys>>w.o&1 == 0 && !taken(l.keys, w.o) {
					l.hi[i]++
					n.sent[i] = l.hi[i]
				}
				switch {
				case !l.open || F["adoptep"] && l.ep != w.rep || l.ep != s.iep[i]:
					n.W[k] = Wk{}
					add(false, n, "worker: adopt o%d: %s closed or of another epoch; again later", w.o, ledNames[v])
				case l.mark>>w.o&1 == 1:
					fin("worker: adopt o%d: %s holds it already", w.o, ledNames[v])
				case l.keys>>w.o&1 == 1:
					fin("worker: adopt o%d: %s has its key, and it is dead", w.o, ledNames[v])
				case taken(l.keys, w.o):
					nw.pc, nw.rep = 3, byKey
					add(false, n, "worker: adopt o%d: %s has its key for another order", w.o, ledNames[v])
				case l.avail > 0 && held(l.mark, buyer[w.o]) == 0:
					l.avail--
					l.mark |= 1 << w.o
					if _, shared := twin(w.o); shared {
						l.keys |= 1 << w.o
					}
					l.out[w.o] |= 1 << l.ep
					fin("worker: adopt o%d: reserved on %s epoch %d", w.o, ledNames[v], l.ep)
				default:
					nw.pc, nw.rep = 3, 0
					add(false, n, "worker: adopt o%d: refused by %s", w.o, ledNames[v])
				}
			}
			if s.L.ep == 0 {
				n = s
				n.W[k] = Wk{}
				add(false, n, "worker: adopt o%d: no ledger; again later", w.o)
			}
		case 3:
			if s.row[w.o] == none {
				n.row[w.o] = failed
				if w.rep == byKey || taken(keyed(&s), w.o) {
					n.row[w.o] = duplicate
				}
				fin("worker writes o%d failed", w.o)
			} else {
				fin("worker: o%d has a row meanwhile", w.o)
			}
		}
	}
	// cancel / expire
	for o := uint8(0); o < NO; o++ {
		if s.row[o] == pending && s.cancel < uint8(*maxCancel) {
			n := s
			n.cancel++
			n.row[o] = cancelled
			n.stock++
			n.rel[o] = s.sEp
			touched(&n)
			add(true, n, "store: o%d cancelled, release pending (stamp %d)", o, s.sEp)
		}
	}
	// recover
	need := s.L.ep == 0 || !s.L.open || s.L.ep < s.sEp || s.reb
	if *recon && !need && s.R[0].pc == 0 && s.R[1].pc == 0 && s.W[0].pc == 0 && s.W[1].pc == 0 && s.L.out == [NO]uint8{} && s.brk == [NO]uint8{} && s.rel == [NO]uint8{} && s.Old.ep == 0 {
		need = s.L.mark != live(&s) || s.L.avail != s.stock
	}
	for k := 0; k < 2; k++ {
		R := s.R[k]
		other := s.R[1-k]
		n := s
		nr := &n.R[k]
		if R.pc != 0 && s.crash < uint8(*maxCrash) {
			m := s
			m.R[k] = Rec{}
			m.crash++
			add(true, m, "recoverer %d dies", k)
		}
		switch R.pc {
		case 0:
			fault := other.pc != 0 || !need
			if k == 1 && other.pc == 0 {
				break // symmetric
			}
			if fault && s.rec >= uint8(*maxRec) {
				break
			}
			if fault {
				n.rec++
			}
			n.reb = true
			*nr = Rec{pc: 1, seen: s.sEp}
			add(fault, n, "recoverer %d: rebuilding set, epoch %d seen", k, s.sEp)
		case 1:
			if n.L.ep <= R.seen || !F["closecas"] {
				n.L.open = false
			}
			nr.pc = 2
			add(false, n, "recoverer %d closes L (epoch %d)", k, s.L.ep)
		case 2:
			if F["cas"] && s.sEp != R.seen {
				*nr = Rec{}
				add(false, n, "recoverer %d: epoch moved on, stops", k)
				break
			}
			if s.sEp >= uint8(*maxEp) {
				n.capped = true
				add(false, n, "cap")
				break
			}
			n.sEp++
			if F["verbump"] {
				touched(&n)
			}
			*nr = Rec{pc: 3, seen: R.seen, ep: n.sEp, stock: s.stock, marks: live(&s), keys: snapshotKeys(&s)}
			n.had = keyed(&s)
			add(false, n, "recoverer %d: store epoch %d, snapshot stock %d marks %03b", k, n.sEp, s.stock, nr.marks)
		case 3:
			if s.L.ep >= R.ep && F["install"] {
				*nr = Rec{}
				add(false, n, "recoverer %d: L has epoch %d already, stops", k, s.L.ep)
				break
			}
			nl := Led{ep: R.ep, avail: R.stock, mark: R.marks, keys: R.keys}
			if F["keepout"] {
				nl.out = s.L.out
			} // else: a wipe by the installer itself does not excuse a lost promise
			n.L = nl
			nr.pc = 4
			add(false, n, "recoverer %d installs epoch %d: stock %d marks %03b", k, R.ep, R.stock, R.marks)
		case 4:
			if s.L.ep == R.ep || !F["open"] && s.L.ep != 0 {
				n.L.open = true
				nr.pc = 5
				add(false, n, "recoverer %d opens L (epoch %d)", k, n.L.ep)
			} else {
				*nr = Rec{}
				add(false, n, "recoverer %d: L is not its own, stops", k)
			}
		case 5:
			if s.sEp == R.ep || !F["open"] {
				n.reb = false
			}
			*nr = Rec{}
			add(false, n, "recoverer %d: store no longer rebuilding", k)
		}
	}
	return
}
