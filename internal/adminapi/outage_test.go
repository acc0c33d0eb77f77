package adminapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"seckill"
	"seckill/internal/store"
)

// An operator who asks an instance without the role is told so, not that there
// is no such product; whoever has no token is told nothing.
func TestRole_MissingRoleIsExplained(t *testing.T) {
	d := newFixture(t, func(o *Options) { o.HealthOnly, o.Roles = true, []string{"shop"} })
	d.client = http.DefaultClient // not all of these are described
	for _, path := range []string{"/admin/v1/products", "/admin/v1/products/1/preheat", "/admin/v1/stats/stream", "/admin/v1/no/such"} {
		d.refused(seckill.CodeNotFound, "--roles=shop and has no operator API: ask one with role admin", "POST", path, "")
		if got := d.do("POST", path, "", "Authorization: none"); got.status != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d %s", path, got.status, got.body)
		}
	}
	if got := d.do("GET", "/healthz", ""); got.status != 200 {
		t.Errorf("/healthz answers %d", got.status)
	}
}

// An outage names the part that is away; an error that nobody foresaw is for the
// log.
func TestOutage_NamesPartToOperator(t *testing.T) {
	for _, c := range []struct {
		err  error
		says string
	}{
		{fmt.Errorf("%w: i/o timeout", store.ErrUnavailable), "read product 1: store is unavailable: i/o timeout"},
		{fmt.Errorf("ask: %w", context.DeadlineExceeded), "read product 1: ask: context deadline exceeded"},
		{seckill.Errorf(seckill.CodeBusy, "read ledger: closed"), "read ledger: closed"},
		{errors.New("a secret"), ""},
	} {
		d := newFixture(t, func(o *Options) { o.Records = failing{o.Records, c.err} })
		got := d.do("GET", "/admin/v1/products/1", "")
		if doc := got.problem(t); got.status != 503 || doc.Code != seckill.CodeBusy || doc.Detail != c.says {
			t.Errorf("%v: got %d %+v", c.err, got.status, doc)
		}
	}
}

// failing are records that cannot be read.
type failing struct {
	Records
	err error
}

func (f failing) Product(context.Context, uint32) (seckill.Product, error) {
	return seckill.Product{}, f.err
}
