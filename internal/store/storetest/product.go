package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
)

var productTests = []test{
	{"a created product has version 1, epoch 0, and offers its stock", createdProduct},
	{"a product keeps every field at its greatest length", longProduct},
	{"a product without stock has an empty, valid stock log", func(t *testing.T, s *suite) {
		p := s.create(t, stock(0))
		equal(t, "stock", p.Stock, 0)
	}},
	{"creating writes the audit", func(t *testing.T, s *suite) {
		draft := s.draft(t)
		s.wantAudited(t, draft.ID, func() {
			_, err := s.Store.CreateProduct(t.Context(), draft, operator)
			must(t, err)
		})
	}},
	{"an id that exists is wrong_state and changes nothing", func(t *testing.T, s *suite) {
		p := s.create(t)
		again := s.draft(t)
		again.ID, again.Group, again.Name, again.Stock = p.ID, p.ID, "another", 99
		s.wantUnchanged(t, p.ID, func() {
			_, err := s.Store.CreateProduct(t.Context(), again, operator)
			wantCode(t, err, seckill.CodeWrongState)
		})
	}},
	{"a member of a limit group has its limit and shards", groupMembers},
	{"several shards have a secret key, which a limit group shares", shardKeys},
	{"an unknown product is not_found", unknownProduct},
	{"products lists every product", func(t *testing.T, s *suite) {
		a, b := s.create(t), s.create(t)
		products, err := s.Store.Products(t.Context(), store.ProductFilter{Limit: all})
		must(t, err)
		found := map[uint32]seckill.Product{}
		for _, p := range products {
			found[p.ID] = p
		}
		equal(t, "first", found[a.ID], a)
		equal(t, "second", found[b.ID], b)
	}},
	{"products are listed by id, page by page", func(t *testing.T, s *suite) {
		a, b, c := s.create(t), s.create(t), s.create(t)
		page, err := s.Store.Products(t.Context(), store.ProductFilter{After: a.ID, Limit: 2})
		must(t, err)
		equal(t, "page", page, []seckill.Product{b, c})
	}},
	{"a product is current until CurrentFor after its end", currentProducts},
	{"a product that the store took over stays current after its end", func(t *testing.T, s *suite) {
		p := s.takenOver(t)
		s.endedAgo(t, p, store.CurrentFor+time.Minute)
		equal(t, "current", s.current(t, p), true)
	}},
	{"a product is current with another of its limit group", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		member := s.preheated(t, func(m *seckill.Product) { m.Group = p.ID })
		s.endedAgo(t, p, store.CurrentFor+time.Minute)
		equal(t, "current", s.current(t, p), true)
		s.endedAgo(t, member, store.CurrentFor+time.Minute)
		equal(t, "current when both are over", s.current(t, p), false)
	}},
	{"before the first preheat every field can be patched", patchBefore},
	{"after the first preheat limit and currency are fixed", patchAfter},
	{"after the end the times are fixed", patchEnded},
	{"a patch must leave a valid product", patchUnsound},
	{"a patch of nothing changes nothing", func(t *testing.T, s *suite) {
		p := s.create(t)
		got, err := s.Store.PatchProduct(t.Context(), p.ID, store.ProductPatch{}, operator)
		must(t, err)
		equal(t, "product", got, p)
	}},
	{"a later price or name does not change a promised order", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.item(t, p, "buyer")
		_, err := s.Store.PatchProduct(t.Context(), p.ID, store.ProductPatch{Name: ptr("dearer"), PriceCents: ptr(int64(5000))}, operator)
		must(t, err)
		s.confirm(t, []store.Item{item}, store.ConfirmNew)
		order := s.order(t, item.Claim.OrderNo)
		equal(t, "price", order.PriceCents, p.PriceCents)
		equal(t, "name", order.ProductName, p.Name)
	}},
	{"a sale can be paused, resumed and ended", saleStates},
	{"an ended sale stays ended", endedSale},
	{"a repeated instruction does nothing, even after another one", instructedOnce},
	{"a sale is announced once", announced},
	{"an operator's end does not announce an announced end again", func(t *testing.T, s *suite) {
		p := s.create(t)
		_, err := s.Store.Announce(t.Context(), p.ID, seckill.EventSaleEnded)
		must(t, err)
		s.setState(t, p.ID, seckill.SaleEnded)
		equal(t, "sale.ended", s.count(t, p.ID, seckill.EventSaleEnded), 1)
	}},
	{"a sale that the operator ended is not announced as ended again", func(t *testing.T, s *suite) {
		p := s.create(t)
		_, err := s.Store.SetState(t.Context(), p.ID, operatorSets(seckill.SaleEnded))
		must(t, err)
		did, err := s.Store.Announce(t.Context(), p.ID, seckill.EventSaleEnded)
		must(t, err)
		equal(t, "announced", did, false)
		equal(t, "sale.ended", s.count(t, p.ID, seckill.EventSaleEnded), 1)
	}},
}

