package sale_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/sale"
	"seckill/test/rig"
	"seckill/test/virtual"
)

// instance has a lifecycle of its own over the rig's store and ledger.
type instance struct {
	*sale.Lifecycle
	sale.Alone
	mu      sync.Mutex
	changed []uint32
}

func newInstance(r *rig.Rig, holder string) *instance {
	i := &instance{}
	i.Lifecycle = sale.NewLifecycle(sale.LifecycleOptions{
		Store: r.Store, Ledger: r.Ledger, Queue: r.Queue, Catalog: sale.NewCatalog(r.Store), Clock: r.Clock,
		Lanes: r.Lanes, Logger: quiet, Strategies: []seckill.Strategy{seckill.StrategyAsync}, Holder: holder,
		Peers: i,
	})
	return i
}

func (i *instance) ProductChanged(product uint32) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changed = append(i.changed, product)
}

func (i *instance) told() []uint32 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.changed)
}

func TestInstancesThatNoticeALossTogetherRebuildOnce(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	r.LoseJournal(t)
	var working sync.WaitGroup
	instances := []*instance{newInstance(r, "a"), newInstance(r, "b"), newInstance(r, "c")}
	for _, i := range instances {
		working.Go(func() {
			if _, err := i.RecoverIfLost(t.Context(), 1); err != nil {
				t.Error(err)
			}
		})
	}
	working.Wait()
	p := r.Stored(t, 1)
	if f := r.Figures(t, p); p.Epoch != 2 || !f.Open || f.Epoch != 2 {
		t.Errorf("the store has epoch %d, the ledger %+v", p.Epoch, f)
	}
	if slices.Concat(instances[0].told(), instances[1].told(), instances[2].told()) == nil {
		t.Error("nobody told the others")
	}
}

// An instance that is killed while it rebuilds is waited for, not for long.
func TestTheTurnOfADeadInstanceRunsOut(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	r.LoseJournal(t)
	const turn = 5 * time.Second // by the store's clock
	held, err := r.Store.AcquireLease(t.Context(), "rebuild:1", "dead", turn)
	if rig.Must(t, err); !held {
		t.Fatal("the lease is not to be had")
	}
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = newInstance(r, "a").RecoverIfLost(impatient, 1)
	rig.Refused(t, err, seckill.CodeBusy)
	tries := r.Store.Calls("AcquireLease")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if recovered, err := newInstance(r, "b").RecoverIfLost(t.Context(), 1); err != nil || !recovered {
			t.Errorf("nobody recovered the product: %v", err)
		}
	}()
	rig.Until(t, "another waits for the turn", func() bool { return r.Store.Calls("AcquireLease") > tries })
	r.Time.Advance(turn)
	<-ended
}

func TestEveryChangeIsToldToTheOthers(t *testing.T) {
	r := rig.New(t)
	r.Product(t, 1, 5)
	i := newInstance(r, "")
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"preheat", func() error { _, err := i.Preheat(t.Context(), 1, rig.Operator); return err }},
		{"pause", func() error {
			_, err := i.SetState(t.Context(), 1, seckill.SalePaused, rig.Operator)
			return err
		}},
		{"stock", func() error { _, err := i.ChangeStock(t.Context(), 1, 2, "up", rig.Operator); return err }},
		{"recover", func() error { _, err := i.Recover(t.Context(), 1, rig.Operator); return err }},
		{"end", func() error {
			_, err := i.SetState(t.Context(), 1, seckill.SaleEnded, rig.Operator)
			return err
		}},
	} {
		before := len(i.told())
		rig.Must(t, step.do())
		if told := i.told(); len(told) == before || told[len(told)-1] != 1 {
			t.Errorf("%s was not told: %v", step.name, told)
		}
	}
	// The others must refuse a pause at their door also while the ledger is away.
	before := len(i.told())
	r.Open(t, 2, 5)
	r.Ledger.FailBefore("SetState", 1)
	if _, err := i.SetState(t.Context(), 2, seckill.SalePaused, rig.Operator); err == nil {
		t.Fatal("the fault did not strike")
	}
	if len(i.told()) == before {
		t.Error("a pause that the ledger did not hear was not told")
	}
}

