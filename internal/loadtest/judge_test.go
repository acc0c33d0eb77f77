package loadtest

import (
	"strings"
	"testing"
	"time"

	"seckill/internal/api"
)

// sound is the evidence of a correct sale: 50 units, 500 buyers, 25 orders paid and 5
// cancelled.
func sound() *Evidence {
	balanced := true
	figures := func(available, stock, pending, paid, cancelled int64) *api.Stats {
		return &api.Stats{
			Seller: api.SellerLedger, Offered: 50, Ledger: api.LedgerFigures{Available: available, Reserved: 50 - available},
			Store: api.StoreFigures{Stock: stock, Pending: pending, Paid: paid, Cancelled: cancelled},
		}
	}
	return &Evidence{
		Fresh: true, Quantity: 1, Limit: 1,
		Won: 50, Refused: 450, SoldOutAnswers: 450,
		Before: figures(50, 50, 0, 0, 0), Drained: figures(0, 0, 50, 0, 0), Final: figures(5, 5, 20, 25, 5), Drains: true,
		Orders:   Orders{Promised: 50, Read: 50, ByStatus: map[string]int64{"pending": 20, "paid": 25, "cancelled": 5}},
		Holdings: Holdings{Read: 50, MostUnits: 1},
		Repeats:  Repeats{Same: 5},
		Cancels:  Moves{Asked: 5, Kept: 5},
		Money:    Money{Moves: Moves{Asked: 25, Kept: 25}, Read: 25, CancelRefused: 25},
		Reconciled: &api.Report{
			ID: 1, Balanced: &balanced,
		},
	}
}

func TestJudge_CorrectSaleHolds(t *testing.T) {
	for _, c := range Judge(sound()) {
		if c.Verdict != Holds {
			t.Errorf("%s %s: %s: %s", c.Promise, c.Name, c.Verdict, c.Detail)
		}
	}
}

// Other shoppers may buy the crowd's product.
func TestJudge_OrdersOfOthersAreNoFault(t *testing.T) {
	e := sound()
	e.Won, e.ForeignUnits = 47, 3
	if c := e.counts(); c.Verdict != Holds || !strings.Contains(c.Detail, "3 were bought by others") {
		t.Errorf("%s: %s", c.Verdict, c.Detail)
	}
}

func TestJudge_FindsFalsifiedFigures(t *testing.T) {
	unbalanced := false
	for name, c := range map[string]struct {
		check   string // the check that must not hold
		verdict Verdict
		falsify func(*Evidence)
	}{
		"a unit vanished":            {"conservation", Broken, func(e *Evidence) { e.Final.Store.Stock-- }},
		"a unit appeared":            {"conservation", Broken, func(e *Evidence) { e.Final.Store.Paid++ }},
		"no figures":                 {"conservation", Unknown, func(e *Evidence) { e.Final = nil }},
		"orders of others not seen":  {"as many orders as answers", Unknown, func(e *Evidence) { e.Final.Store.Failed++; e.ForeignUnread = true }},
		"51 promises of 50":          {"no oversell", Broken, func(e *Evidence) { e.Won++ }},
		"51 live of 50":              {"no oversell", Broken, func(e *Evidence) { e.Final.Ledger.Reserved = 51 }},
		"a greedy buyer":             {"limit", Broken, func(e *Evidence) { e.Holdings.Over, e.Holdings.MostUnits = 1, 2 }},
		"a buyer not seen":           {"limit", Unknown, func(e *Evidence) { e.Holdings.Unread = 1 }},
		"a lost order":               {"no lost promise", Broken, func(e *Evidence) { e.Orders.Lost = 1 }},
		"an order missing in a list": {"no lost promise", Broken, func(e *Evidence) { e.Holdings.Missing = 1 }},
		"an order not read":          {"no lost promise", Unknown, func(e *Evidence) { e.Orders.Unread = 1 }},
		"a queue that never empties": {"no lost promise", Unknown, func(e *Evidence) { e.Drains = false }},
		"an order nobody asked for":  {"as many orders as answers", Broken, func(e *Evidence) { e.Final.Store.Pending++ }},
		"a promise without an order": {"as many orders as answers", Broken, func(e *Evidence) { e.Final.Store.Failed-- }},
		"a silent buyer not looked up": {"as many orders as answers", Unknown, func(e *Evidence) {
			e.Won, e.GaveUp, e.FoundUnknown = 49, 1, 1
		}},
		"a ledger short of a unit":      {"ledger balance", Broken, func(e *Evidence) { e.Final.Ledger.Available-- }},
		"a mark without an order":       {"ledger balance", Broken, func(e *Evidence) { e.Final.Ledger = api.LedgerFigures{Available: 4, Reserved: 46} }},
		"sold_out with a unit free":     {"no undersell", Broken, func(e *Evidence) { e.Drained.Ledger.Available = 1 }},
		"everybody asked, a unit free":  {"no undersell", Broken, func(e *Evidence) { e.SoldOutAnswers, e.Drained.Ledger.Available = 0, 1 }},
		"a unit free, somebody gave up": {"no undersell", Unknown, func(e *Evidence) { e.SoldOutAnswers, e.Drained.Ledger.Available, e.GaveUp = 0, 1, 1 }},
		"a paid order is not paid":      {"money", Broken, func(e *Evidence) { e.Money.Lost = 1 }},
		"a payment counted twice":       {"money", Broken, func(e *Evidence) { e.Money.CountedTwice = 1 }},
		"a paid order was cancelled":    {"money", Broken, func(e *Evidence) { e.Money.Cancelled = 1 }},
		"a callback without an answer":  {"money", Unknown, func(e *Evidence) { e.Money.Unknown = 1 }},
		"a repeat with another order":   {"same key, same order", Broken, func(e *Evidence) { e.Repeats.Other = 1 }},
		"a repeat without an answer":    {"same key, same order", Unknown, func(e *Evidence) { e.Repeats.Unknown = 1 }},
		"a repeat without a token":      {"same key, same order", Unknown, func(e *Evidence) { e.Repeats.NoToken = 1 }},
		"a unit free, no token left": {"no undersell", Unknown, func(e *Evidence) {
			e.SoldOutAnswers, e.Drained.Ledger.Available, e.NeverAsked, e.NoToken = 0, 1, 1, 1
		}},
		"a cancelled order lives": {"cancelled orders are cancelled", Broken, func(e *Evidence) { e.Cancels.Lost = 1 }},
		"reconcile found something": {"reconcile says balanced", Broken, func(e *Evidence) {
			e.Reconciled.Balanced, e.Reconciled.Violations = &unbalanced, []api.Violation{{Promise: "I6", Detail: "a gap"}}
		}},
		"reconcile could not tell": {"reconcile says balanced", Unknown, func(e *Evidence) { e.Reconciled.Balanced = nil }},
		"reconcile failed":         {"reconcile says balanced", Unknown, func(e *Evidence) { e.Reconciled, e.ReconcileFailed = nil, "no answer" }},
	} {
		e := sound()
		c.falsify(e)
		found := Unknown
		checks := Judge(e)
		for _, check := range checks {
			if check.Name == c.check {
				found = check.Verdict
				if check.Verdict != c.verdict {
					t.Errorf("%s: %s is %s, want %s (%s)", name, c.check, check.Verdict, c.verdict, check.Detail)
				}
			}
		}
		if overall := Overall(checks); overall == Holds || found == Broken && overall != Broken {
			t.Errorf("%s: overall %s", name, overall)
		}
	}
}