func patchEnded(t *testing.T, s *suite) {
	for _, end := range []func(p seckill.Product){
		func(p seckill.Product) { // by the clock
			_, err := s.Store.Announce(t.Context(), p.ID, seckill.EventSaleEnded)
			must(t, err)
		},
		func(p seckill.Product) { s.setState(t, p.ID, seckill.SaleEnded) },
	} {
		p := s.preheated(t)
		end(p)
		for _, patch := range []store.ProductPatch{
			{StartsAt: ptr(p.StartsAt.Add(-time.Hour))}, {EndsAt: ptr(p.EndsAt.Add(time.Hour))},
		} {
			s.wantUnchanged(t, p.ID, func() {
				_, err := s.Store.PatchProduct(t.Context(), p.ID, patch, operator)
				wantCode(t, err, seckill.CodeWrongState)
			})
		}
		got, err := s.Store.PatchProduct(t.Context(), p.ID, store.ProductPatch{Name: ptr("over"), EndsAt: &p.EndsAt}, operator)
		must(t, err)
		equal(t, "name", got.Name, "over")
	}
}

func ptr[T any](v T) *T { return &v }

func createdProduct(t *testing.T, s *suite) {
	draft, before := s.draft(t), s.now(t)
	p, err := s.Store.CreateProduct(t.Context(), draft, operator)
	must(t, err)
	equal(t, "version", p.Version, 1)
	equal(t, "epoch", p.Epoch, 0)
	equal(t, "stock", p.Stock, draft.Stock)
	equal(t, "offered", p.Offered, draft.Stock)
	equal(t, "state", p.State, seckill.SaleOpen)
	equal(t, "rebuilding", p.Rebuilding, false)
	if !around(p.CreatedAt, before, s.now(t)) {
		t.Errorf("created at %s, want the store's now", p.CreatedAt)
	}
	equal(t, "what is read", s.product(t, p.ID), p)
	CheckPromises(t, s.Store, p.ID)
}

func longProduct(t *testing.T, s *suite) {
	draft := s.draft(t)
	draft.Name = strings.Repeat("秒", 66) + "!!"
	draft.Ref = strings.Repeat("é", 32)
	draft.PriceCents, draft.Currency = seckill.MaxPriceCents, "JPY"
	draft.ImageURL = "https://img.example/" + strings.Repeat("a", seckill.MaxImageURL-20)
	draft.Unlisted, draft.Test = true, true
	draft.Stock, draft.PerUserLimit = seckill.MaxStock, seckill.MaxPerUserLimit
	draft.Shards, draft.Strategy = seckill.MaxShards, seckill.StrategySharded
	draft.Fallback = seckill.FallbackStore
	draft.StartsAt = time.Date(2000, 1, 1, 0, 0, 0, 1_000_000, time.UTC)
	draft.EndsAt = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
	must(t, draft.Check())
	_, err := s.Store.CreateProduct(t.Context(), draft, operator)
	must(t, err)
	got := s.product(t, draft.ID)
	want := draft
	want.Offered, want.Version, want.CreatedAt, want.ShardKey = draft.Stock, 1, got.CreatedAt, got.ShardKey
	equal(t, "product", got, want)
}

