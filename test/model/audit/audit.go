// The audit, as far as it concerns one order.
package main

// steps of an audit
const (
	idle    uint8 = iota
	begun         // the epoch was read
	read          // all rows were read
	suspect       // the marks were walked: an order is not as its row was
	first         // its row was read again
	second        // then its mark
	third         // then the entry to which that points
	last          // then its letter was looked for
	judged        // its row was read a last time: an alarm, if the epoch stays
	alarmed
)

// audit follows one order: each is judged by itself, so that any one stands for all. An audit changes nothing that
// others see: what one finds, any number would.
type audit struct {
	at, epoch uint8
	mark      mark // as it was met, if it is about an order in a mark
	number    uint8
	buyer     uint8 // of the row, if it is about an order that needs a mark
	row       row   // as first read
	missing   bool  // there was no row when it was read again
	place     uint8 // of the mark when it was read again
	ledger    uint8 // and the ledger's epoch, which is its entry's
}

type finder = func(n S, text string, args ...any)

// aboutMark tells whether it is about an order in a mark, not about one that needs one.
func (a *audit) aboutMark() bool { return a.mark != mark{} }

func (a *audit) agrees(r row) bool { return a.mark.agrees(r) && (r.key == a.mark.key || on("bare")) }

// needsKey tells whether its order was dead when the rows were read, and of those whose keys the ledger has to know.
// It knows a key from the sale, or the install, until the epoch ends: one that is then not met needs no second look.
func (a *audit) needsKey() bool {
	r := a.row
	if r.state == failed && !on("failed") {
		r.state = cancelled
	}
	r.counter = r.counter && on("share")
	return r.known() && on("key")
}

// walk is the next step of an audit.
func walk(s S, add finder) {
	n := s
	a := &n.audit
	drop := func(text string) {
		n.audit = audit{}
		add(n, "drops it: %s", text)
	}
	switch {
	case a.at == idle:
		if s.marked() && on("begin") {
			return
		}
		n.audit = audit{at: begun, epoch: s.epoch}
		add(n, "begins in epoch %d", s.epoch)
	case a.at <= read && !on("first"):
		hasten(s, add, drop)
	case a.at == begun:
		concern(s, add)
	case a.at == read:
		meet(s, add)
	case a.at == judged:
		if (s.epoch != a.epoch || s.marked()) && on("epoch") {
			drop("the ledger is rebuilt, or was")
			return
		}
		n.audit = audit{at: alarmed}
		add(n, "ALARM")
	case a.aboutMark():
		judgeMark(s, add, drop)
	default:
		judgeRow(s, add, drop)
	}
}

// concern reads all rows, of which one matters.
func concern(s S, add finder) {
	for number := range uint8(unknown + 1) {
		n := s
		a := &n.audit
		r := s.rowOf(number)
		a.at, a.number, a.row = read, number, r
		add(n, "reads the rows: o%d is %s", number, r)
	}
}

// meet walks the marks, of which one matters.
func meet(s S, add finder) {
	n := s
	a := &n.audit
	if a.row.ours() || a.row.state == live && !on("origin") {
		if _, found := s.find(a.row.buyer, a.number); !found {
			a.at, a.buyer = suspect, a.row.buyer
			add(n, "walks the marks: that of buyer %s does not hold o%d", name(a.buyer), a.number)
		}
	}
	if a.needsKey() && !s.remembers(a.number, a.row) {
		n.audit = audit{at: judged, epoch: a.epoch}
		add(n, "walks the marks: that of buyer %s does not know the key of o%d", name(s.audit.row.buyer), s.audit.number)
		n = s
	}
	for _, m := range s.marks {
		n, a = s, &n.audit
		a.mark = m
		if a.aboutMark() && m.number == a.number && !a.agrees(a.row) {
			a.at = suspect
			add(n, "walks the marks: that of buyer %s has o%d, key %d, unlike the rows", name(m.buyer), m.number, m.key)
		}
	}
	n.audit = audit{}
	add(n, "walks the marks: nothing")
}

