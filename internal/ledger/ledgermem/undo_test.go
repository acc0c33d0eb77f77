package ledgermem

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"seckill"
	"seckill/internal/ledger"
)

var errDisk = errors.New("no space left on device")

// A failed commit leaves no trace, whatever calls the round had.
func TestCommit_FailedIsUndoneExactly(t *testing.T) {
	t.Parallel()
	l := openUnstarted(t, newPath(t))
	c := newCrowd(11)
	failed := 0
	for i := range 400 {
		before := dump(l.cur.state, true)
		fails := c.rand.IntN(3) == 0
		l.journal.beforeCommit = nil
		if fails {
			l.journal.beforeCommit = func() error { return errDisk }
		}
		var steps []func(*round) error
		for range 1 + c.rand.IntN(6) {
			steps = append(steps, c.step())
		}
		last := l.cur.base
		err := drive(l, steps...)
		switch {
		case err == nil:
			c.look(l.cur.state)
			continue
		case !fails || !errors.Is(err, ledger.ErrNotExecuted) || !errors.Is(err, errDisk):
			t.Fatalf("round %d: %v", i, err)
		}
		failed++
		if after := dump(l.cur.state, true); after != before || l.cur.base != last {
			t.Fatalf("round %d was not undone:\nbefore\n%s\nafter\n%s", i, before, after)
		}
	}
	if failed < 20 {
		t.Fatalf("only %d rounds failed", failed)
	}
	sameAfterCrash(t, l)
}

func TestFailedInstall_LeavesNoShardAndNoGroup(t *testing.T) {
	t.Parallel()
	l := openUnstarted(t, newPath(t))
	l.journal.beforeCommit = func() error { return errDisk }
	a := ledger.Allotment{Shard: ledger.Shard{Product: 1, Group: 1, Epoch: 1}, Available: 10, Limit: 1}
	if err := drive(l, func(r *round) error { return installIn(r, a) }); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	if s := l.cur.state; len(s.shards) != 0 || len(s.groups) != 0 {
		t.Errorf("%d shards and %d groups are left", len(s.shards), len(s.groups))
	}
}

// Orders of one buyer that are released together change one copy of the mark. A failed commit
// must restore the mark before it.
func TestRelease_UndoneTogetherForOneBuyer(t *testing.T) {
	t.Parallel()
	l := openUnstarted(t, newPath(t))
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	installUnstarted(t, l, ledger.Allotment{Shard: shard, Available: 1000, Limit: 1000})
	number, rnd := uint64(0), newCrowd(5).rand
	call := func(w ledger.Write) (verdicts []ledger.Verdict, err error) {
		number++
		req := ledger.Request{Shard: shard, Call: ledger.Call{Number: number, Seen: number - 1}, Write: w}
		err = drive(l, func(r *round) error {
			reply, err := r.do(&req)
			verdicts = reply.Result.Verdicts
			return err
		})
		if err != nil {
			number--
		}
		return verdicts, err
	}
	for made := 0; made < 400; made += 8 {
		batch := claims(made, 8)
		var w ledger.Release
		for i := range batch {
			batch[i].Buyer = fmt.Sprint("buyer-", rnd.IntN(2))
			if rnd.IntN(2) == 0 {
				batch[i].Key = ""
			}
			w.Orders = append(w.Orders, ledger.ReleaseOrder{OrderNo: batch[i].OrderNo, Buyer: batch[i].Buyer})
		}
		if _, err := call(ledger.Reserve{Claims: batch}); err != nil {
			t.Fatal(err)
		}
		rnd.Shuffle(len(w.Orders), func(i, j int) { w.Orders[i], w.Orders[j] = w.Orders[j], w.Orders[i] })
		w.Orders = w.Orders[:4+rnd.IntN(5)]
		before := dump(l.cur.state, true)
		l.journal.beforeCommit = func() error { return errDisk }
		_, err := call(w)
		l.journal.beforeCommit = nil
		if after := dump(l.cur.state, true); !errors.Is(err, ledger.ErrNotExecuted) || after != before {
			t.Fatalf("%v; before\n%s\nafter\n%s", err, before, after)
		}
		verdicts, err := call(w)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range verdicts {
			o := w.Orders[i]
			m := l.cur.state.shards[keyOf(shard)].mark(o.Buyer)
			if v.Code != ledger.VerdictReleased || m.find(o.OrderNo) >= 0 {
				t.Fatalf("order %s: verdict %d", o.OrderNo, v.Code)
			}
		}
	}
	sameAfterCrash(t, l)
	sh := l.cur.state.shards[keyOf(shard)]
	live := int64(0)
	for i := range sh.stripes {
		for _, m := range sh.stripes[i].marks {
			live += m.liveUnits()
		}
	}
	if live != sh.marked || live == 0 {
		t.Fatalf("marks hold %d units, the shard counts %d", live, sh.marked)
	}
}