func shardKeys(t *testing.T, s *suite) {
	one, two := s.create(t, sharded(4)), s.create(t, sharded(4))
	if one.ShardKey == 0 || two.ShardKey == 0 || one.ShardKey == two.ShardKey {
		t.Errorf("two products have the keys %d and %d", one.ShardKey, two.ShardKey)
	}
	equal(t, "key that is read again", s.product(t, one.ID).ShardKey, one.ShardKey)
	equal(t, "key of a member", s.create(t, sharded(4), inGroup(one.ID)).ShardKey, one.ShardKey)
	equal(t, "key of one shard", s.create(t).ShardKey, 0)
}

func groupMembers(t *testing.T, s *suite) {
	head := s.create(t, sharded(2), perUser(3))
	member := s.create(t, inGroup(head.ID), sharded(2), perUser(3))
	equal(t, "group", s.product(t, member.ID).Group, head.ID)

	cases := map[string]func(*seckill.Product){
		"a test product": isTest,
		"another limit":  func(p *seckill.Product) { p.PerUserLimit = 2 },
		"another shards": func(p *seckill.Product) { p.Shards = 3 },
	}
	for name, edit := range cases {
		t.Run(name, func(t *testing.T) {
			draft := s.draft(t)
			draft.Group, draft.PerUserLimit = head.ID, 3
			draft.Shards, draft.Strategy = 2, seckill.StrategySharded
			edit(&draft)
			_, err := s.Store.CreateProduct(t.Context(), draft, operator)
			wantCode(t, err, seckill.CodeBadRequest)
			_, err = s.Store.Product(t.Context(), draft.ID)
			wantCode(t, err, seckill.CodeNotFound)
		})
	}
}

func unknownProduct(t *testing.T, s *suite) {
	ctx, id := t.Context(), newProductID()
	calls := map[string]func() error{
		"Product":      func() error { _, err := s.Store.Product(ctx, id); return err },
		"PatchProduct": func() error { _, err := s.Store.PatchProduct(ctx, id, store.ProductPatch{}, operator); return err },
		"SetState":     func() error { _, err := s.Store.SetState(ctx, id, operatorSets(seckill.SalePaused)); return err },
		"Figures":      func() error { _, err := s.Store.Figures(ctx, id); return err },
		"OpenEpoch": func() error {
			_, err := s.Store.OpenEpoch(ctx, id, 0, 0, operator, func(seckill.Order) error { return nil })
			return err
		},
		"Confirm": func() error {
			_, err := s.Store.Confirm(ctx, request(s.item(t, seckill.Product{ID: id, Group: id}, "buyer")))
			return err
		},
		"BeginStockChange": func() error {
			_, err := s.Store.BeginStockChange(ctx, store.StockChange{ID: numbered("change", int(id)), ProductID: id, Delta: 1})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) { wantCode(t, call(), seckill.CodeNotFound) })
	}
}

func patchBefore(t *testing.T, s *suite) {
	p := s.create(t)
	patch := store.ProductPatch{
		Name: ptr("Teapot 茶壶"), Ref: ptr("shop-2"), ImageURL: ptr("/teapot.jpg"), Unlisted: ptr(true), PriceCents: ptr(int64(0)), Currency: ptr("EUR"),
		PerUserLimit: ptr(4), StartsAt: ptr(p.StartsAt.Add(time.Minute)), EndsAt: ptr(p.EndsAt.Add(time.Minute)),
	}
	var got seckill.Product
	s.wantAudited(t, p.ID, func() {
		var err error
		got, err = s.Store.PatchProduct(t.Context(), p.ID, patch, operator)
		must(t, err)
	})
	want := p
	want.Name, want.Ref, want.ImageURL, want.PriceCents, want.Currency = *patch.Name, *patch.Ref, *patch.ImageURL, 0, "EUR"
	want.Unlisted = true
	want.PerUserLimit, want.StartsAt, want.EndsAt = 4, *patch.StartsAt, *patch.EndsAt
	want.Version = got.Version // stock and epoch did not change; the adapter may change the version
	equal(t, "returned", got, want)
	equal(t, "read", s.product(t, p.ID), want)
}

