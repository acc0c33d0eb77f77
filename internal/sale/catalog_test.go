package sale_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/sale"
	"seckill/test/rig"
	"seckill/test/virtual"
)

func shortly(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 300*time.Millisecond)
}

func raise(on *sale.Sale) { on.RaiseSoldOut(time.Now()) }

// shelf is a source of products that a test changes.
type shelf struct {
	mu       sync.Mutex
	products []seckill.Product
	past     []seckill.Product // read by id alone
	asked    int               // for one of them
	err      error
}

func (s *shelf) Product(_ context.Context, id uint32) (seckill.Product, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	for _, p := range s.past {
		if p.ID == id {
			return p, s.err
		}
	}
	return seckill.Product{}, seckill.Errorf(seckill.CodeNotFound, "no such product")
}

func (s *shelf) CurrentProducts(context.Context) ([]seckill.Product, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.products, s.err
}

var quiet = slog.New(slog.DiscardHandler)

func TestTheSoldOutFlagLivesASecondFromTheAsking(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		c := sale.NewCatalog(&shelf{products: []seckill.Product{{ID: 1}}})
		rig.Must(t, c.Refresh(t.Context()))
		on := c.Find(1)
		if on.SoldOut() {
			t.Fatal("a new sale is sold out")
		}
		asked := time.Now()
		wait(400 * time.Millisecond) // the answer was slow
		on.RaiseSoldOut(asked)
		wait(500 * time.Millisecond)
		if !on.SoldOut() {
			t.Error("the flag fell after 0.9 s")
		}
		wait(101 * time.Millisecond)
		if on.SoldOut() {
			t.Error("the flag stands a second after the ledger was asked")
		}
		raise(on)
		on.ClearSoldOut()
		if on.SoldOut() {
			t.Error("a cleared flag stands")
		}
	})
}

// wait lets a bubble's clock go on, and everybody in it come to rest.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestARefreshKeepsSalesAndReplacesTerms(t *testing.T) {
	s := &shelf{products: []seckill.Product{{ID: 2, Offered: 5, Epoch: 1}, {ID: 1}}}
	c := sale.NewCatalog(s)
	if c.Find(2) != nil {
		t.Fatal("a new catalogue knows something")
	}
	rig.Must(t, c.Refresh(t.Context()))
	on := c.Find(2)
	if all := c.All(); len(all) != 2 || all[0].ID != 1 || all[1] != on {
		t.Fatalf("the catalogue is %v", all)
	}
	on.Accepted.Add(1)
	for name, change := range map[string]func(*seckill.Product){
		"more is offered":  func(p *seckill.Product) { p.Offered++ },
		"a new epoch":      func(p *seckill.Product) { p.Epoch++ },
		"only a new price": func(p *seckill.Product) { p.PriceCents++ },
	} {
		raise(on)
		next := s.products[0]
		change(&next)
		s.products = []seckill.Product{next}
		rig.Must(t, c.Refresh(t.Context()))
		if on.Terms().PriceCents != next.PriceCents || c.Find(2) != on || c.Find(1) != nil {
			t.Fatalf("%s: the catalogue was not replaced", name)
		}
		if want := name == "only a new price"; on.SoldOut() != want {
			t.Errorf("%s: the flag stands: %v", name, on.SoldOut())
		}
	}
	if got := on.Requests()["accepted"]; got != 1 {
		t.Errorf("a refresh lost the counters: %d", got)
	}

	s.err = errors.New("down")
	if c.Refresh(t.Context()) == nil || c.Find(2) != on {
		t.Error("a refresh that failed must keep what is known")
	}
}

func TestAnswersAreCountedByCode(t *testing.T) {
	c := sale.NewCatalog(&shelf{products: []seckill.Product{{ID: 1}}})
	rig.Must(t, c.Refresh(t.Context()))
	on := c.Find(1)
	on.Accepted.Add(1)
	for i, code := range seckill.Codes() {
		for range i + 1 {
			on.CountRefused(code)
		}
	}
	on.CountRefused("unheard_of")
	got := on.Requests()
	if len(got) != len(seckill.Codes())+1 || got["accepted"] != 1 {
		t.Fatalf("requests are %v", got)
	}
	for i, code := range seckill.Codes() {
		if got[string(code)] != int64(i+1) {
			t.Errorf("%s is %d, want %d", code, got[string(code)], i+1)
		}
	}
}

