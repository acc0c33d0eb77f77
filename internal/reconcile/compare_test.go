package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/queue"
	"seckill/internal/reconcile"
	"seckill/internal/store"
	"seckill/test/rig"
)

// keyed is a sale at rest of four buyers: three with a live order under a key,
// of whom b has a second order, and one whose order is dead and its key known.
func (o *office) keyed(t *testing.T, changes ...func(*seckill.Product)) (seckill.Product, map[string]seckill.OrderNo) {
	t.Helper()
	p := o.Open(t, 1, 20, append(changes, rig.Limit(3))...)
	nos := make(map[string]seckill.OrderNo)
	for _, c := range []struct {
		name, buyer string
		units       int
	}{{"a", "a", 1}, {"b", "b", 1}, {"second", "b", 2}, {"c", "c", 1}, {"dead", "d", 1}} {
		claim := o.Claim(1, c.buyer)
		claim.Key, claim.Quantity = "key-"+c.name, c.units
		nos[c.name] = claim.OrderNo
		if v := o.Reserve(t, p, claim); v[0].Code != ledger.VerdictAccepted {
			t.Fatalf("%s was not sold: %+v", c.name, v)
		}
	}
	o.ConfirmAll(t)
	_, err := o.Rig.Store.Cancel(t.Context(), nos["dead"], "test", rig.Operator)
	rig.Must(t, err)
	rig.Must(t, o.releaser().Round(t.Context()))
	return p, nos
}

// nowhere is the shard of what somebody has taken out of the marks.
const nowhere = -1

// forged is a ledger in whose marks somebody has written.
type forged struct {
	reconcile.Ledger
	forge func(shard int, m ledger.Mark) (ledger.Mark, int)
}

func (l *forged) Audit(ctx context.Context, shard ledger.Shard, each func(ledger.Mark)) (ledger.Audit, error) {
	var counted ledger.Audit
	for i := range 2 { // as many as there are shards: one may have been moved here
		from := shard
		from.Index = i
		got, err := l.Ledger.Audit(ctx, from, func(m ledger.Mark) {
			if m, to := l.forge(i, m); to == shard.Index {
				each(m)
			}
		})
		if err != nil {
			return got, err
		}
		if i == shard.Index {
			counted = got
		}
	}
	return counted, nil
}

func (l *forged) Held(ctx context.Context, shard ledger.Shard, buyer string) ([]ledger.Holding, error) {
	var held []ledger.Holding
	_, err := l.Audit(ctx, shard, func(m ledger.Mark) {
		if m.Buyer == buyer && m.Quantity > 0 {
			held = append(held, ledger.Holding{OrderNo: m.OrderNo, Quantity: m.Quantity, Key: m.Key})
		}
	})
	return held, err
}

// A mark that says something else than its order is found, though every sum is
// as it was, and the report names buyer and order. The store is the truth: a
// repair recovers the ledger from it.
func TestAForgedMarkIsFoundThoughAllSumsAreKept(t *testing.T) {
	for name, forge := range map[string]func(p *seckill.Product, m *ledger.Mark, shard *int){
		"another buyer's": func(p *seckill.Product, m *ledger.Mark, shard *int) {
			m.Buyer = "mallory"
			*shard = seckill.HomeShard(p, "mallory")
		},
		"another number": func(_ *seckill.Product, m *ledger.Mark, _ *int) { m.OrderNo[15] ^= 1 },
		"another key":    func(_ *seckill.Product, m *ledger.Mark, _ *int) { m.Key = "stolen" },
		"no key":         func(_ *seckill.Product, m *ledger.Mark, _ *int) { m.Key = "" },
		"more units":     func(_ *seckill.Product, m *ledger.Mark, _ *int) { m.Quantity++ },
		"another shard":  func(_ *seckill.Product, _ *ledger.Mark, shard *int) { *shard = 1 - *shard },
		"taken out":      func(_ *seckill.Product, _ *ledger.Mark, shard *int) { *shard = nowhere },
		"released":       func(_ *seckill.Product, m *ledger.Mark, _ *int) { m.Quantity = 0 },
	} {
		for _, of := range []string{"a", "second", "dead"} {
			if of == "dead" && (name == "more units" || name == "released") {
				continue // a live order of nobody's, which the count sees; or nothing
			}
			t.Run(name+", "+of, func(t *testing.T) {
				o := newOffice(t)
				p, nos := o.keyed(t, rig.Shards(2))
				balanced(t, o.run(t, false))
				under := &forged{Ledger: o.Rig.Ledger, forge: func(shard int, m ledger.Mark) (ledger.Mark, int) {
					if m.OrderNo == nos[of] && o.Stored(t, 1).Epoch == p.Epoch { // a recovery undoes it
						forge(&p, &m, &shard)
					}
					return m, shard
				}}
				o.Reconciler.Ledger = under
				found := o.run(t, false)
				if got := promises(found); strings.Join(got, " ") != "I3" {
					t.Fatalf("found %v: %+v", got, found)
				}
				forgedNo := ledger.Mark{OrderNo: nos[of]}
				forge(&p, &forgedNo, new(int))
				for _, v := range found.Violations {
					if !strings.Contains(v.Detail, nos[of].String()) && !strings.Contains(v.Detail, forgedNo.OrderNo.String()) {
						t.Errorf("does not say which order: %+v", v)
					}
				}
				mended := o.run(t, true)
				balanced(t, mended)
				if len(mended.Repaired) != 1 || o.Stored(t, 1).Epoch != p.Epoch+1 {
					t.Errorf("repaired %v, at epoch %d", mended.Repaired, o.Stored(t, 1).Epoch)
				}
			})
		}
	}
}