// hasten walks the marks before it reads the rows, to see which keys are known.
func hasten(s S, add finder, drop func(string)) {
	n := s
	a := &n.audit
	if a.at == begun {
		for o, m := range s.marks {
			if m == (mark{}) {
				a.at, a.number = read, uint8(o)
				add(n, "walks the marks: none has o%d", o)
			}
		}
		return
	}
	if a.row = s.rowOf(a.number); !a.needsKey() {
		drop("its key need not be known")
		return
	}
	n.audit = audit{at: judged, epoch: a.epoch}
	add(n, "reads the rows: o%d is %s", s.audit.number, s.rowOf(s.audit.number))
}

// judgeMark is about an order in a mark: its mark is read again, then its entry, its letter, its row. Until it has a row
// it has an entry or a letter, and gets the letter before the entry goes, the row before the letter.
func judgeMark(s S, add finder, drop func(string)) {
	n := s
	a := &n.audit
	r := s.rowOf(a.number)
	next := func(at uint8, text string) {
		a.at = at
		add(n, "o%d "+text, a.number)
	}
	switch {
	case a.at == suspect && a.agrees(r):
		drop("its row is there now")
	case a.at == suspect && a.mark.returned:
		next(last, "has no such row")
	case a.at == suspect:
		a.missing = r.state == none
		next(first, "has no such row")
	case a.at < last:
		excuse, text := a.look(&s)
		if excuse != "" {
			drop(excuse)
			return
		}
		next(a.at+1, text)
	case a.agrees(r) && on("row"):
		drop("its row is there now")
	default:
		n.audit = audit{at: judged, epoch: a.epoch}
		add(n, "o%d is without excuse", s.audit.number)
	}
}

// look looks for an excuse of an order in a mark.
func (a *audit) look(s *S) (excuse, text string) {
	looks := [...]func(*S) (string, string){a.lookAtMark, a.lookAtEntry, a.lookAtLetter}
	if !on("order") {
		looks = [...]func(*S) (string, string){a.lookAtLetter, a.lookAtMark, a.lookAtEntry}
	}
	return looks[a.at-first](s)
}

func (a *audit) lookAtMark(s *S) (excuse, text string) {
	place, found := s.is(a.mark)
	if !found {
		return "the mark no longer has it", ""
	}
	a.place, a.ledger = uint8(place), s.ledger
	return "", "is still in the mark"
}

func (a *audit) lookAtEntry(s *S) (excuse, text string) {
	if a.missing && a.mark == written(int(a.place)) && s.orders[a.place].entry[a.ledger] != gone && on("queue") {
		return "it is queued", ""
	}
	return "", "is not queued"
}

func (a *audit) lookAtLetter(s *S) (excuse, text string) {
	if a.missing && a.number != unknown && s.orders[a.number].letter != 0 && on("letter") {
		return "it has a letter", ""
	}
	return "", "has no letter"
}

// is looks for an order in a buyer's mark as it was met there: by hand a number may be in it twice.
func (s *S) is(m mark) (place int, found bool) {
	for i, now := range s.marks {
		if now.held && m.held && now.buyer == m.buyer && now.number == m.number && now.key == m.key {
			return i, true
		}
	}
	return 0, false
}

// judgeRow is about an order that needs a mark: its mark is read again, then its row. It dies before it is released.
func judgeRow(s S, add finder, drop func(string)) {
	n := s
	a := &n.audit
	_, found := s.find(a.buyer, a.number)
	switch {
	case a.at == suspect && found:
		drop("the mark holds it now")
	case a.at == suspect:
		a.at = last
		add(n, "o%d is still not in the mark", a.number)
	case s.rowOf(a.number).state != live && on("live"):
		drop("it is dead")
	default:
		n.audit = audit{at: judged, epoch: a.epoch}
		add(n, "o%d is without excuse", s.audit.number)
	}
}

// alarms tells whether an audit finds anything while nothing else happens.
func alarms(s S) bool {
	s.audit = audit{}
	all := []S{s}
	for len(all) > 0 {
		s, all = all[0], all[1:]
		if s.audit.at == alarmed {
			return true
		}
		walk(s, func(n S, _ string, _ ...any) {
			if n.audit.at != idle {
				all = append(all, n)
			}
		})
	}
	return false
}