func TestTheClockFollowsTheLedgerAndCountsSteps(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		var down atomic.Bool
		c := sale.NewClock(func(context.Context) (time.Time, error) {
			if down.Load() {
				return time.Time{}, errors.New("down")
			}
			return time.Now().Add(time.Duration(ahead.Load())), nil
		}, quiet)
		check := func(what string, want time.Duration, steps int64) {
			t.Helper()
			if got := time.Until(c.Now()); (got-want).Abs() > time.Millisecond || c.Steps() != steps {
				t.Errorf("%s: %s ahead, %d steps; want %s, %d", what, got, c.Steps(), want, steps)
			}
		}
		check("before the first measurement", 0, 0)
		ahead.Store(int64(3 * time.Second))
		rig.Must(t, c.Sync(t.Context()))
		check("the first measurement is no step", 3*time.Second, 0)
		ahead.Store(int64(3500 * time.Millisecond))
		rig.Must(t, c.Sync(t.Context()))
		check("half a second is a drift", 3500*time.Millisecond, 0)

		ahead.Store(int64(-time.Second))
		rig.Must(t, c.Sync(t.Context()))
		check("a step back", -time.Second, 1)
		down.Store(true)
		ahead.Store(int64(time.Hour))
		if c.Sync(t.Context()) == nil {
			t.Error("a ledger that is down was read")
		}
		check("a ledger that is down changes nothing", -time.Second, 1)
		down.Store(false)
		rig.Must(t, c.Sync(t.Context()))
		check("a step forward", time.Hour, 2)
	})
}

func TestMemoryKnowsBuyersByGroup(t *testing.T) {
	m := sale.NewMemory()
	m.Learn(1, "bob")
	for _, q := range []struct {
		group uint32
		buyer string
		want  bool
	}{{1, "bob", true}, {2, "bob", false}, {1, "Bob", false}, {1, "", false}} {
		if got := m.MayHold(q.group, []byte(q.buyer)); got != q.want {
			t.Errorf("%+v: %v", q, got)
		}
	}
}

// Lanes of epochs that are over must not beat for ever.
func TestLanesBeatForTheNewestEpochOnly(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	r.Buy(t, p, "a")
	r.ConfirmAll(t)
	old := p
	for range 3 {
		var err error
		p, err = r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
		rig.Must(t, err)
		r.Reserve(t, p, r.Claim(1, "a"))
	}
	_, err := r.Lanes.Do(t.Context(), ledger.ShardOf(&old, 0), ledger.Release{})
	var other *ledger.EpochError
	if !errors.As(err, &other) || other.Epoch != p.Epoch {
		t.Errorf("a late call was answered %v", err)
	}
	beats := r.Lanes.Beats(func(uint32) bool { return true })
	if len(beats) != 1 || beats[0].Shard.Epoch != p.Epoch {
		t.Errorf("beats are %+v", beats)
	}
}

func TestALaneThatAHeartbeatFinishesBeatsNoMore(t *testing.T) {
	for name, finish := range map[string]func(r *rig.Rig, p seckill.Product) error{
		"closed": func(r *rig.Rig, p seckill.Product) error { return r.Embedded.Close(t.Context(), ledger.ShardOf(&p, 0)) },
		"another epoch": func(r *rig.Rig, _ seckill.Product) error {
			_, err := r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rig.New(t)
			p, q := r.Open(t, 1, 5), r.Open(t, 2, 5)
			r.Buy(t, p, "a")
			r.Buy(t, q, "a")
			r.ConfirmAll(t)
			rig.Must(t, finish(r, p))
			for _, want := range []int{2, 1, 1} {
				beats := r.Lanes.Beats(func(uint32) bool { return true })
				if len(beats) != want {
					t.Fatalf("%d lanes beat, want %d", len(beats), want)
				}
				outcomes, err := r.Ledger.Heartbeat(t.Context(), beats)
				rig.Must(t, err)
				r.Lanes.Heard(beats, outcomes)
			}
		})
	}
}

func TestLanesOfSalesThatAreOverDoNotBeat(t *testing.T) {
	r := rig.New(t)
	p, q := r.Open(t, 1, 5), r.Open(t, 2, 5)
	r.Buy(t, p, "a")
	r.Buy(t, q, "a")
	calls := r.Ledger.Calls("Do")
	for range 1000 { // long enough to be dropped
		beats := r.Lanes.Beats(func(product uint32) bool { return product == 2 })
		if len(beats) != 1 || beats[0].Shard.Product != 2 {
			t.Fatalf("beats are %+v", beats)
		}
	}
	if beats := r.Lanes.Beats(func(uint32) bool { return true }); len(beats) != 1 {
		t.Errorf("%d lanes are kept, want 1", len(beats))
	}
	_, err := r.Lanes.Do(t.Context(), ledger.ShardOf(&p, 0), ledger.Release{})
	rig.Must(t, err) // a late release has a lane of its own
	if now := r.Ledger.Calls("Do"); now != calls+1 {
		t.Errorf("%d ledger calls, want 1", now-calls)
	}
}

