package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
)

// linkOf begins a payment, presses the button, and returns the link that leads
// back to the shop.
func linkOf(t *testing.T, e *engine.Engine, b *engine.Buyer, no string) string {
	t.Helper()
	payURL, err := b.BeginPayment(t.Context(), no)
	if err != nil {
		t.Fatal(err)
	}
	pay, err := url.Parse(payURL)
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(pay.Query().Get("back"))
	if err != nil {
		t.Fatal(err)
	}
	route, link, found := strings.Cut(back.Fragment, "?link=")
	if !found || route != "/orders/"+no {
		t.Fatalf("the payment leads back to %q", back)
	}
	return link
}

// A buyer may have 16 streams. Links may use 8 of them, here through two orders
// with a link each.
func TestEventStreams_LinksAndLoginShareOneBound(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 5, PerUserLimit: 5})
	ann := e.Buyer("ann")
	var own, byLink [2]string
	for i := range own {
		no := buy(t, ann, 1, engine.Purchase{Quantity: 1})
		own[i] = e.ShopURL + "/api/v1/orders/" + no + "/events"
		byLink[i] = own[i] + "?link=" + linkOf(t, e, ann, no)
	}
	fill := func(urls [2]string, header http.Header) {
		t.Helper()
		for i := range 8 {
			s := follow(t, e, urls[i%2], header)
			t.Cleanup(s.close)
		}
	}
	fill(byLink, nil)
	for _, url := range byLink {
		if got := send(t, e, http.MethodGet, url, nil, ""); got.Code != seckill.CodeTooHot {
			t.Fatalf("a ninth stream by a link: %d %s", got.Status, got.Code)
		}
	}
	fill(own, signedIn(t, "ann"))
	if got := send(t, e, http.MethodGet, own[0], signedIn(t, "ann"), ""); got.Code != seckill.CodeTooHot {
		t.Errorf("a seventeenth stream: %d %s", got.Status, got.Code)
	}
}

// A payment app opens the link in a browser without a login.
func TestOrderLink_ShowsOneOrderAndAllowsNoAction(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"page.url": "https://sale.example/x/", "log.level": "debug"})
	openSale(t, e, engine.Product{ID: 1, Stock: 5, PerUserLimit: 5})
	ann := e.Buyer("ann-private")
	no := buy(t, ann, 1, engine.Purchase{Quantity: 1, Ref: "cart of ann-private"})
	link, other := linkOf(t, e, ann, no), buy(t, ann, 1, engine.Purchase{Quantity: 1})
	at := e.ShopURL + "/api/v1/orders/" + no
	seen := send(t, e, http.MethodGet, at+"?link="+link, nil, "")
	if order := decode[api.Order](t, seen.Text); seen.Status != http.StatusOK || order.OrderNo != no || order.Status != "pending" {
		t.Fatalf("%d %s", seen.Status, seen.Text)
	}
	if strings.Contains(seen.Text, "ann-private") || strings.Contains(seen.Text, `"link"`) {
		t.Errorf("the buyer is named, or another link given: %s", seen.Text)
	}
	if own, err := ann.Order(t.Context(), no); err != nil || own.Link != link {
		t.Errorf("the buyer is given the link %q, %v, not %q", own.Link, err, link)
	}
	if list, err := ann.Orders(t.Context()); err != nil || len(list) == 0 || list[0].Link != "" {
		t.Errorf("the list is %+v, %v", list, err)
	}
	for name, c := range map[string]struct {
		method, url string
		header      http.Header
		body        string
		code        seckill.Code
	}{
		"pay":                         {http.MethodPost, at + "/payment?link=" + link, nil, `{"provider":"sandbox"}`, seckill.CodeUnauthenticated},
		"cancel":                      {http.MethodPost, at + "/cancel?link=" + link, nil, "", seckill.CodeUnauthenticated},
		"list orders":                 {http.MethodGet, e.ShopURL + "/api/v1/orders?link=" + link, nil, "", seckill.CodeUnauthenticated},
		"the link as a bearer":        {http.MethodGet, at, bearer(link), "", seckill.CodeUnauthenticated},
		"an altered link":             {http.MethodGet, at + "?link=" + strings.Repeat("A", len(link)), nil, "", seckill.CodeTokenInvalid},
		"another order's":             {http.MethodGet, e.ShopURL + "/api/v1/orders/" + other + "?link=" + link, nil, "", seckill.CodeTokenInvalid},
		"an empty link":               {http.MethodGet, at + "?link=", nil, "", seckill.CodeUnauthenticated},
		"with another buyer's header": {http.MethodGet, at + "?link=" + link, signedIn(t, "eve"), "", seckill.CodeNotFound},
		"events, altered":             {http.MethodGet, at + "/events?link=" + link[1:], nil, "", seckill.CodeTokenInvalid},
	} {
		if got := send(t, e, c.method, c.url, c.header, c.body); got.Code != c.code {
			t.Errorf("%s: %d %s, want %s", name, got.Status, got.Text, c.code)
		}
	}
	s := follow(t, e, at+"/events?link="+link, nil)
	defer s.close()
	if _, data := s.next(); strings.Contains(data, "ann-private") || strings.Contains(data, `"link"`) {
		t.Errorf("the buyer is named in the stream, or another link given: %s", data)
	}
	pay(t, e, await(t, ann, no, "pending"))
	if name, data := s.next(); name != "order" || !strings.Contains(data, `"paid"`) || strings.Contains(data, "ann-private") {
		t.Errorf("the stream says %s", data)
	}
	checkLog(t, e, link)
}
