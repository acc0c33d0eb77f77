package recovery_test

import (
	"testing"

	"seckill"
	"seckill/internal/recovery"
	"seckill/internal/sale"
	"seckill/test/rig"
)

// The rows of a deleted product never come back. Its promises must not be
// checked for ever, nor fill the book and the journal.
func TestRound_ForgetsPromisesOfADeletedProduct(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, m *bookRig){
		"that the instance had seen": func(*testing.T, *bookRig) {},
		"after a restart": func(t *testing.T, m *bookRig) { // its catalogue does not know the product
			fresh := sale.NewCatalog(m.Store)
			rig.Must(t, fresh.Refresh(t.Context()))
			m.Catalog = fresh
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newBookRig(t)
			p := m.Open(t, 1, 5, func(p *seckill.Product) { p.Test = true })
			m.promised(t, p, "ann", "bob")
			other := m.Open(t, 2, 5)
			m.promised(t, other, "ann")
			m.ConfirmAll(t)
			m.promised(t, other, "bob") // queued
			_, err := m.Lifecycle.SetState(t.Context(), 1, seckill.SaleEnded, rig.Operator)
			rig.Must(t, err)
			_, err = m.Lifecycle.Delete(t.Context(), 1, rig.Operator)
			rig.Must(t, err)
			begin(t, m)
			m.settle(t)
			if n := m.Len(); n != 1 {
				t.Errorf("%d promises are remembered, want only that of the other product", n)
			}
			if len(m.lost) != 0 || m.reoffered[recovery.Adopted] != 0 {
				t.Errorf("lost %v, offered again %v", m.lost, m.reoffered)
			}
		})
	}
}