// What another instance says counts for less than what the ledger said here:
// its word was on the way for some time, by a clock that may be wrong.
func TestAFlagRaisedOnAnothersWordFallsEarlier(t *testing.T) {
	for _, c := range []struct {
		age, stands time.Duration
	}{
		{0, 500 * time.Millisecond}, {100 * time.Millisecond, 400 * time.Millisecond}, {499 * time.Millisecond, time.Millisecond},
		{500 * time.Millisecond, 0}, {time.Hour, 0}, {-20 * time.Millisecond, 500 * time.Millisecond}, {-time.Second, 0},
	} {
		virtual.Test(t, func(t *testing.T) {
			catalog := sale.NewCatalog(&shelf{products: []seckill.Product{{ID: 1}}})
			rig.Must(t, catalog.Refresh(t.Context()))
			on := catalog.Find(1)
			on.HearSoldOut(c.age)
			began := time.Now()
			for on.SoldOut() {
				wait(time.Millisecond / 2)
			}
			if stood := time.Since(began); (stood - c.stands).Abs() > time.Millisecond {
				t.Errorf("aged %s it stood %s, want %s", c.age, stood, c.stands)
			}
		})
	}
}

// flagNews counts what an instance has told its peers of flags.
type flagNews struct {
	sale.Alone
	raised, lowered int
}

func (n *flagNews) SoldOut(uint32, time.Time) { n.raised++ }
func (n *flagNews) UnitsBack(uint32)          { n.lowered++ }

func TestFlagsAreToldWhenTheyAreNews(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		catalog := sale.NewCatalog(&shelf{products: []seckill.Product{{ID: 1}}})
		told := &flagNews{}
		catalog.Peers = told
		rig.Must(t, catalog.Refresh(t.Context()))
		on := catalog.Find(1)
		for range 1000 { // a crowd, for a second
			on.RaiseSoldOut(time.Now())
			wait(time.Millisecond)
		}
		if told.raised < 3 || told.raised > 10 {
			t.Errorf("told %d times in a second", told.raised)
		}
		on.ClearSoldOut()
		before := told.raised
		on.RaiseSoldOut(time.Now())
		if told.lowered != 1 || told.raised != before+1 {
			t.Errorf("cleared %d times, raised %d times after", told.lowered, told.raised-before)
		}
		on.HearUnitsBack() // what others told is not told again
		on.HearSoldOut(0)
		if told.lowered != 1 || told.raised != before+1 || !on.SoldOut() {
			t.Error("an echo")
		}
	})
}

// A rebuilt ledger may remember buyers of whom nobody has told; those of other
// groups are as well known as before.
func TestAMemoryDoubtsTheGroupThatWasRebuilt(t *testing.T) {
	m := sale.NewMemory()
	knows := func(group uint32) bool { return m.MayHoldIn(group, "bob") }
	m.DoubtGroup(1)
	if !knows(1) || !m.InDoubt(1) || knows(2) || m.InDoubt(2) {
		t.Errorf("group 1 is doubted: %v, group 2: %v", knows(1), knows(2))
	}
	read := m.GroupDoubts(1)
	m.DoubtGroup(1) // again, while its buyers are read
	m.TrustGroup(1, read)
	if !knows(1) {
		t.Error("a reading of before the last rebuild settles it")
	}
	m.TrustGroup(1, m.GroupDoubts(1))
	if knows(1) || m.InDoubt(1) {
		t.Error("it still doubts")
	}
}

// Whoever could not hear the others takes nobody for a stranger: somebody with
// an order would be told that all is sold.
func TestAMemoryInDoubtKnowsEverybody(t *testing.T) {
	m := sale.NewMemory()
	knows := func() bool { return m.MayHold(1, []byte("bob")) }
	if knows() {
		t.Error("it knows somebody from the start")
	}
	m.Doubt()
	read := m.Doubts()
	if !knows() {
		t.Error("it trusts itself though it missed something")
	}
	m.Doubt() // again, while all are read
	m.Trust(read)
	if !knows() {
		t.Error("a reading of before the last doubt settles it")
	}
	m.Trust(m.Doubts())
	if knows() {
		t.Error("it still doubts")
	}
}