func TestALaneThatIsFinishedIsReplaced(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	r.Buy(t, p, "a")
	rig.Must(t, r.Embedded.Close(t.Context(), ledger.ShardOf(&p, 0)))
	_, err := r.Lanes.Do(t.Context(), ledger.ShardOf(&p, 0), ledger.Release{})
	if !errors.Is(err, ledger.ErrClosed) || !sale.LaneFinished(err) {
		t.Fatalf("a closed shard answered %v", err)
	}
	_, err = r.Embedded.Open(t.Context(), ledger.ShardOf(&p, 0))
	rig.Must(t, err)
	r.Buy(t, p, "b")
}

func TestStatsAddUpOverLedgerQueueAndStore(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	sold(t, r, p)
	r.Time.Advance(3 * time.Second)
	rig.Must(t, r.Clock.Sync(t.Context()))
	s, err := r.Lifecycle.Stats(t.Context(), 1)
	rig.Must(t, err)
	if s.Offered != 5 || s.Epoch != 1 || s.State != "open" || s.Ledger.Available != 1 || s.Ledger.Reserved != 4 ||
		s.Store.Stock != 3 || s.Store.Pending != 2 || s.Store.Cancelled != 1 || s.Queue.Depth != 1 || s.Queue.OldestMS < 2900 {
		t.Errorf("stats are %+v", s)
	}
	_, err = r.Lifecycle.Stats(t.Context(), 9)
	rig.Refused(t, err, seckill.CodeNotFound)
	r.Ledger.FailBefore("Read", 1)
	_, err = r.Lifecycle.Stats(t.Context(), 1)
	rig.Refused(t, err, seckill.CodeBusy)
}

// rebuildNews is one call for a rebuilt ledger.
type rebuildNews struct {
	done bool
	seen uint64 // epoch that the catalogue shows
}

type rebuildFollower struct {
	sale.NoFollower
	catalog *sale.Catalog
	told    []rebuildNews
}

func (f *rebuildFollower) LedgerRebuilt(p *seckill.Product) {
	f.told = append(f.told, rebuildNews{!p.Rebuilding, f.catalog.Find(p.ID).Terms().Epoch})
}

// Who keeps what a ledger remembers hears of a new epoch before anybody sees its
// terms, and again when it is installed.
func TestARebuildIsToldBeforeItsTermsAreSeen(t *testing.T) {
	source := &shelf{}
	c := sale.NewCatalog(source)
	type word = rebuildNews
	follower := &rebuildFollower{catalog: c}
	c.Follow(follower)
	for _, step := range []struct {
		epoch      uint64
		rebuilding bool
		told       []word
	}{
		{0, false, nil}, // the first sight of it
		{1, true, nil},  // nobody can have bought before
		{1, false, []word{{true, 1}}},
		{1, false, nil},
		{1, true, nil},
		{2, true, []word{{false, 1}}},
		{2, false, []word{{true, 2}}},
		{2, false, nil},
		{3, false, []word{{true, 2}}}, // between two looks
	} {
		follower.told = nil
		source.products = []seckill.Product{
			{ID: 1, Group: 1, Strategy: seckill.StrategyAsync, Epoch: step.epoch, Rebuilding: step.rebuilding},
			{ID: 2, Group: 1, Strategy: seckill.StrategyDirect, Epoch: step.epoch, Rebuilding: step.rebuilding},
		}
		rig.Must(t, c.Refresh(t.Context()))
		if told := follower.told; !slices.Equal(told, step.told) {
			t.Errorf("at epoch %d, rebuilding %v: told %v, want %v", step.epoch, step.rebuilding, told, step.told)
		}
	}
}

