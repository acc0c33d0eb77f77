package loadtest

import (
	"fmt"
	"strings"
)

// Verdict is the result of checking a promise.
type Verdict string

// The verdicts.
const (
	Holds   Verdict = "ok"
	Broken  Verdict = "BROKEN"
	Unknown Verdict = "could not tell"
)

// Check is a promise with its verdict.
type Check struct {
	Promise string  `json:"promise"` // I1 to I8, or "" for a check without a number
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail"`
}

// Judge checks every promise. A contradiction is BROKEN also in a test that was cut
// short. A promise HOLDS only if all evidence for it was read.
func Judge(e *Evidence) []Check {
	return []Check{
		e.conservation(), e.oversell(), e.limit(), e.promises(), e.counts(), e.balance(),
		e.undersell(), e.money(), e.keys(), e.cancels(), e.reconciled(),
	}
}

// Overall returns the worst verdict.
func Overall(checks []Check) Verdict {
	overall := Holds
	for _, c := range checks {
		if c.Verdict == Broken {
			return Broken
		}
		if c.Verdict == Unknown {
			overall = Unknown
		}
	}
	return overall
}

// verdict returns Broken if broken, else Unknown if evidence is missing.
func (e *Evidence) verdict(broken, unseen bool) Verdict {
	switch {
	case broken:
		return Broken
	case unseen || e.Partial != "":
		return Unknown
	}
	return Holds
}

func (e *Evidence) noFigures(promise, name string) Check {
	return Check{promise, name, Unknown, e.because("the operator's figures could not be read")}
}

func (e *Evidence) because(otherwise string) string {
	if e.Partial != "" {
		return e.Partial
	}
	return otherwise
}

func (e *Evidence) conservation() Check {
	const promise, name = "I1", "conservation"
	if e.Final == nil {
		return e.noFigures(promise, name)
	}
	s := e.Final.Store
	sum := s.Stock + s.Pending + s.Paid
	return Check{promise, name, e.verdict(sum != e.Final.Offered, false),
		fmt.Sprintf("offered %d = stock %d + pending %d + paid %d", e.Final.Offered, s.Stock, s.Pending, s.Paid)}
}

func (e *Evidence) oversell() Check {
	const promise, name = "I2", "no oversell"
	if e.Final == nil || e.Drained == nil {
		return e.noFigures(promise, name)
	}
	offered := e.Final.Offered
	live := max(e.Final.Store.Pending+e.Final.Store.Paid, e.Final.Reserved())
	// Each 202 holds its units until they come back. Before the first
	// cancellation only units of failed orders came back.
	promised := e.Won * e.Quantity
	atPeak := promised - e.returnedInTheRush()
	return Check{promise, name, e.verdict(live > offered || atPeak > offered, !e.Drains),
		fmt.Sprintf("of %d units offered %d are live at the end; %d were promised by 202, less %d that came back meanwhile", offered, live, promised, promised-atPeak)}
}

// returnedInTheRush is the number of units that came back during the rush.
func (e *Evidence) returnedInTheRush() int64 {
	if e.Before == nil || e.Drained == nil {
		return 0
	}
	now, then := e.Drained.Store, e.Before.Store
	return now.Cancelled + now.Failed + now.Refunded - then.Cancelled - then.Failed - then.Refunded
}

func (e *Evidence) limit() Check {
	h := &e.Holdings
	detail := fmt.Sprintf("%d buyers looked up, the most live units of one are %d, the limit is %d", h.Read, h.MostUnits, e.Limit)
	if h.Over > 0 {
		detail += fmt.Sprintf("; %d are above it, such as %s", h.Over, h.Example)
	}
	return Check{"I3", "limit", e.verdict(h.Over > 0, h.Unread > 0), detail + unread(h.Unread)}
}

