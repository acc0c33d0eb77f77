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

// journalRig is a bookRig with a journal, over several starts of its instance.
type journalRig struct {
	*bookRig
	journal *recovery.Journal
	missing int
	silent  uint32 // a product in a part of the ledger that does not answer
}

// Held reads the ledger, unless that part of it is silent.
func (j *journalRig) Held(ctx context.Context, shard ledger.Shard, buyer string) ([]ledger.Holding, error) {
	if shard.Product == j.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return j.Ledger.Held(ctx, shard, buyer)
}

func newJournalRig(t *testing.T, changes ...func(*recovery.JournalOptions)) *journalRig {
	t.Helper()
	j := &journalRig{bookRig: newBookRig(t)}
	j.start(t, changes...)
	return j
}

// start starts the instance: it loads the journal of the start before.
func (j *journalRig) start(t *testing.T, changes ...func(*recovery.JournalOptions)) {
	t.Helper()
	opt := recovery.JournalOptions{Dir: filepath.Join(j.Dir, "promises"), Store: "s", Logger: slog.New(slog.DiscardHandler)}
	for _, change := range changes {
		change(&opt)
	}
	opened, loaded, err := recovery.OpenJournal(opt)
	rig.Must(t, err)
	t.Cleanup(func() { opened.Close() })
	j.journal = opened
	j.bookRig.Book = j.newBook(func(o *recovery.BookOptions) {
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

// restart closes the journal without settling, and starts again.
func (j *journalRig) restart(t *testing.T) {
	t.Helper()
	j.sync(t)
	rig.Must(t, j.journal.Close())
	j.start(t)
}

func (j *journalRig) sync(t *testing.T) {
	t.Helper()
	done := make(chan error, 1)
	j.journal.Sync(func(err error) { done <- err })
	rig.Must(t, <-done)
}

// lostByLedger remembers promises that the ledger does not have, as if its last
// second had not reached the disk.
func (j *journalRig) lostByLedger(p seckill.Product, buyers ...string) (nos []seckill.OrderNo) {
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

// A part of the ledger that does not answer delays neither the promises of
// other parts nor a handover of promises.
func TestReplay_SilentPartOfTheLedgerDelaysNoOther(t *testing.T) {
	j := newJournalRig(t)
	silent, lost := j.Open(t, 1, 100), j.Open(t, 2, 100)
	j.promised(t, silent, buyers("held", 20)...)
	j.lostByLedger(lost, buyers("lost", 20)...)
	j.restart(t)
	j.silent = silent.ID
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // shorter than the time of a round
	defer cancel()
	if err := j.Replay(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("the replay returned %v; its context has ended: %v", err, ctx.Err() != nil)
	}
	if j.missing != 20 {
		t.Errorf("%d promises of the other part are missing, want 20", j.missing)
	}
	rig.Must(t, j.Reoffer(ctx, lost.ID))
	j.silent = 0
	j.Time.Advance(time.Minute)
	rig.Must(t, j.Replay(t.Context()))
}

// The ledger has lost its last second unnoticed. The promises of the journal
// become orders before anything is sold.
func TestReplay_PromisesThatTheLedgerLostBecomeOrders(t *testing.T) {
	j := newJournalRig(t)
	p := j.Open(t, 1, 100)
	held := j.promised(t, p, buyers("held", 20)...)
	lost := j.lostByLedger(p, buyers("lost", 30)...)
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
		t.Error("the product is on sale before its ledger is rebuilt")
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

// The rounds of an instance that sees the request write its own promises.
func TestReplay_AnotherInstanceRebuilds(t *testing.T) {
	j := newJournalRig(t)
	p := j.Open(t, 1, 100)
	lost := j.lostByLedger(p, buyers("lost", 30)...)
	j.restart(t)
	rig.Must(t, j.Store.BeginRebuild(t.Context(), 1, p.Epoch))
	rig.Must(t, j.Catalog.Refresh(t.Context()))
	rig.Must(t, j.Replay(t.Context()))
	if got := j.statuses(t, lost); got[seckill.OrderPending] != 30 || j.missing != 0 || j.Len() != 0 {
		t.Errorf("orders %v, %d missing, %d remembered", got, j.missing, j.Len())
	}
}

func TestReplay_HeldPromisesAreLeftToTheQueue(t *testing.T) {
	j := newJournalRig(t)
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
	for part, fail := range map[string]func(j *journalRig){
		"ledger":  func(j *journalRig) { j.Ledger.FailBefore("Held", 1) },
		"store":   func(j *journalRig) { j.Store.FailBefore("OrdersByNo", 1) },
		"request": func(j *journalRig) { j.Store.FailBefore("BeginRebuild", 1) },
	} {
		t.Run(part, func(t *testing.T) {
			j := newJournalRig(t)
			lost := j.lostByLedger(j.Open(t, 1, 100), buyers("lost", 10)...)
			j.restart(t)
			fail(j)
			if j.Replay(t.Context()) == nil {
				t.Error("no error")
			}
			j.missing = 0
			j.settle(t)
			if j.missing != 10 || j.Len() != 10 {
				t.Errorf("%d missing, %d remembered", j.missing, j.Len())
			}
			j.settle(t) // the product is due now
			if got := j.statuses(t, lost); got[seckill.OrderPending] != 10 {
				t.Errorf("orders %v", got)
			}
		})
	}
}

// A promise that is written and released between the two reads is not lost.
func TestReplay_RowWrittenMeanwhileIsNotMissing(t *testing.T) {
	j := newJournalRig(t)
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
	j := newJournalRig(t)
	p := j.Open(t, 1, 100)
	nos := j.lostByLedger(p, buyers("a", 20)...)
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
	j := newJournalRig(t, func(o *recovery.JournalOptions) { o.MaxPromises = 100 })
	p := j.Open(t, 1, 10_000)
	var nos []seckill.OrderNo
	for i := 0; j.journal.Ready(); i++ {
		nos = append(nos, j.promised(t, p, fmt.Sprint("b-", i))...)
	}
	if len(nos) != 100 || j.Len() != 100 || j.bookRig.forgotten.Load() != 0 {
		t.Fatalf("%d promised, %d remembered, %d forgotten", len(nos), j.Len(), j.bookRig.forgotten.Load())
	}
	j.ConfirmAll(t)
	j.settle(t)
	if !j.journal.Ready() {
		t.Error("the store has everything, but the journal is full")
	}
}

// A few old promises must not keep the journal large.
func TestRound_MovesFewOldPromises(t *testing.T) {
	j := newJournalRig(t, func(o *recovery.JournalOptions) { o.MaxBytes = 64 << 10 })
	p := j.Open(t, 1, 100_000)
	var waiting []seckill.OrderNo
	for i := range 60 {
		waiting = append(waiting, j.lostByLedger(p, fmt.Sprint("waits-", i))...)
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