// sameAfterCrash loads the file and compares it with memory.
func sameAfterCrash(t *testing.T, l *Ledger) {
	t.Helper()
	want := dump(l.cur.state, false)
	again := openUnstarted(t, crash(t, l))
	if got := dump(again.cur.state, false); got != want {
		t.Fatalf("loaded\n%s\nwant\n%s", got, want)
	}
	if again.cur.base != l.cur.base {
		t.Fatalf("last row %d, want %d", again.cur.base, l.cur.base)
	}
	if got, want := again.outbox.stats(0), l.outbox.stats(0); got != want {
		t.Fatalf("outbox %+v, want %+v", got, want)
	}
}

// After any mixture of calls, interrupted cycles and crashes, the journal loads the same state.
func TestCompact_JournalLoadsTheSameState(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		l := openUnstarted(t, newPath(t))
		c := newCrowd(seed)
		for range 40 {
			for range 1 + c.rand.IntN(6) {
				if err := drive(l, c.step(), c.step()); err != nil {
					t.Fatal(err)
				}
				c.look(l.cur.state)
			}
			compactBetween(t, l, c)
		}
		sameAfterCrash(t, l)
	}
}

// compactBetween writes some pieces, with other calls in the same rounds, and sometimes ends
// the cycle.
func compactBetween(t *testing.T, l *Ledger, c *crowd) {
	t.Helper()
	cy := &cycle{Ledger: l}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(drive(l, c.step(), func(r *round) error {
		cy.newFloor = r.lastSeq()
		for _, sh := range r.state.shards {
			cy.shards = append(cy.shards, sh)
		}
		return nil
	}, c.step()))
	for _, sh := range cy.shards {
		for i := range sh.stripes {
			if c.rand.IntN(12) == 0 {
				sameAfterCrash(t, l)
				return // killed in the middle of a cycle
			}
			must(drive(l, c.step(), func(r *round) error {
				if i < len(sh.stripes) {
					cy.saveStripe(r, sh, i)
				}
				return nil
			}, c.step()))
		}
		must(drive(l, func(r *round) error { cy.saveFigures(r, sh); return nil }))
	}
	c.look(l.cur.state)
	chore := func(run chore) func(*round) error {
		return func(r *round) error {
			r.chores = append(r.chores, run)
			return nil
		}
	}
	must(drive(l, chore(cy.raiseFloor)))
	l.floor.Store(cy.newFloor)
	if c.rand.IntN(2) == 0 {
		sameAfterCrash(t, l)
	}
	from := int64(0)
	for range 2 {
		must(drive(l, c.step(), chore(func(ctx context.Context, conn *sql.Conn) (err error) {
			from, _, _, err = trimSome(ctx, conn, from)
			return err
		})))
	}
}

func TestFullDisk_FailsUntilSpaceReturns(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	l := start(t, path, Options{})
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	install(t, l, shard, 1_000_000, 1_000_000)
	// The limit belongs to the writing connection. It ends when that is replaced after a
	// failure, or here by hand.
	setPages := func(limit int) {
		t.Helper()
		if err := l.submit(t.Context(), func(*round) error {
			if l.journal.w == nil {
				return nil
			}
			return l.journal.w.conn.QueryRowContext(t.Context(), fmt.Sprint("PRAGMA max_page_count = ", limit)).Scan(&limit)
		}); err != nil {
			t.Fatal(err)
		}
	}
	number, accepted, full := uint64(0), int64(0), 0
	reserve := func() error {
		reply, err := l.Do(t.Context(), ledger.Request{
			Shard: shard, Call: ledger.Call{Number: number + 1, Seen: number},
			Write: ledger.Reserve{Claims: claims(int(number)*64+full*1e6, 64)},
		})
		if err != nil {
			return err
		}
		if reply.Outcome != ledger.OutcomeApplied {
			return fmt.Errorf("outcome %d", reply.Outcome)
		}
		number++
		accepted += int64(len(reply.Result.Verdicts))
		return nil
	}
	for full < 3 {
		setPages(1) // SQLite raises it to the file's present size
		err := reserve()
		for err == nil {
			err = reserve()
		}
		if !errors.Is(err, ledger.ErrNotExecuted) {
			t.Fatalf("a full disk gave %v", err)
		}
		full++
		setPages(1 << 20)
		if err := reserve(); err != nil { // the same number goes again
			t.Fatalf("after space returned: %v", err)
		}
	}
	f, err := l.Read(t.Context(), shard)
	if err != nil || f.Marked != accepted {
		t.Fatalf("marked %d, accepted %d, %v", f.Marked, accepted, err)
	}
	want := liveDump(t, l)
	if got := liveDump(t, start(t, crash(t, l), Options{})); got != want {
		t.Fatal("the journal lacks answered calls")
	}
}