func patchAfter(t *testing.T, s *suite) {
	p := s.preheated(t)
	for name, patch := range map[string]store.ProductPatch{
		"limit":             {PerUserLimit: ptr(2)},
		"currency":          {Currency: ptr("EUR")},
		"limit beside name": {PerUserLimit: ptr(2), Name: ptr("new name")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Store.PatchProduct(t.Context(), p.ID, patch, operator)
			wantCode(t, err, seckill.CodeWrongState)
			equal(t, "product", s.product(t, p.ID), p)
		})
	}
	patch := store.ProductPatch{
		Name: ptr("later"), Ref: ptr("r2"), ImageURL: ptr("https://img.example/later"), Unlisted: ptr(true), PriceCents: ptr(int64(1)),
		StartsAt: ptr(p.StartsAt.Add(time.Second)), EndsAt: ptr(p.EndsAt.Add(time.Second)),
	}
	_, err := s.Store.PatchProduct(t.Context(), p.ID, patch, operator)
	must(t, err)
	got := s.product(t, p.ID)
	equal(t, "name", got.Name, "later")
	equal(t, "ref", got.Ref, "r2")
	equal(t, "image_url", got.ImageURL, "https://img.example/later")
	equal(t, "unlisted", got.Unlisted, true)
	equal(t, "price", got.PriceCents, 1)
	equal(t, "starts_at", got.StartsAt, *patch.StartsAt)
	equal(t, "ends_at", got.EndsAt, *patch.EndsAt)
}

func patchUnsound(t *testing.T, s *suite) {
	p := s.create(t)
	for name, patch := range map[string]store.ProductPatch{
		"empty name":      {Name: ptr("")},
		"negative price":  {PriceCents: ptr(int64(-1))},
		"lower currency":  {Currency: ptr("cny")},
		"limit 0":         {PerUserLimit: ptr(0)},
		"ends at start":   {EndsAt: ptr(p.StartsAt)},
		"starts too late": {StartsAt: ptr(p.EndsAt.Add(time.Second))},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Store.PatchProduct(t.Context(), p.ID, patch, operator)
			wantCode(t, err, seckill.CodeBadRequest)
			equal(t, "product", s.product(t, p.ID), p)
		})
	}
}

// operatorSets returns an operator's instruction.
func operatorSets(state seckill.SaleState) seckill.Instruction {
	return seckill.Instruction{State: state, Actor: operator.Name, Reason: operator.Reason}
}

// instructedOnce repeats an instruction. Several instances may bring it to the store, also long
// after the operator has given another one.
func instructedOnce(t *testing.T, s *suite) {
	p := s.preheated(t)
	pause := operatorSets(seckill.SalePaused)
	pause.ID, pause.At = "word-1", time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	set := func(in seckill.Instruction, want seckill.SaleState) {
		t.Helper()
		after, err := s.Store.SetState(t.Context(), p.ID, in)
		must(t, err)
		equal(t, "state", after, s.product(t, p.ID))
		equal(t, "state", after.State, want)
	}
	s.wantAudited(t, p.ID, func() { set(pause, seckill.SalePaused) })
	line := s.audit(t, p.ID)[0]
	equal(t, "action", line.Action, "product.pause")
	equal(t, "detail", line.Detail, "instruction word-1, given 2026-11-11T12:00:00Z")
	again := pause
	again.ID = "word-2"
	s.wantAudited(t, p.ID, func() { set(again, seckill.SalePaused) })
	set(operatorSets(seckill.SaleOpen), seckill.SaleOpen)
	lines := len(s.audit(t, p.ID))
	for _, in := range []seckill.Instruction{pause, again} {
		s.wantUnchanged(t, p.ID, func() { set(in, seckill.SaleOpen) })
	}
	equal(t, "audit lines after instructions that came again", len(s.audit(t, p.ID)), lines)
	equal(t, "sale.paused", s.count(t, p.ID, seckill.EventSalePaused), 1)
	set(operatorSets(seckill.SaleEnded), seckill.SaleEnded)
	set(pause, seckill.SaleEnded) // known; a new one is wrong_state
}

