package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/recovery"

	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// journaled is a memory with a journal, over several lives of its instance.
type journaled struct {
	*memory
	journal *recovery.Journal
	missing int
	silent  uint32 // a product whose part of the ledger does not answer
}

// Held is the ledger's, unless that part of it is silent.
func (j *journaled) Held(ctx context.Context, shard ledger.Shard, buyer string) ([]ledger.Holding, error) {
	if shard.Product == j.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return j.Ledger.Held(ctx, shard, buyer)
}

func newJournaled(t *testing.T, changes ...func(*recovery.JournalOptions)) *journaled {
	t.Helper()
	j := &journaled{memory: newMemory(t)}
	j.start(t, changes...)
	return j
}

// start is a life of the instance: it loads what the life before has left.
func (j *journaled) start(t *testing.T, changes ...func(*recovery.JournalOptions)) {
	t.Helper()
	opt := recovery.JournalOptions{Dir: filepath.Join(j.Dir, "promises"), Store: "s", Logger: slog.New(slog.DiscardHandler)}
	for _, change := range changes {
		change(&opt)
	}
	opened, loaded, err := recovery.OpenJournal(opt)
	rig.Must(t, err)
	t.Cleanup(func() { opened.Close() })
	j.journal = opened
	j.memory.Book = j.newBook(func(o *recovery.BookOptions) {
		o.Journal, o.Ledger = opened, j
		o.OnMissing = func(ctx context.Context, product uint32, epoch uint64, promises int) error {
			j.missing += promises
			if err := j.Store.BeginRebuild(ctx, product, epoch); err != nil {
				return err
			}
			return j.Catalog.Refresh(ctx)
		}
	})
	for i := range loaded {
		j.Load(loaded[i].Entry, loaded[i].At)
	}
}

// restart is the next life: the journal is closed without a settlement.
func (j *journaled) restart(t *testing.T) {
	t.Helper()
	j.sync(t)
	rig.Must(t, j.journal.Close())
	j.start(t)
}

func (j *journaled) sync(t *testing.T) {
	t.Helper()
	done := make(chan error, 1)
	j.journal.Sync(func(err error) { done <- err })
	rig.Must(t, <-done)
}

// forgotten remembers promises that the ledger does not have, as if its last
// second had not reached the disk.
func (j *journaled) forgotten(p seckill.Product, buyers ...string) (nos []seckill.OrderNo) {
	e := seckill.Entry{
		ProductID: p.ID, Group: p.Group, Epoch: p.Epoch, At: j.Time.Now(),
		PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name, Limit: p.PerUserLimit,
	}
	for _, buyer := range buyers {
		e.Claims = append(e.Claims, j.Claim(p.ID, buyer))
		nos = append(nos, e.Claims[len(e.Claims)-1].OrderNo)
	}
	j.Remember(e)
	return nos
}

// A part of the ledger that does not answer holds up neither the promises of the
// other parts nor those who wait to hand theirs over.
func TestReplay_ASilentPartOfTheLedgerHoldsUpNoOther(t *testing.T) {
	j := newJournaled(t)
	silent, lost := j.Open(t, 1, 100), j.Open(t, 2, 100)
	j.promised(t, silent, buyers("held", 20)...)
	j.forgotten(lost, buyers("lost", 20)...)
	j.restart(t)
	j.silent = silent.ID
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // a round of all duties has more
	defer cancel()
	if err := j.Replay(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("the replay said %v, and its own time is over: %v", err, ctx.Err() != nil)
	}
	if j.missing != 20 {
		t.Errorf("%d promises of the other part are missing, want 20", j.missing)
	}
	rig.Must(t, j.Reoffer(ctx, lost.ID))
	j.silent = 0
	j.Time.Advance(time.Minute)
	rig.Must(t, j.Replay(t.Context()))
}

