package recovery_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"seckill"
	"seckill/internal/recovery"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// The ledger is away when the store takes the product over. The handover or a
// round writes the promises of this instance, whichever comes first.
func TestTakeover_PromisesAreWritten(t *testing.T) {
	for name, write := range map[string]func(*testing.T, *bookRig){
		"by the handover": func(t *testing.T, m *bookRig) { rig.Must(t, m.Reoffer(t.Context(), 1)) },
		"by a round":      func(t *testing.T, m *bookRig) { m.settle(t) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newBookRig(t)
			p := m.Open(t, 1, 10)
			nos := m.promised(t, p, "a", "b")
			m.LoseJournal(t) // no entry will bring them
			m.Ledger.FailBefore("Do", -1)
			_, err := m.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
			rig.Must(t, err)
			write(t, m)
			if got := m.statuses(t, nos); got[seckill.OrderPending] != 2 {
				t.Errorf("orders are %v", got)
			}
			m.settle(t)
			if m.Len() != 0 || len(m.lost) != 0 {
				t.Errorf("%d promises remain, lost %v", m.Len(), m.lost)
			}
			storetest.CheckPromises(t, m.Store, 1)
		})
	}
}

// If the store cannot write one claim, the others are still written.
func TestTakeover_BadClaimStopsNoOther(t *testing.T) {
	const many, bad = 1200, 3 // several transactions
	for name, write := range map[string]func(*testing.T, *bookRig) error{
		"by the handover": func(t *testing.T, m *bookRig) error { return m.Reoffer(t.Context(), 1) },
		"by a stop":       func(t *testing.T, m *bookRig) error { return m.WriteAll(t.Context()) },
		"by a round": func(t *testing.T, m *bookRig) error {
			m.Time.Advance(time.Minute)
			return m.Round(t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newBookRig(t)
			p := m.Open(t, 1, many)
			var buyers []string
			for i := range many {
				buyers = append(buyers, fmt.Sprintf("buyer %d", i))
			}
			nos := m.promised(t, p, buyers...)
			m.LoseJournal(t)
			m.Ledger.FailBefore("Do", -1)
			_, err := m.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
			rig.Must(t, err)
			m.Store.Poison(buyers[bad])
			if err := write(t, m); !errors.Is(err, storetest.ErrPoison) {
				t.Errorf("the claim that cannot be written: %v", err)
			}
			if got := m.statuses(t, nos); got[seckill.OrderPending] != many-1 {
				t.Errorf("orders are %v", got)
			}
		})
	}
}

// The store has sold the unit to another buyer before the promise arrives. The
// promise fails, is logged and alerted.
func TestTakeover_LatePromiseFailsAndAlerts(t *testing.T) {
	m := newBookRig(t)
	p := m.Open(t, 1, 1)
	nos := m.promised(t, p, "a")
	m.LoseJournal(t)
	m.Sell(t, m.TakeOver(t, 1), "b") // no lease kept it closed
	m.settle(t)
	if got := m.statuses(t, nos); got[seckill.OrderFailed] != 1 || m.reoffered[recovery.Failed] != 1 || len(m.lost) != 1 {
		t.Errorf("orders are %v, counted %v, alerts %v", got, m.reoffered, m.lost)
	}
	if m.Len() != 0 {
		t.Errorf("%d promises remain", m.Len())
	}
	storetest.CheckPromises(t, m.Store, 1)
}
