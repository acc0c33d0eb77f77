package sale_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/sale"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

const (
	walks     = 30
	walkSteps = 40
)

// One operator gives words at two instances that share a ledger. Their ways to the
// store are cut and healed, they carry, look, restart and rebuild, in random order.
// When all is well again, the last word that was answered stands everywhere.
func TestSetState_LastWordStandsAfterARandomWalk(t *testing.T) {
	for seed := range uint64(walks) {
		newWalk(t, seed).run()
	}
}

type walk struct {
	*testing.T
	rig   *rig.Rig
	rnd   *rand.Rand
	at    [2]*walker
	want  seckill.SaleState
	vague bool // a word has no answer: either state may stand
	trace []string
}

// walker is an instance with its own way to the store.
type walker struct {
	store     *storetest.Faulty
	catalog   *sale.Catalog
	lifecycle *sale.Lifecycle
	keeper    *sale.Keeper
	cut       bool
}

func newWalk(t *testing.T, seed uint64) *walk {
	w := &walk{T: t, rig: rig.New(t), rnd: rand.New(rand.NewPCG(seed, 7)), trace: []string{fmt.Sprintf("seed %d", seed)}}
	w.rig.Open(t, 1, 10, []func(*seckill.Product){rig.Limit(1), rig.Shards(4)}[seed%2])
	for i := range w.at {
		w.start(i)
	}
	return w
}

func (w *walk) start(i int) {
	store := storetest.NewFaulty(w.rig.Store)
	catalog := sale.NewCatalog(store)
	rig.Must(w, catalog.Refresh(w.Context()))
	lifecycle := sale.NewLifecycle(sale.LifecycleOptions{
		Store: store, Ledger: w.rig.Ledger, Queue: w.rig.Queue, Catalog: catalog, Clock: w.rig.Clock, Lanes: w.rig.Lanes, Logger: quiet,
		Strategies: []seckill.Strategy{seckill.StrategyAsync, seckill.StrategySharded}, Apart: true,
		Peers: walkPeer{w: w, at: 1 - i},
	})
	w.at[i] = &walker{store: store, catalog: catalog, lifecycle: lifecycle, keeper: sale.NewKeeper(lifecycle, 0, func(uint32) {}, func(uint32) {})}
}

// walkPeer is the other instance, which hears of every change.
type walkPeer struct {
	sale.Alone
	w  *walk
	at int
}

func (p walkPeer) ProductChanged(product uint32) {
	if other := p.w.at[p.at]; other != nil {
		other.catalog.Suspect(product)
	}
}

func (w *walk) run() {
	for range walkSteps {
		if w.step(w.rnd.IntN(2)); w.vague {
			return
		}
	}
	for _, in := range w.at {
		in.store.Heal()
	}
	for range 3 {
		for _, in := range w.at {
			rig.Must(w, in.catalog.Refresh(w.Context()))
			rig.Must(w, in.lifecycle.CarryInstructions(w.Context()))
			_ = in.keeper.Round(w.Context())
		}
	}
	p := w.rig.Stored(w, 1)
	if p.State != w.want {
		w.Errorf("the store has %s, want %s: %q", p.State, w.want, w.trace)
	}
	for i := range p.LedgerShards() {
		f, err := w.rig.Embedded.Read(w.Context(), ledger.ShardOf(&p, i))
		rig.Must(w, err)
		if f.State != w.want || f.Instruction.ID != "" {
			w.Errorf("shard %d has %s and instruction %+v, want %s: %q", i, f.State, f.Instruction, w.want, w.trace)
		}
	}
}

func (w *walk) step(i int) {
	in := w.at[i]
	switch w.rnd.IntN(11) {
	case 0, 1:
		if in.cut = !in.cut; in.cut {
			in.store.FailBefore(storetest.AnyMethod, storetest.Always)
		} else {
			in.store.Heal()
		}
		_ = in.catalog.Refresh(w.Context())
		w.did(i, "is cut off", in.cut)
	case 2, 3:
		w.word(i, seckill.SalePaused)
	case 4:
		w.word(i, seckill.SaleOpen)
	case 5:
		if w.rnd.IntN(10) == 0 {
			w.word(i, seckill.SaleEnded)
		}
	case 6, 7:
		w.did(i, "carries", in.lifecycle.CarryInstructions(w.Context()))
	case 8:
		w.did(i, "keeps", in.keeper.Round(w.Context()))
	case 9:
		if !in.cut {
			w.start(i)
			w.did(i, "restarts", nil)
		}
	case 10:
		if !in.cut && w.want != seckill.SaleEnded {
			_, err := in.lifecycle.Recover(w.Context(), 1, mei)
			w.did(i, "recovers", err)
		}
	}
}

// word gives a word at an instance. What is answered without an error is the last
// word, except after an end. A refused one changes nothing.
func (w *walk) word(i int, state seckill.SaleState) {
	_, err := w.at[i].lifecycle.SetState(w.Context(), 1, state, mei)
	w.did(i, "sets "+state.String(), err)
	switch {
	case w.want == seckill.SaleEnded:
		if err == nil && state == seckill.SaleOpen {
			w.Errorf("resumed after its end: %q", w.trace)
		}
	case err == nil:
		w.want = state
	default:
		w.vague = !w.at[i].cut || state != seckill.SaleOpen
	}
}

func (w *walk) did(i int, what string, result any) {
	w.trace = append(w.trace, fmt.Sprintf("%d %s: %v", i, what, result))
}