func claims(from, n int) []seckill.Claim {
	out := make([]seckill.Claim, n)
	for i := range out {
		out[i] = seckill.Claim{
			OrderNo: seckill.NewOrderNo(seckill.OrderNo{}.Time(), 1, uint64(from+i+1)),
			Buyer:   fmt.Sprintf("buyer-%06d", from+i), Quantity: 1, Key: fmt.Sprintf("key-%012d", from+i),
		}
		out[i].OrderNo[0] = 1
	}
	return out
}

func install(t testing.TB, l *Ledger, shard ledger.Shard, available int64, limit int, marks ...ledger.Mark) {
	t.Helper()
	seq := func(yield func(ledger.Mark, error) bool) {
		for _, m := range marks {
			if !yield(m, nil) {
				return
			}
		}
	}
	epoch, err := l.Install(t.Context(), ledger.Allotment{Shard: shard, Available: available, Limit: limit}, seq)
	if err != nil || epoch != shard.Epoch {
		t.Fatalf("install: %d, %v", epoch, err)
	}
	if ok, err := l.Open(t.Context(), shard); err != nil || !ok {
		t.Fatalf("open: %v, %v", ok, err)
	}
}

// An instruction whose commit failed is not kept, and does not change the state.
func TestInstruct_FailedCommitIsUndone(t *testing.T) {
	t.Parallel()
	l := openUnstarted(t, newPath(t))
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	installUnstarted(t, l, ledger.Allotment{Shard: shard, Available: 10, Limit: 1})
	never := ledger.Shard{Product: 2, Group: 1}
	l.journal.beforeCommit = func() error { return errDisk }
	err := drive(l, func(r *round) error {
		for _, at := range []ledger.Shard{shard, never} {
			r.instruct(at, seckill.Instruction{ID: "word", State: seckill.SalePaused})
		}
		return nil
	})
	if !errors.Is(err, errDisk) {
		t.Fatalf("the commit did not fail: %v", err)
	}
	l.journal.beforeCommit = nil
	if sh := l.cur.state.shards[keyOf(shard)]; sh.state != seckill.SaleOpen || sh.instruction.ID != "" {
		t.Errorf("the shard has state %d and instruction %+v", sh.state, sh.instruction)
	}
	if sh := l.cur.state.shards[keyOf(never)]; sh != nil {
		t.Errorf("a shard is left: %+v", sh)
	}
}

// A state whose commit failed must be accepted again, and so must an older one.
func TestSetState_FailedCommitLeavesTheVersion(t *testing.T) {
	t.Parallel()
	l := openUnstarted(t, newPath(t))
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	installUnstarted(t, l, ledger.Allotment{Shard: shard, Available: 10, Limit: 1})
	set := func(state seckill.SaleState, version uint64) error {
		return drive(l, func(r *round) error {
			r.setState(r.state.shards[keyOf(shard)], state, version)
			return nil
		})
	}
	l.journal.beforeCommit = func() error { return errDisk }
	if err := set(seckill.SalePaused, 9); !errors.Is(err, errDisk) {
		t.Fatalf("the commit did not fail: %v", err)
	}
	l.journal.beforeCommit = nil
	if err := set(seckill.SalePaused, 8); err != nil {
		t.Fatal(err)
	}
	if sh := l.cur.state.shards[keyOf(shard)]; sh.state != seckill.SalePaused || sh.stateVersion != 8 {
		t.Errorf("the shard has state %d of version %d", sh.state, sh.stateVersion)
	}
}