// After a loss of everything each product asks for a reading.
func TestRefresh_CallersShareReadings(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		source := &slowShelf{}
		c := sale.NewCatalog(source)
		var asking sync.WaitGroup
		for range 500 {
			asking.Go(func() {
				if err := c.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		if source.readings > 2 {
			t.Errorf("%d readings for 500 callers at once", source.readings)
		}
		began, before := time.Now(), source.readings
		for time.Since(began) < time.Second {
			rig.Must(t, c.Refresh(t.Context()))
		}
		// 20 ms each, and 100 ms of rest.
		if readings := source.readings - before; readings > 9 {
			t.Errorf("%d readings in a second", readings)
		}
	})
}

// slowShelf takes as long for a reading as a store with thousands of products.
type slowShelf struct{ readings int }

func (*slowShelf) Product(context.Context, uint32) (seckill.Product, error) {
	return seckill.Product{}, seckill.Errorf(seckill.CodeNotFound, "no such product")
}

func (s *slowShelf) CurrentProducts(context.Context) ([]seckill.Product, error) {
	s.readings++
	<-time.After(20 * time.Millisecond)
	return []seckill.Product{{ID: 1}}, nil
}

func TestLook_ReadsAProductThatIsOverOncePerReading(t *testing.T) {
	over := seckill.Product{ID: 2, Name: "old", StartsAt: time.Now().Add(-72 * time.Hour), EndsAt: time.Now().Add(-48 * time.Hour)}
	fresh := seckill.Product{ID: 3, StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour)}
	source := &shelf{products: []seckill.Product{{ID: 1}}, past: []seckill.Product{over, fresh}}
	c := sale.NewCatalog(source)
	rig.Must(t, c.Refresh(t.Context()))
	look := func(id uint32) *sale.Sale {
		t.Helper()
		s, err := c.Look(t.Context(), id)
		rig.Must(t, err)
		return s
	}
	if look(1) != c.Find(1) || source.asked != 0 {
		t.Error("a current product is not that of the catalogue")
	}
	for range 3 {
		if s := look(2); s == nil || s.Terms().Name != "old" || c.Find(2) != nil {
			t.Fatalf("the product that is over is %v", s)
		}
		if look(4) != nil {
			t.Error("a product is there that is unknown")
		}
		if look(3) != nil {
			t.Error("a product is sold that the catalogue does not have yet")
		}
	}
	if source.asked != 3 {
		t.Errorf("the store was asked %d times for three products", source.asked)
	}
	source.past[0].Name = "renamed"
	rig.Must(t, c.Refresh(t.Context()))
	if s := look(2); s.Terms().Name != "renamed" {
		t.Error("a change is not seen after the next reading")
	}
}

func TestLook_AsksTheStoreForFewOfManyIDs(t *testing.T) {
	source := &shelf{}
	c := sale.NewCatalog(source)
	rig.Must(t, c.Refresh(t.Context()))
	busy := 0
	for id := range uint32(1000) {
		if _, err := c.Look(t.Context(), id+1); seckill.CodeBusy.In(err) {
			busy++
		}
	}
	if source.asked != 100 || busy != 900 {
		t.Errorf("the store was asked %d times, %d were told busy", source.asked, busy)
	}
}

func TestLook_VisitorsTakeNobodyElsesReads(t *testing.T) {
	over := seckill.Product{ID: 5000, EndsAt: time.Now().Add(-48 * time.Hour)}
	c := sale.NewCatalog(&shelf{past: []seckill.Product{over}})
	rig.Must(t, c.Refresh(t.Context()))
	busy := 0
	for id := range uint32(1000) {
		if _, err := c.LookForVisitor(t.Context(), id+1); seckill.CodeBusy.In(err) {
			busy++
		}
	}
	if busy != 900 {
		t.Errorf("%d of 1000 were told busy", busy)
	}
	if s, err := c.Look(t.Context(), over.ID); err != nil || s == nil {
		t.Errorf("an operator gets %v, %v", s, err)
	}
	rig.Must(t, c.Refresh(t.Context()))
	if s, err := c.LookForVisitor(t.Context(), over.ID); err != nil || s == nil {
		t.Errorf("a visitor gets %v, %v after the next reading", s, err)
	}
}

// heldShelf answers when it is let go.
type heldShelf struct {
	shelf
	asking chan struct{}
	letGo  chan struct{}
}

func (s *heldShelf) Product(ctx context.Context, id uint32) (seckill.Product, error) {
	s.asking <- struct{}{}
	<-s.letGo
	return s.shelf.Product(ctx, id)
}

func TestLook_ReadersOfOneIDShareARead(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		source := &heldShelf{asking: make(chan struct{}, 500), letGo: make(chan struct{})}
		source.past = []seckill.Product{{ID: 2, EndsAt: time.Now().Add(-48 * time.Hour)}}
		c := sale.NewCatalog(source)
		rig.Must(t, c.Refresh(t.Context()))
		var (
			reading sync.WaitGroup
			failed  atomic.Int64
		)
		first, leave := context.WithCancel(t.Context())
		look := func(ctx context.Context) {
			if s, err := c.LookForVisitor(ctx, 2); err != nil || s == nil {
				failed.Add(1)
			}
		}
		reading.Go(func() { _, _ = c.LookForVisitor(first, 2) })
		<-source.asking
		for range 499 {
			reading.Go(func() { look(t.Context()) })
		}
		synctest.Wait()
		leave() // whoever began the read fails nobody else
		close(source.letGo)
		reading.Wait()
		if source.asked != 1 || failed.Load() != 0 {
			t.Errorf("the store was asked %d times; %d of 499 got no answer", source.asked, failed.Load())
		}
	})
}