func (e *Evidence) promises() Check {
	o := &e.Orders
	lost := o.Lost + e.Holdings.Missing
	var states []string
	for _, status := range []string{"queued", "pending", "paid", "cancelled", "failed", "refunded"} {
		if n := o.ByStatus[status]; n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, status))
		}
	}
	detail := fmt.Sprintf("%d orders promised, %d read: %s", o.Promised, o.Read, strings.Join(states, ", "))
	if lost > 0 {
		detail += fmt.Sprintf("; %d lost, %d not in their buyer's list, such as %s%s", o.Lost, e.Holdings.Missing, o.Example, e.Holdings.Example)
	}
	return Check{"I4", "no lost promise", e.verdict(lost > 0, o.Unread > 0 || !e.Drains), detail + unread(o.Unread)}
}

func unread(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d could not be read", n)
}

// counts compares the answers with the store: the promised units became orders, and
// no others did.
func (e *Evidence) counts() Check {
	const promise, name = "I4", "as many orders as answers"
	if e.Final == nil || e.Before == nil {
		return e.noFigures(promise, name)
	}
	stored, told := e.stored(), e.told()
	detail := fmt.Sprintf("%d units in the store's new orders, %d promised", stored, told)
	if e.FoundUnits > 0 {
		detail += fmt.Sprintf(" (%d to buyers who never heard it)", e.FoundUnits)
	}
	if !e.Fresh {
		// Others may buy too, so only a smaller number is wrong.
		return Check{promise, name, e.verdict(e.Drains && stored < told, !e.Drains || e.FoundUnknown > 0), detail + "; others may have bought too"}
	}
	if e.ForeignUnits > 0 {
		stored -= e.ForeignUnits
		detail += fmt.Sprintf("; %d were bought by others", e.ForeignUnits)
	}
	unseen := !e.Drains || e.FoundUnknown > 0 || e.ForeignUnread
	return Check{promise, name, e.verdict(!unseen && stored != told, unseen), detail}
}

// stored is the number of units of new orders in the store.
func (e *Evidence) stored() int64 {
	now, then := e.Final.Store, e.Before.Store
	return now.Pending + now.Paid + now.Cancelled + now.Failed + now.Refunded -
		then.Pending - then.Paid - then.Cancelled - then.Failed - then.Refunded
}

// told is the number of units that the crowd knows of.
func (e *Evidence) told() int64 { return e.Won*e.Quantity + e.FoundUnits }

func (e *Evidence) balance() Check {
	const promise, name = "I5", "ledger balance"
	if e.Final == nil {
		return e.noFigures(promise, name)
	}
	f := e.Final
	live := f.Store.Pending + f.Store.Paid
	detail := fmt.Sprintf("available %d + reserved %d = %d of %d offered; the store has %d of the reserved", f.Available(), f.Reserved(),
		f.Available()+f.Reserved(), f.Offered, live)
	broken := f.Available()+f.Reserved() != f.Offered || e.Drains && f.Reserved() != live
	return Check{promise, name, e.verdict(broken, !e.Drains), detail}
}

// undersell: sold_out was wrong if units are still free after the crowd, because
// until then only failed orders returned units. If every buyer got a clear answer,
// either demand or stock is used up.
func (e *Evidence) undersell() Check {
	const promise, name = "I7", "no undersell"
	if e.Before == nil || e.Drained == nil {
		return e.noFigures(promise, name)
	}
	free := e.Before.Available()
	left := e.Drained.Available() - e.returnedInTheRush()
	demand := (e.Won + e.Refused + e.GaveUp + e.NeverAsked) * e.Quantity
	detail := fmt.Sprintf("of %d free units %d were sold to a demand of %d, %d times sold_out", free, free-left, demand, e.SoldOutAnswers)
	stillFree := left >= e.Quantity // fewer units than one claim cannot be sold
	everybody := e.GaveUp == 0 && e.NeverAsked == 0
	switch {
	case stillFree && e.SoldOutAnswers > 0:
		return Check{promise, name, Broken, fmt.Sprintf("%s, but %d are still free", detail, left)}
	case stillFree && everybody && demand >= free:
		return Check{promise, name, e.verdict(e.Drains, true), fmt.Sprintf("%s, but %d are still free", detail, left)}
	case stillFree && demand >= free:
		return Check{promise, name, Unknown, fmt.Sprintf("%s; %d gave up and %d never asked%s", detail, e.GaveUp, e.NeverAsked, e.whyNotAsked())}
	}
	return Check{promise, name, e.verdict(false, !e.Drains), detail}
}