func TestJudge_ReportsNoFalseFault(t *testing.T) {
	for name, change := range map[string]func(*Evidence){
		"fewer units left than one claim asks for": func(e *Evidence) {
			e.Quantity, e.Limit, e.Won = 3, 3, 16
			e.Before.Store, e.Drained.Ledger = api.StoreFigures{Stock: 50}, api.LedgerFigures{Available: 2, Reserved: 48}
			e.Final.Ledger, e.Final.Store = e.Drained.Ledger, api.StoreFigures{Stock: 2, Pending: 48}
		},
		"a silent buyer whose order was found": func(e *Evidence) { e.Won, e.GaveUp, e.FoundUnits = 49, 1, 1 },
		"others bought the same product": func(e *Evidence) {
			e.Fresh, e.Won = false, 40
		},
		"a failed order whose unit came back": func(e *Evidence) {
			e.Drained.Store.Failed, e.Drained.Store.Pending, e.Drained.Ledger = 1, 49, api.LedgerFigures{Available: 1, Reserved: 49}
			e.Final.Store.Failed, e.Final.Store.Pending, e.Final.Store.Stock = 1, 19, 6
			e.Final.Ledger = api.LedgerFigures{Available: 6, Reserved: 44}
		},
	} {
		e := sound()
		change(e)
		for _, c := range Judge(e) {
			if c.Verdict != Holds {
				t.Errorf("%s: %s %s: %s", name, c.Name, c.Verdict, c.Detail)
			}
		}
	}
}

func TestJudge_PartialTestFindsOnlyContradictions(t *testing.T) {
	e := sound()
	e.Partial = "interrupted"
	e.Reconciled = nil
	checks := Judge(e)
	for _, c := range checks {
		if c.Verdict != Unknown {
			t.Errorf("%s is %s", c.Name, c.Verdict)
		}
	}
	e.Repeats.Other = 1
	if Overall(Judge(e)) != Broken {
		t.Error("a contradiction was overlooked")
	}
	if Overall(Judge(&Evidence{Partial: "interrupted"})) != Unknown {
		t.Error("nothing seen is not nothing told")
	}
}

func TestReport_NamesEveryPromise(t *testing.T) {
	e := sound()
	e.Orders.Lost, e.Orders.Example = 1, "SK1 (404)"
	tally := newTally()
	for ms := range 1000 {
		tally.count(answerAccepted, time.Duration(ms+1)*time.Millisecond)
	}
	tally.count("sold_out", 1)
	tally.count(answerNone, 1)
	r := &Report{ProductID: 7, Answers: tally.byName(), Accepted: latencyOf(tally.accepted), TurnedAway: latencyOf(tally.refused)}
	r.conclude(e)
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"I1", "I2", "I3", "I4", "I5", "I7", "I8", "BROKEN", "SK1 (404)", "accepted 1000, no_answer 1, sold_out 1"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if a := r.Accepted; a.Count != 1000 || !about(a.P50, 500) || !about(a.P90, 900) || !about(a.P99, 990) || !about(a.P999, 999) || !about(a.Max, 1000) {
		t.Errorf("percentiles %+v", a)
	}
	if r.TurnedAway.Count != 1 || r.Verdict != Broken {
		t.Errorf("%d refused with a latency, verdict %s", r.TurnedAway.Count, r.Verdict)
	}
}

func about(got, want float64) bool { return got > want*0.995 && got < want*1.005 }