// The ledger came back without its last second, and nobody noticed: what the
// journal has of it becomes orders before anything is sold.
func TestReplay_PromisesThatTheLedgerLostBecomeOrders(t *testing.T) {
	j := newJournaled(t)
	p := j.Open(t, 1, 100)
	held := j.promised(t, p, buyers("held", 20)...)
	lost := j.forgotten(p, buyers("lost", 30)...)
	written := j.promised(t, p, buyers("written", 10)...)
	j.ConfirmAll(t)
	held = append(held, j.promised(t, p, buyers("also", 5)...)...)
	j.restart(t)
	if j.Len() != 65 {
		t.Fatalf("%d promises were loaded", j.Len())
	}
	rig.Must(t, j.Replay(t.Context()))
	if j.missing != 30 {
		t.Fatalf("%d promises are missing, want the 30 that the ledger lost", j.missing)
	}
	if !j.Catalog.Find(1).Terms().Rebuilding {
		t.Error("the product is sold on before its ledger is rebuilt")
	}
	rig.Must(t, j.Reoffer(t.Context(), 1))
	p = j.recover(t, 1)
	j.ConfirmAll(t)
	j.settle(t)
	if got := j.statuses(t, append(append(held, lost...), written...)); got[seckill.OrderPending] != 65 {
		t.Errorf("orders %v", got)
	}
	if stats := j.journal.Stats(); j.Len() != 0 || stats.Promises != 0 {
		t.Errorf("%d remembered, the journal has %+v", j.Len(), stats)
	}
	if f := j.Figures(t, p); f.Marked != 65 || f.Available != 35 {
		t.Errorf("the rebuilt ledger has %+v", f)
	}
	storetest.CheckPromises(t, j.Store, 1)
}

// The rounds of an instance that sees the mark write its own promises.
func TestReplay_AnotherInstanceRebuilds(t *testing.T) {
	j := newJournaled(t)
	p := j.Open(t, 1, 100)
	lost := j.forgotten(p, buyers("lost", 30)...)
	j.restart(t)
	rig.Must(t, j.Store.BeginRebuild(t.Context(), 1, p.Epoch))
	rig.Must(t, j.Catalog.Refresh(t.Context()))
	rig.Must(t, j.Replay(t.Context()))
	if got := j.statuses(t, lost); got[seckill.OrderPending] != 30 || j.missing != 0 || j.Len() != 0 {
		t.Errorf("orders %v, %d missing, %d remembered", got, j.missing, j.Len())
	}
}

func TestReplay_HeldPromisesAreLeftToTheQueue(t *testing.T) {
	j := newJournaled(t)
	p := j.Open(t, 1, 100)
	nos := j.promised(t, p, buyers("a", 20)...)
	j.restart(t)
	rig.Must(t, j.Replay(t.Context()))
	asked := j.Ledger.Calls("Held")
	j.settle(t)
	if j.missing != 0 || j.Len() != 20 || j.Ledger.Calls("Held") != asked {
		t.Errorf("%d missing, %d remembered, asked %d and then %d times", j.missing, j.Len(), asked, j.Ledger.Calls("Held"))
	}
	j.ConfirmAll(t)
	j.settle(t)
	if got := j.statuses(t, nos); got[seckill.OrderPending] != 20 || j.Len() != 0 {
		t.Errorf("orders %v, %d remembered", got, j.Len())
	}
	rig.Must(t, j.journal.Close())
	j.start(t)
	if j.Len() != 0 {
		t.Errorf("%d promises of the store are still in the journal", j.Len())
	}
}

func TestReplay_AsksAgainAfterAnOutage(t *testing.T) {
	for part, fail := range map[string]func(j *journaled){
		"ledger": func(j *journaled) { j.Ledger.FailBefore("Held", 1) },
		"store":  func(j *journaled) { j.Store.FailBefore("OrdersByNo", 1) },
		"mark":   func(j *journaled) { j.Store.FailBefore("BeginRebuild", 1) },
	} {
		t.Run(part, func(t *testing.T) {
			j := newJournaled(t)
			lost := j.forgotten(j.Open(t, 1, 100), buyers("lost", 10)...)
			j.restart(t)
			fail(j)
			if j.Replay(t.Context()) == nil {
				t.Error("nobody was told")
			}
			j.missing = 0
			j.settle(t)
			if j.missing != 10 || j.Len() != 10 {
				t.Errorf("%d missing, %d remembered", j.missing, j.Len())
			}
			j.settle(t) // the product is marked now
			if got := j.statuses(t, lost); got[seckill.OrderPending] != 10 {
				t.Errorf("orders %v", got)
			}
		})
	}
}

