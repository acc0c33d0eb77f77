package storesql

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
)

func TestConfirm_FewStatementsPerBatch(t *testing.T) {
	s := openNew(t)
	p := sale(t, s, 10_000)
	req := request(&p, claims(&p, 1000))
	before := embedded(s).writer.ran.Load()
	if _, err := s.Confirm(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	// Seven kinds of rows are read or written. Each takes 10 statements: 1000/128 chunks, and
	// powers of two for the rest. A few more statements come per batch.
	const most = 7*10 + 5
	if n := embedded(s).writer.ran.Load() - before; n > most {
		t.Errorf("%d statements for 1000 claims, want at most %d", n, most)
	}
}

func TestExpireOrders_FewStatements(t *testing.T) {
	s := openNew(t)
	p := sale(t, s, 10_000)
	items := claims(&p, 500)
	req := request(&p, items)
	req.ExpireAfter = -time.Second
	if _, err := s.Confirm(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	nos := make([]seckill.OrderNo, len(items))
	for i := range items {
		nos[i] = items[i].Claim.OrderNo
	}
	before := embedded(s).writer.ran.Load()
	if expired, err := s.ExpireOrders(t.Context(), nos); err != nil || len(expired) != len(nos) {
		t.Fatalf("%d expired: %v", len(expired), err)
	}
	// Seven kinds of rows, and each takes 8 statements: 500/128 chunks, and powers of two for
	// the rest. A few more come per batch.
	const most = 7*8 + 10
	if n := embedded(s).writer.ran.Load() - before; n > most {
		t.Errorf("%d statements for %d orders, want at most %d", n, len(nos), most)
	}
}

func TestChunks_FewSizesAndAllRows(t *testing.T) {
	for rows := range 3*sqliteDialect.chunkRows + 2 {
		args := make([]any, rows*3)
		for i := range args {
			args[i] = i
		}
		var joined []any
		for chunk := range sqliteDialect.chunks(args, 3) {
			n := len(chunk) / 3
			if n > sqliteDialect.chunkRows || n&(n-1) != 0 || len(chunk)%3 != 0 {
				t.Fatalf("a chunk of %d rows", n)
			}
			joined = append(joined, chunk...)
		}
		if len(args) > 0 && !reflect.DeepEqual(joined, args) {
			t.Fatalf("%d rows came out as %d values", rows, len(joined))
		}
	}
}

// bump changes the product's version after it was read.
func bump(times int) func(context.Context, *session, uint32) error {
	return func(ctx context.Context, tx *session, id uint32) error {
		if times--; times < 0 {
			return nil
		}
		_, err := tx.exec(ctx, `UPDATE tb_seckill_product SET version = version + 1 WHERE id = ?`, id)
		return err
	}
}

func TestChange_RetriesVersionConflictThreeTimes(t *testing.T) {
	everyDatabase(t, aLostVersionIsReadAgainThreeTimes)
}

func aLostVersionIsReadAgainThreeTimes(t *testing.T, s *Store) {
	p := sale(t, s, 100)
	items := claims(&p, 1)
	if _, err := s.Confirm(t.Context(), request(&p, items)); err != nil {
		t.Fatal(err)
	}
	no := items[0].Claim.OrderNo
	epoch := func() uint64 {
		seen, err := s.Product(t.Context(), p.ID)
		if err != nil {
			t.Fatal(err)
		}
		return seen.Epoch
	}
	changes := map[string]func() error{
		"confirm": func() error { _, err := s.Confirm(t.Context(), request(&p, claims(&p, 2))); return err },
		"cancel":  func() error { _, err := s.Cancel(t.Context(), no, "", operator); return err },
		"epoch": func() error {
			_, err := s.OpenEpoch(t.Context(), p.ID, epoch(), 0, operator, func(seckill.Order) error { return nil })
			return err
		},
		"sell": func() error {
			claim := claims(&p, 1)[0].Claim
			_, err := s.Sell(t.Context(), store.SellRequest{ProductID: p.ID, Epoch: epoch(), Claims: []seckill.Claim{claim}})
			return err
		},
		"takeover": func() error { _, err := s.TakeOver(t.Context(), p.ID, epoch(), operator); return err },
		"open":     func() error { _, err := s.OpenStore(t.Context(), p.ID, epoch()); return err },
		"stock": func() error {
			_, err := s.BeginStockChange(t.Context(), store.StockChange{ID: "c", ProductID: p.ID, Delta: 1})
			return err
		},
	}
	for _, name := range []string{"confirm", "cancel", "stock", "epoch", "takeover", "open", "sell"} {
		t.Run(name, func(t *testing.T) {
			before, err := s.Figures(t.Context(), p.ID)
			if err != nil {
				t.Fatal(err)
			}
			s.afterRead = bump(maxRereads + 1)
			if err := changes[name](); !errors.Is(err, store.ErrConflict) {
				t.Fatalf("lost %d times: %v, want ErrConflict", maxRereads+1, err)
			}
			after, err := s.Figures(t.Context(), p.ID)
			if err != nil || !reflect.DeepEqual(before, after) {
				t.Errorf("a conflicting change had an effect: %+v, was %+v (%v)", after, before, err)
			}
			s.afterRead = bump(maxRereads)
			if err := changes[name](); err != nil {
				t.Errorf("lost %d times: %v", maxRereads, err)
			}
			s.afterRead = nil
		})
	}
	if findings, err := s.CheckStockLog(t.Context(), p.ID, 10); err != nil || len(findings) != 0 {
		t.Errorf("stock log: %v %v", findings, err)
	}
}

func TestBuyerRecord_HasTheNewestLiveOrder(t *testing.T) {
	everyDatabase(t, buyerRecordNamesTheNewestLiveOrder)
}

func buyerRecordNamesTheNewestLiveOrder(t *testing.T, s *Store) {
	p := sale(t, s, 10, func(p *seckill.Product) { p.PerUserLimit = 3 })
	items := claims(&p, 3)
	for i := range items {
		items[i].Claim.Buyer, items[i].Limit = "buyer", 3
	}
	if _, err := s.Confirm(t.Context(), request(&p, items)); err != nil {
		t.Fatal(err)
	}
	record := func() (no string, units int) {
		err := s.read(t.Context(), "record", func(ctx context.Context, r *session) error {
			_, err := r.row(ctx, `SELECT order_no, quantity FROM tb_user_seckill WHERE product_id = ? AND user_id = ?`,
				[]any{p.Group, buyerBytes("buyer")}, &no, &units)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return no, units
	}
	want := func(no string, units int) {
		t.Helper()
		if gotNo, gotUnits := record(); gotNo != no || gotUnits != units {
			t.Errorf("the record is %d units, newest %q; want %d, %q", gotUnits, gotNo, units, no)
		}
	}
	want(items[2].Claim.OrderNo.String(), 3)
	for _, step := range []struct{ cancel, newest, units int }{{2, 1, 2}, {0, 1, 1}} {
		if _, err := s.Cancel(t.Context(), items[step.cancel].Claim.OrderNo, "", operator); err != nil {
			t.Fatal(err)
		}
		want(items[step.newest].Claim.OrderNo.String(), step.units)
	}
	if _, err := s.Cancel(t.Context(), items[1].Claim.OrderNo, "", operator); err != nil {
		t.Fatal(err)
	}
	want("", 0)
}

func TestConfirm_RefusesClaimOfAnotherProductOrGroup(t *testing.T) {
	everyDatabase(t, aClaimOfAnotherProductOrGroupIsAnErrorOfTheData)
}

func aClaimOfAnotherProductOrGroupIsAnErrorOfTheData(t *testing.T, s *Store) {
	p := sale(t, s, 10)
	for name, edit := range map[string]func(*store.Item){
		"product": func(i *store.Item) { i.ProductID++ },
		"group":   func(i *store.Item) { i.Group++ },
	} {
		items := claims(&p, 2)
		edit(&items[1])
		_, err := s.Confirm(t.Context(), request(&p, items))
		var refusal *seckill.Error
		if err == nil || errors.As(err, &refusal) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("another %s: %v, want an error of the data", name, err)
		}
	}
}
