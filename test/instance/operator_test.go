package instance

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
)

// operatorWithin is the operator API's own bound of what is not long by nature,
// 4 s, with room for a machine that runs other tests too.
const operatorWithin = 7 * time.Second

// operatorCall is a call, and what its answer names while Redis or MariaDB is
// frozen; "" where it needs none of that.
type operatorCall struct {
	name         string
	call         func(ctx context.Context, o *engine.Operator) error
	redis, maria string
}

const (
	namesLedger = "ledger"
	namesStore  = "store is unavailable"
)

func operatorCalls() []operatorCall {
	return []operatorCall{
		{"read a product", func(ctx context.Context, o *engine.Operator) error { _, err := o.Product(ctx, 1); return err }, "", namesStore},
		{"its figures", func(ctx context.Context, o *engine.Operator) error { _, err := o.Stats(ctx, 1); return err }, namesLedger, namesStore},
		{"patch it", func(ctx context.Context, o *engine.Operator) error {
			_, err := o.Patch(ctx, 1, map[string]any{"price_cents": 7})
			return err
		}, "", namesStore},
		{"pause another", func(ctx context.Context, o *engine.Operator) error { _, err := o.Pause(ctx, 2); return err }, namesLedger, ""}, // the ledger keeps it
		{"resume a fourth", func(ctx context.Context, o *engine.Operator) error { _, err := o.Resume(ctx, 4); return err }, namesLedger, namesStore},
		// With the ledger away it is recorded, and owed.
		{"more of a third", func(ctx context.Context, o *engine.Operator) error {
			_, err := o.ChangeStock(ctx, 3, 1, "delivery")
			return err
		}, "", namesStore},
		{"search orders", func(ctx context.Context, o *engine.Operator) error {
			_, err := o.Orders(ctx, url.Values{"buyer": {"rows"}})
			return err
		}, "", "the store is away"},
		{"dead letters", func(ctx context.Context, o *engine.Operator) error { _, err := o.Letters(ctx); return err }, "", namesStore},
		{"payments", func(ctx context.Context, o *engine.Operator) error { _, err := o.Payments(ctx, "nobody"); return err }, "", namesStore},
		{"events", func(ctx context.Context, o *engine.Operator) error { _, _, err := o.Events(ctx, 0); return err }, "", namesStore},
		{"audit", func(ctx context.Context, o *engine.Operator) error { _, err := o.Audit(ctx, 1); return err }, "", namesStore},
	}
}

func TestWithAServerFrozenAnOperatorHearsInTimeWhichItIs(t *testing.T) {
	t.Parallel()
	s := newAway(t)
	openSale(t, s.shop, engine.Product{ID: 2, Stock: 10})
	openSale(t, s.shop, engine.Product{ID: 3, Stock: 10})
	openSale(t, s.shop, engine.Product{ID: 4, Stock: 10})
	for _, outage := range []struct {
		name       string
		begin, end func()
		says       func(*operatorCall) string
	}{
		{"Redis frozen", s.redis.Pause, s.redis.Resume, func(c *operatorCall) string { return c.redis }},
		{"MariaDB frozen", s.maria.Pause, s.maria.Resume, func(c *operatorCall) string { return c.maria }},
	} {
		outage.begin()
		until(t, "it is noticed: "+outage.name, func() bool { return !s.ready(t) })
		var together sync.WaitGroup
		for _, c := range operatorCalls() {
			together.Go(func() {
				began := time.Now()
				err := c.call(t.Context(), s.shop.Operator())
				if took := time.Since(began); took > operatorWithin {
					t.Errorf("%s: %s took %s", outage.name, c.name, took)
				}
				want := outage.says(&c)
				switch {
				case want == "" && err != nil:
					t.Errorf("%s: %s was answered %v", outage.name, c.name, err)
				case want != "" && (engine.CodeOf(err) != seckill.CodeBusy || !strings.Contains(err.Error(), want)):
					t.Errorf("%s: %s was answered %v, want the %s named", outage.name, c.name, err, want)
				}
			})
		}
		together.Wait()
		outage.end()
		until(t, "it is over: "+outage.name, func() bool { return s.ready(t) })
	}
}
