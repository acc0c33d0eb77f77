package sale_test

import (
	"sync/atomic"
	"testing"

	"seckill/internal/ledger"
	"seckill/test/rig"
)

func TestASaleThatIsDueDoesNotWaitBehindTheOthers(t *testing.T) {
	r := rig.New(t)
	for id := range uint32(50) {
		r.Open(t, id+1, 1)
	}
	r.Product(t, 51, 1)
	installed := r.Ledger.Calls("Install")
	var before atomic.Int64
	r.Ledger.Lie(func(*ledger.Figures) {
		if r.Ledger.Calls("Install") == installed {
			before.Add(1)
		}
	})
	rig.Must(t, round(t, r, keeper(r)))
	if r.Stored(t, 51).Epoch == 0 || before.Load() > 1 {
		t.Errorf("epoch %d; %d shards were read before it was preheated", r.Stored(t, 51).Epoch, before.Load())
	}
}

func TestARoundLooksAfterSomeSalesAtOnce(t *testing.T) {
	r := rig.New(t)
	for id := range uint32(30) {
		r.Open(t, id+1, 1)
	}
	k := keeper(r)
	rig.Must(t, round(t, r, k))
	reads := r.Ledger.Calls("Read")
	unblock := r.Ledger.Block("Read")
	done := make(chan error, 1)
	go func() { done <- k.Round(t.Context()) }()
	rig.Until(t, "sixteen sales are read at once", func() bool { return r.Ledger.Calls("Read") == reads+16 })
	unblock()
	rig.Must(t, <-done)
}