// Of who has more dead orders than are remembered, the oldest are forgotten at a
// rebuild, and that is no finding.
func TestKeysThatARebuildForgetsAreNoFinding(t *testing.T) {
	o := newOffice(t)
	const atOnce = 3
	p := o.Open(t, 1, 10, rig.Limit(atOnce))
	dead := 0
	for ; dead <= ledger.MaxReturned; dead += atOnce {
		var claims []seckill.Claim
		for i := range atOnce {
			claim := o.Claim(1, "a")
			claim.Key = fmt.Sprint("key-", dead+i)
			claims = append(claims, claim)
		}
		o.Reserve(t, p, claims...)
		o.ConfirmAll(t)
		for _, claim := range claims {
			_, err := o.Rig.Store.Cancel(t.Context(), claim.OrderNo, "test", rig.Operator)
			rig.Must(t, err)
		}
		rig.Must(t, o.releaser().Round(t.Context()))
	}
	if got := o.run(t, false).Figures["orders_compared"]; got != int64(dead) {
		t.Fatalf("%d keys are known of %d", got, dead)
	}
	_, err := o.Desk.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	report := o.run(t, false)
	balanced(t, report)
	if got := report.Figures["orders_compared"]; got != ledger.MaxReturned {
		t.Errorf("%d keys are known", got)
	}
}

// A row that somebody altered is found in the same way.
func TestAnAlteredOrderIsFoundThoughAllSumsAreKept(t *testing.T) {
	for name, statements := range map[string][]string{
		"given to another buyer with its record": {
			`UPDATE tb_seckill_order SET user_id = CAST('mallory' AS BLOB) WHERE user_id = CAST('c' AS BLOB)`,
			`UPDATE tb_user_seckill SET user_id = CAST('mallory' AS BLOB) WHERE user_id = CAST('c' AS BLOB)`,
		},
		"without its key":          {`UPDATE tb_seckill_order SET idem_key = NULL WHERE user_id = CAST('c' AS BLOB)`},
		"under another key":        {`UPDATE tb_seckill_order SET idem_key = CAST('stolen' AS BLOB) WHERE user_id = CAST('c' AS BLOB)`},
		"a dead one's key altered": {`UPDATE tb_seckill_order SET idem_key = CAST('stolen' AS BLOB) WHERE user_id = CAST('d' AS BLOB)`},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			_, _ = o.keyed(t)
			balanced(t, o.run(t, false))
			for _, s := range statements {
				o.Exec(t, s)
			}
			if found := o.run(t, false); strings.Join(promises(found), " ") != "I3" {
				t.Errorf("%+v", found)
			}
		})
	}
}

// interleaved is a ledger and a store around which things happen: after the
// rows were read, before a mark is read again, and after.
type interleaved struct {
	reconcile.Ledger
	reconcile.Store
	rowsRead, beforeHeld, afterHeld func()
	judged                          int
}

func (i *interleaved) WalkOrders(ctx context.Context, id uint32, each func(store.Trace) error) error {
	err := i.Store.WalkOrders(ctx, id, each)
	i.rowsRead()
	return err
}

func (i *interleaved) Held(ctx context.Context, shard ledger.Shard, buyer string) ([]ledger.Holding, error) {
	i.judged++
	i.beforeHeld()
	defer i.afterHeld()
	return i.Ledger.Held(ctx, shard, buyer)
}

// park has the store park what is queued, as a worker that cannot confirm it.
func (o *office) park(t *testing.T) {
	t.Helper()
	consumer, err := o.Rig.Queue.Consumer(t.Context(), "parking")
	rig.Must(t, err)
	defer consumer.Close(t.Context())
	got, err := consumer.Receive(t.Context(), 10)
	rig.Must(t, err)
	for _, d := range got {
		req := store.ConfirmRequest{ProductID: 1, Witness: []queue.ID{d.ID}, ExpireAfter: time.Hour}
		for _, item := range store.Items(&d.Entry) {
			req.Park = append(req.Park, store.Parked{Item: item, Reason: "test", Delay: time.Minute})
		}
		_, err := o.Rig.Store.Confirm(t.Context(), req)
		rig.Must(t, err)
		rig.Must(t, consumer.Ack(t.Context(), []queue.ID{d.ID}, d.ID))
	}
}