// whyNotAsked says what kept buyers from a clear answer, and what to do.
func (e *Evidence) whyNotAsked() string {
	if e.NoToken == 0 {
		return ": allow more --retries or --duration"
	}
	return fmt.Sprintf(", %d of them for want of a purchase token (%s): bring fewer --buyers, or allow more --retries", e.NoToken, e.NoTokenWhy)
}

func (e *Evidence) money() Check {
	const promise, name = "I8", "money"
	m := &e.Money
	if m.Asked == 0 {
		return Check{promise, name, e.verdict(false, false), e.because("nobody paid")}
	}
	detail := fmt.Sprintf("%d paid by two callbacks each, %d are paid, %d came late; of %d looked up %d count other than once; cancelling was refused %d times",
		m.Asked, m.Kept, m.Late, m.Read, m.CountedTwice, m.CancelRefused)
	if m.Lost+m.CountedTwice+m.Cancelled > 0 {
		detail += fmt.Sprintf("; %d paid ones are not paid, %d were cancelled, such as %s", m.Lost, m.Cancelled, m.Example)
	}
	if m.Unknown > 0 {
		detail += fmt.Sprintf("; %d got no clear answer, such as %s", m.Unknown, m.Example)
	}
	return Check{promise, name, e.verdict(m.Lost+m.CountedTwice+m.Cancelled > 0, m.Unknown+m.Unread > 0), detail}
}

func (e *Evidence) keys() Check {
	r := &e.Repeats
	detail := fmt.Sprintf("%d repeats found the same order", r.Same)
	if r.Other > 0 {
		detail += fmt.Sprintf("; %d did not, such as: %s", r.Other, r.Example)
	}
	if r.Unknown > 0 {
		detail += fmt.Sprintf("; %d got no clear answer", r.Unknown)
	}
	if r.NoToken > 0 {
		detail += fmt.Sprintf("; %d could not be repeated with a purchase token that lives (%s)", r.NoToken, r.NoTokenWhy)
	}
	return Check{"", "same key, same order", e.verdict(r.Other > 0, r.Unknown+r.NoToken > 0), detail}
}

func (e *Evidence) cancels() Check {
	c := &e.Cancels
	detail := fmt.Sprintf("%d cancelled by their buyers, %d are", c.Asked, c.Kept)
	if c.Lost > 0 || c.Unknown > 0 {
		detail += fmt.Sprintf("; %d are not, %d got no clear answer, such as %s", c.Lost, c.Unknown, c.Example)
	}
	return Check{"", "cancelled orders are cancelled", e.verdict(c.Lost > 0, c.Unknown > 0), detail}
}

func (e *Evidence) reconciled() Check {
	check := Check{Promise: "", Name: "reconcile says balanced", Verdict: Unknown}
	r := e.Reconciled
	switch {
	case r == nil:
		check.Detail = e.because(e.ReconcileFailed)
	case r.Balanced == nil:
		check.Detail = "the engine could not tell within its deadline"
	case *r.Balanced:
		check.Verdict, check.Detail = Holds, fmt.Sprintf("report %d, nothing found", r.ID)
	default:
		check.Verdict = Broken
		for _, v := range r.Violations {
			check.Detail += fmt.Sprintf("%s: expected %s, found %s: %s; ", v.Promise, v.Expected, v.Found, v.Detail)
		}
		check.Detail = strings.TrimSuffix(check.Detail, "; ")
	}
	return check
}
