package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
)

func TestProduct_HasAPicture(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"page.image_hosts": "img.example"})
	warned := func(id int) bool {
		return regexp.MustCompile(fmt.Sprintf("will not show this picture.* product=%d ", id)).MatchString(e.Log())
	}
	products := e.AdminURL + "/admin/v1/products"
	create := func(id int, image string) reply {
		body := fmt.Sprintf(`{"id":%d,"name":"Phone","price_cents":1,"stock":1,"starts_at":"2026-01-01T00:00:00Z","ends_at":"2099-01-01T00:00:00Z","image_url":%q}`, id, image)
		return send(t, e, http.MethodPost, products, operating("ann"), body)
	}
	for i, image := range []string{"", "/art/phone.webp", "https://img.example/a%20b.png?w=2&h=1", "http://img.example:8080/x"} {
		if got := create(i+1, image); got.Status != http.StatusCreated || decode[api.AdminProduct](t, got.Text).ImageURL != image {
			t.Errorf("%q: %d %s", image, got.Status, got.Text)
		}
		eventually(t, "the shop shows it", func() bool {
			got := send(t, e, http.MethodGet, fmt.Sprintf("%s/api/v1/products/%d", e.ShopURL, i+1), nil, "")
			return got.Status == http.StatusOK && decode[api.Product](t, got.Text).ImageURL == image
		})
	}
	for _, image := range []string{
		"phone.webp", "//img.example/x", "javascript:alert(1)", "data:image/png;base64,AA", "https://", "https://u:p@img.example/", "/a b", `/a"b`, "/<x>", "/茶壶.png",
		"/" + strings.Repeat("x", 500), "https://img.example/\n",
	} {
		if got := create(9, image); got.Code != seckill.CodeBadRequest {
			t.Errorf("%q: %d %s", image, got.Status, got.Text)
		}
	}
	patched := send(t, e, http.MethodPatch, products+"/1", operating("ann"), `{"image_url":"/new.webp"}`)
	if decode[api.AdminProduct](t, patched.Text).ImageURL != "/new.webp" {
		t.Errorf("patched: %d %s", patched.Status, patched.Text)
	}
	send(t, e, http.MethodPatch, products+"/1", operating("ann"), `{"image_url":"https://elsewhere.example/new.webp"}`)
	eventually(t, "the log warns of what the page's policy keeps out", func() bool { return warned(4) && warned(1) })
	if warned(2) || warned(3) {
		t.Error("a picture that is shown is warned of")
	}
}

// A unit may return until the last order is paid or has expired.
func TestProduct_SoldOutSaysUntilWhenAUnitMayReturn(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"order.expire_after": "10m"})
	openSale(t, e, engine.Product{ID: 1, Stock: 1})
	ann := e.Buyer("ann")
	show := func() api.Product {
		return decode[api.Product](t, send(t, e, http.MethodGet, e.ShopURL+"/api/v1/products/1", nil, "").Text)
	}
	if p := show(); p.Status != seckill.StatusOnSale || p.MayReturnUntil != nil {
		t.Errorf("before: %+v", p)
	}
	order := await(t, ann, buy(t, ann, 1, engine.Purchase{Quantity: 1}), "pending")
	eventually(t, "the product says when", func() bool {
		p := show()
		return p.Status == seckill.StatusSoldOut && p.MayReturnUntil != nil && !p.AllPaid && time.Time(*p.MayReturnUntil).Equal(time.Time(order.PayBefore))
	})
	pay(t, e, order)
	eventually(t, "all units are paid for", func() bool {
		p := show()
		return p.Status == seckill.StatusSoldOut && p.MayReturnUntil == nil && p.AllPaid
	})
}