// unpark confirms what was parked.
func (o *office) unpark(t *testing.T) {
	t.Helper()
	letters, err := o.Rig.Store.Letters(t.Context(), store.LetterFilter{ProductID: 1, Limit: 10})
	rig.Must(t, err)
	for _, l := range letters {
		item := l.Item
		item.LetterID = l.ID
		_, err := o.Rig.Store.Confirm(t.Context(), store.ConfirmRequest{ProductID: 1, Items: []store.Item{item}, ExpireAfter: time.Hour})
		rig.Must(t, err)
	}
}

// Whatever happens between the readings: what the engine does is no drift.
func TestNothingThatTheEngineDoesMeanwhileLooksForged(t *testing.T) {
	nothing := func(*testing.T, *office, seckill.Product) {}
	buy := func(t *testing.T, o *office, p seckill.Product) { o.Buy(t, p, "x") }
	buyThere := func(t *testing.T, o *office, _ seckill.Product) { o.Buy(t, o.Stored(t, 1), "x") }
	confirm := func(t *testing.T, o *office, _ seckill.Product) { o.ConfirmAll(t) }
	park := func(t *testing.T, o *office, _ seckill.Product) { o.park(t) }
	unpark := func(t *testing.T, o *office, _ seckill.Product) { o.unpark(t) }
	cancel := func(t *testing.T, o *office, _ seckill.Product) {
		pending := seckill.OrderPending
		orders, err := o.Rig.Store.SearchOrders(t.Context(), store.OrderFilter{ProductID: 1, Status: &pending, Limit: 10})
		rig.Must(t, err)
		for _, order := range orders {
			_, err := o.Rig.Store.Cancel(t.Context(), order.OrderNo, "test", rig.Operator)
			rig.Must(t, err)
		}
	}
	release := func(t *testing.T, o *office, _ seckill.Product) { rig.Must(t, o.releaser().Round(t.Context())) }
	recover := func(t *testing.T, o *office, _ seckill.Product) {
		_, err := o.Desk.Recover(t.Context(), 1, rig.Operator)
		rig.Must(t, err)
	}
	then := func(steps ...func(*testing.T, *office, seckill.Product)) func(*testing.T, *office, seckill.Product) {
		return func(t *testing.T, o *office, p seckill.Product) {
			for _, step := range steps {
				step(t, o, p)
			}
		}
	}
	for name, c := range map[string]struct {
		rowsRead, beforeHeld, afterHeld func(*testing.T, *office, seckill.Product)
		judged                          bool // a mark is read again
	}{
		"nothing":                           {nothing, nothing, nothing, false},
		"bought":                            {buy, nothing, nothing, true},
		"bought, then confirmed":            {buy, nothing, confirm, true},
		"bought, and confirmed":             {buy, confirm, nothing, true},
		"bought and confirmed":              {then(buy, confirm), nothing, nothing, false},
		"bought, confirmed and dead":        {then(buy, confirm), cancel, release, false},
		"bought, and dead":                  {buy, then(confirm, cancel, release), nothing, true},
		"bought, then dead":                 {buy, nothing, then(confirm, cancel, release), true},
		"bought, parked":                    {then(buy, park), nothing, nothing, true},
		"bought, parked, then confirmed":    {then(buy, park), nothing, unpark, true},
		"bought, then parked":               {buy, nothing, park, true},
		"bought, then parked and confirmed": {buy, park, unpark, true},
		"cancelled":                         {cancel, nothing, nothing, false},
		"cancelled and released":            {then(cancel, release), nothing, nothing, false},
		"a rebuild":                         {recover, nothing, nothing, false},
		"a rebuild after a purchase":        {then(buy, recover), nothing, nothing, false},
		"a rebuild, when marks are judged":  {buy, recover, nothing, true},
		"a rebuild, when marks were judged": {buy, nothing, recover, true},
		"a purchase after a rebuild":        {then(recover, buyThere), nothing, confirm, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			p, _ := o.keyed(t)
			at := &interleaved{Ledger: o.Rig.Ledger, Store: o.Rig.Store}
			once := func(step func(*testing.T, *office, seckill.Product)) func() {
				done := false
				return func() {
					if !done {
						done = true
						step(t, o, p)
					}
				}
			}
			at.rowsRead, at.beforeHeld, at.afterHeld = once(c.rowsRead), once(c.beforeHeld), once(c.afterHeld)
			o.Reconciler.Ledger, o.Reconciler.Store = at, at
			report := o.run(t, false)
			balanced(t, report)
			if (at.judged > 0) != c.judged {
				t.Errorf("%d marks were read again", at.judged)
			}
		})
	}
}

// A report says how many orders were compared.
func TestAReportSaysHowManyOrdersWereCompared(t *testing.T) {
	o := newOffice(t)
	o.keyed(t)
	if got := o.run(t, false).Figures["orders_compared"]; got != 5 {
		t.Errorf("%d orders compared, want 4 live and 1 dead", got)
	}
}
