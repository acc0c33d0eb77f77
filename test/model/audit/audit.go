package main

// steps of an audit
const (
	idle     uint8 = iota
	begun          // 0: the epoch was read
	read           // 1: the rows were read
	suspect        // 2, 3: the marks were walked, and there is a candidate
	reread         // 4a, 5: its mark, and its entry, were read again
	lettered       // 4b: its letter was looked up
	judged         // 4c, 5: its row was read again: an alarm, if the epoch stays
	alarmed        // 6
)

// audit is an audit as far as it concerns one candidate: they are judged one by
// one, each by itself, so that it is enough to have any one of them followed.
// It changes nothing that others see: what one does, any number do.
type audit struct {
	at, epoch     uint8
	reverse       bool
	number, buyer uint8 // of the order in a mark, or of the row
	key           uint8 // in the mark
	row           row   // as first read
	early         row   // as read before the letter, if that is the order
}

// differs is how an order in a mark is compared with its row.
func (a *audit) differs(r row) bool {
	if r.state == none || r.buyer != a.buyer {
		return true
	}
	if r.state == failed && r.key == 0 && on("bare") {
		return false // the key is another order's
	}
	return r.key != a.key
}

// walk is the next step of an audit, of whatever it may concern.
func walk(s S, add func(n S, text string, args ...any)) {
	n := s
	a := &n.audit
	end := func(text string) {
		n.audit = audit{}
		add(n, "%s", text)
	}
	switch s.audit.at {
	case idle:
		if s.marked() && on("begin") {
			return
		}
		n.audit = audit{at: begun, epoch: s.epoch}
		add(n, "begins in epoch %d", s.epoch)
	case begun:
		concerns(s, add)
	case read:
		seek(s, add)
		end("walks the marks: nothing")
	case suspect:
		place, held := s.find(a.buyer, a.number)
		if !a.reverse {
			place, held = s.holds(a.buyer, a.number, a.key)
		}
		switch {
		case a.reverse && held:
			end("drops it: the mark holds it")
		case a.reverse:
			a.at = lettered
			add(n, "looks again: the mark does not hold o%d", a.number)
		case !held:
			end("drops it: the mark no longer holds it")
		case s.queued(place) && on("queue"):
			end("drops it: it is queued")
		default:
			a.at = reread
			if !on("order") {
				a.early = s.rowOf(a.number)
			}
			add(n, "looks again: the mark holds o%d, which is not queued", a.number)
		}
	case reread:
		if a.number != unknown && s.orders[a.number].letter != 0 && on("letter") {
			end("drops it: it has a letter")
			return
		}
		a.at = lettered
		add(n, "finds no letter of o%d", a.number)
	case lettered:
		if a.innocent(&s) {
			end("drops it: its row says why")
			return
		}
		*a = audit{at: judged, epoch: a.epoch}
		add(n, "finds o%d without excuse", s.audit.number)
	case judged:
		if (s.epoch != a.epoch || s.marked()) && on("epoch") {
			end("drops all: the ledger was rebuilt")
			return
		}
		n.audit = audit{at: alarmed}
		add(n, "ALARM")
	}
}

func (s *S) rowOf(number uint8) row {
	if number == unknown {
		return row{}
	}
	return s.orders[number].row
}

// innocent is the last look at a candidate's row.
func (a *audit) innocent(s *S) bool {
	now := s.rowOf(a.number)
	switch {
	case a.reverse && !on("live"), !a.reverse && !on("row"):
		return false
	case a.reverse:
		return now.state != live
	case !on("order"):
		now = a.early
	}
	return !a.differs(now)
}

// concerns reads the rows, of which one matters.
func concerns(s S, add func(n S, text string, args ...any)) {
	for number := range uint8(unknown + 1) {
		n := s
		a := &n.audit
		r := s.rowOf(number)
		a.at, a.number, a.row = read, number, r
		add(n, "reads the rows: o%d is %s", number, r)
		if r.ours() || r.state == live && !on("origin") {
			a.reverse, a.buyer = true, r.buyer
			add(n, "reads the rows: o%d is %s and needs a mark", number, r)
		}
	}
}

// seek walks the marks, of which one matters.
func seek(s S, add func(n S, text string, args ...any)) {
	n := s
	a := &n.audit
	if a.reverse {
		if _, held := s.find(a.buyer, a.number); !held {
			a.at = suspect
			add(n, "walks the marks: that of buyer %c does not hold o%d", 'A'+rune(a.buyer), a.number)
		}
		return
	}
	for _, m := range s.marks {
		n, a = s, &n.audit
		a.buyer, a.key = m.buyer, m.key
		if m.held && m.number == a.number && a.differs(a.row) {
			a.at = suspect
			add(n, "walks the marks: that of buyer %c holds o%d, key %d, unlike the rows", 'A'+rune(m.buyer), m.number, m.key)
		}
	}
}

// alarms tells whether an audit of a resting system finds anything.
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