func (s *suite) setState(t *testing.T, id uint32, state seckill.SaleState) {
	t.Helper()
	p, err := s.Store.SetState(t.Context(), id, operatorSets(state))
	must(t, err)
	equal(t, "state returned", p.State, state)
	equal(t, "state read", s.product(t, id).State, state)
}

func saleStates(t *testing.T, s *suite) {
	p := s.preheated(t)
	for _, state := range []seckill.SaleState{seckill.SalePaused, seckill.SaleOpen, seckill.SalePaused, seckill.SaleEnded} {
		s.wantAudited(t, p.ID, func() { s.setState(t, p.ID, state) })
		lines := len(s.audit(t, p.ID))
		s.wantUnchanged(t, p.ID, func() { s.setState(t, p.ID, state) })
		equal(t, "audit lines after the same state again", len(s.audit(t, p.ID)), lines)
	}
	equal(t, "sale.ended", s.count(t, p.ID, seckill.EventSaleEnded), 1)
}

func endedSale(t *testing.T, s *suite) {
	p := s.preheated(t)
	s.setState(t, p.ID, seckill.SaleEnded)
	for _, state := range []seckill.SaleState{seckill.SaleOpen, seckill.SalePaused} {
		s.wantUnchanged(t, p.ID, func() {
			_, err := s.Store.SetState(t.Context(), p.ID, operatorSets(state))
			wantCode(t, err, seckill.CodeWrongState)
		})
	}
}

func announced(t *testing.T, s *suite) {
	p := s.preheated(t)
	for _, kind := range []seckill.EventKind{seckill.EventSaleStarted, seckill.EventSaleEnded} {
		for i := range 3 {
			did, err := s.Store.Announce(t.Context(), p.ID, kind)
			must(t, err)
			equal(t, "announced by this call", did, i == 0)
		}
		equal(t, string(kind), s.count(t, p.ID, kind), 1)
	}
}

func currentProducts(t *testing.T, s *suite) {
	upcoming, paused, over, ended := s.create(t), s.preheated(t), s.preheated(t), s.preheated(t)
	s.setState(t, paused.ID, seckill.SalePaused)
	s.endedAgo(t, over, store.CurrentFor-time.Minute)
	s.endedAgo(t, ended, store.CurrentFor+time.Minute)
	for _, p := range []seckill.Product{upcoming, paused, over} {
		equal(t, "current", s.current(t, p), true)
	}
	equal(t, "current a while after the end", s.current(t, ended), false)
	equal(t, "read by its id", s.product(t, ended.ID).ID, ended.ID)
}

// endedAgo ends a sale some time ago.
func (s *suite) endedAgo(t *testing.T, p seckill.Product, ago time.Duration) {
	t.Helper()
	s.setState(t, p.ID, seckill.SaleEnded)
	s.Exec(t, `UPDATE tb_seckill_product SET ended_time = ? WHERE id = ?`, s.now(t).Add(-ago).UnixMilli(), p.ID)
}

// current reports whether CurrentProducts returns the product, with its present fields.
func (s *suite) current(t *testing.T, p seckill.Product) bool {
	t.Helper()
	products, err := s.Store.CurrentProducts(t.Context())
	must(t, err)
	i := slices.IndexFunc(products, func(one seckill.Product) bool { return one.ID == p.ID })
	if i < 0 {
		return false
	}
	equal(t, "product", products[i], s.product(t, p.ID))
	return true
}