// A promise that is written and released between the two questions is not lost.
func TestReplay_RowWrittenMeanwhileIsNotMissing(t *testing.T) {
	j := newJournaled(t)
	p := j.Open(t, 1, 100)
	e := seckill.Entry{
		ProductID: p.ID, Group: p.Group, Epoch: p.Epoch, At: j.Time.Now(), PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name,
		Limit: 1, Claims: []seckill.Claim{j.Claim(1, "a")},
	}
	items := store.Items(&e)
	j.Remember(e)
	j.restart(t)
	j.Ledger.Before("Held", func() {
		_, err := j.Store.Confirm(t.Context(), store.ConfirmRequest{ProductID: 1, Items: items, ExpireAfter: time.Hour})
		rig.Must(t, err)
	})
	rig.Must(t, j.Replay(t.Context()))
	if j.missing != 0 || j.Len() != 0 {
		t.Errorf("%d missing, %d remembered", j.missing, j.Len())
	}
}

func TestReplay_PromisesOfAnOlderEpochAreAdopted(t *testing.T) {
	j := newJournaled(t)
	p := j.Open(t, 1, 100)
	nos := j.forgotten(p, buyers("a", 20)...)
	j.recover(t, 1)
	j.restart(t)
	rig.Must(t, j.Replay(t.Context()))
	j.ConfirmAll(t)
	j.settle(t)
	if got := j.statuses(t, nos); got[seckill.OrderPending] != 20 || j.missing != 0 || j.Len() != 0 || j.journal.Stats().Promises != 0 {
		t.Errorf("orders %v, %d missing, %d remembered, the journal has %+v", got, j.missing, j.Len(), j.journal.Stats())
	}
}

// With a journal the book forgets nothing: the journal stops the sale instead.
func TestRemember_JournalStopsTheSaleAtItsBound(t *testing.T) {
	j := newJournaled(t, func(o *recovery.JournalOptions) { o.MaxPromises = 100 })
	p := j.Open(t, 1, 10_000)
	var nos []seckill.OrderNo
	for i := 0; j.journal.Ready(); i++ {
		nos = append(nos, j.promised(t, p, fmt.Sprint("b-", i))...)
	}
	if len(nos) != 100 || j.Len() != 100 || j.memory.forgotten.Load() != 0 {
		t.Fatalf("%d promised, %d remembered, %d forgotten", len(nos), j.Len(), j.memory.forgotten.Load())
	}
	j.ConfirmAll(t)
	j.settle(t)
	if !j.journal.Ready() {
		t.Error("the store has everything, and the journal is full")
	}
}

// Promises that wait for long do not keep the journal large.
func TestRound_MovesFewOldPromises(t *testing.T) {
	j := newJournaled(t, func(o *recovery.JournalOptions) { o.MaxBytes = 64 << 10 })
	p := j.Open(t, 1, 100_000)
	var waiting []seckill.OrderNo
	for i := range 60 {
		waiting = append(waiting, j.forgotten(p, fmt.Sprint("waits-", i))...)
		j.promised(t, p, buyers(fmt.Sprint("b-", i), 50)...)
		j.sync(t)
		j.ConfirmAll(t)
		j.settle(t)
		if !j.journal.Ready() {
			t.Fatalf("full after %d: %+v", i, j.journal.Stats())
		}
	}
	j.restart(t)
	rig.Must(t, j.Replay(t.Context()))
	rig.Must(t, j.Reoffer(t.Context(), 1))
	for _, no := range waiting {
		if j.Status(t, no) != seckill.OrderPending {
			t.Errorf("%s is lost", no)
		}
	}
}
