package e2e

import (
	"net/http"
	"slices"
	"testing"

	"seckill/internal/api"
	"seckill/test/engine"
)

// An unlisted product is not in the list, but its address with the id works.
func TestProduct_UnlistedIsFoundByIDOnly(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	openSale(t, e, engine.Product{ID: 2, Stock: 5, Unlisted: true})
	listed := func() (ids []uint32) {
		got := send(t, e, http.MethodGet, e.ShopURL+"/api/v1/products", nil, "")
		for _, p := range decode[struct{ Products []api.Product }](t, got.Text).Products {
			ids = append(ids, p.ID)
		}
		return ids
	}
	eventually(t, "the shop shows the unlisted one by its id", func() bool {
		return send(t, e, http.MethodGet, e.ShopURL+"/api/v1/products/2", nil, "").Status == http.StatusOK
	})
	if ids := listed(); !slices.Equal(ids, []uint32{1}) {
		t.Errorf("listed are %v", ids)
	}
	if _, err := e.Buyer("ann").Buy(t.Context(), 2, engine.Purchase{Quantity: 1}); err != nil {
		t.Errorf("buy: %v", err)
	}
	for body, want := range map[string][]uint32{`{"unlisted":false}`: {1, 2}, `{"unlisted":true}`: {1}} {
		if got := send(t, e, http.MethodPatch, e.AdminURL+"/admin/v1/products/2", operating("ann"), body); got.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", body, got.Status, got.Text)
		}
		eventually(t, "the list follows "+body, func() bool { return slices.Equal(listed(), want) })
	}
}
