package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"seckill"
	"seckill/internal/api"

	"seckill/test/engine"
	"seckill/test/webhook"
)

// It sells a test product and a real one to the same buyers, looks for the test
// product in every list, and deletes it.
func TestRehearsal_IsLeftOutAndDeleted(t *testing.T) {
	t.Parallel()
	overSome(t, rehearsalIsLeftOutAndDeleted)
}

func rehearsalIsLeftOutAndDeleted(t *testing.T, w way) {
	e := w.start(t, nil)
	operator := e.Operator()
	const real, rehearsal = 1, 2
	openSale(t, e, w.product(engine.Product{ID: real, Stock: 10, PerUserLimit: 2}))
	openSale(t, e, w.product(engine.Product{ID: rehearsal, Stock: 10, PerUserLimit: 2, Test: true}))

	got := send(t, e, http.MethodGet, e.ShopURL+"/api/v1/products", nil, "")
	var listed []uint32
	for _, p := range decode[struct{ Products []api.Product }](t, got.Text).Products {
		listed = append(listed, p.ID)
	}
	if !slices.Equal(listed, []uint32{real}) {
		t.Errorf("the shop lists %v", listed)
	}
	for id, test := range map[uint32]bool{real: false, rehearsal: true} {
		shown := decode[api.Product](t, send(t, e, http.MethodGet, fmt.Sprintf("%s/api/v1/products/%d", e.ShopURL, id), nil, "").Text)
		product, err := operator.Product(t.Context(), id)
		if err != nil || product.Test != test || shown.Test != test {
			t.Errorf("product %d is a test: %t for operators, %t for shoppers (%v)", id, product.Test, shown.Test, err)
		}
	}

	var nos []string
	for _, buyer := range []string{"ann", "bob", "cyd"} {
		pay(t, e, await(t, e.Buyer(buyer), buy(t, e.Buyer(buyer), real, engine.Purchase{Quantity: 1}), "pending"))
		no := buy(t, e.Buyer(buyer), rehearsal, engine.Purchase{Quantity: 1})
		pay(t, e, await(t, e.Buyer(buyer), no, "pending"))
		nos = append(nos, no)
	}
	buy(t, e.Buyer("dan"), rehearsal, engine.Purchase{Quantity: 2})
	if _, err := operator.Refund(t.Context(), nos[2]); err != nil {
		t.Fatal(err)
	}
	order, err := operator.Order(t.Context(), nos[0])
	if err != nil || !order.Test {
		t.Errorf("the order is shown as %+v (%v)", order, err)
	}

	// Feed, money, figures.
	events := func(query string) map[uint32]int {
		t.Helper()
		count := make(map[uint32]int)
		for after := int64(0); ; {
			var page struct {
				Events []api.Event
				Next   int64
			}
			asOperator(t, e, http.MethodGet, fmt.Sprintf("/events?limit=5&after=%d%s", after, query), "", &page)
			for _, event := range page.Events {
				count[event.ProductID]++
				if event.Test != (event.ProductID == rehearsal) {
					t.Errorf("event %+v", event)
				}
			}
			if page.Next == after {
				return count
			}
			after = page.Next
		}
	}
	if shown := events(""); shown[rehearsal] != 0 || shown[real] < 7 {
		t.Errorf("the feed has %v", shown)
	}
	if shown := events("&test=true"); shown[rehearsal] < 9 || shown[real] < 7 {
		t.Errorf("the feed with tests has %v", shown)
	}
	payments := func(query string) map[string]bool {
		t.Helper()
		var list struct{ Payments []api.Payment }
		asOperator(t, e, http.MethodGet, "/payments?limit=500"+query, "", &list)
		of := make(map[string]bool)
		for _, p := range list.Payments {
			of[p.OrderNo] = true
		}
		return of
	}
	if of := payments(""); of[nos[0]] || len(of) != 3 {
		t.Errorf("money of %v is listed", of)
	}
	for _, query := range []string{"&test=true", "&order_no=" + nos[0], fmt.Sprintf("&product_id=%d", rehearsal)} {
		if of := payments(query); !of[nos[0]] {
			t.Errorf("%s: money of %v is listed", query, of)
		}
	}
	page := send(t, e, http.MethodGet, e.AdminURL+"/metrics", nil, "").Text
	if strings.Contains(page, fmt.Sprintf(`product="%d"`, rehearsal)) || !strings.Contains(page, fmt.Sprintf(`seckill_units{product="%d"`, real)) {
		t.Error("the metrics have the rehearsal, or not the sale")
	}
	for query, want := range map[string]int{"": 1, "?test=true": 2} {
		s := follow(t, e, e.AdminURL+"/admin/v1/stats/stream"+query, operating("li.na"))
		_, beat := s.next()
		s.close()
		if shown := decode[struct{ Products []api.Stats }](t, beat).Products; len(shown) != want {
			t.Errorf("the stream%s has %d products, want %d", query, len(shown), want)
		}
	}

	// Only a test product can be deleted, and only after its end.
	_, err = operator.Delete(t.Context(), real)
	refused(t, "delete a real product", err, seckill.CodeNotTest)
	_, err = operator.Delete(t.Context(), rehearsal)
	refused(t, "delete a sale that goes on", err, seckill.CodeWrongState)
	if _, err := operator.End(t.Context(), rehearsal); err != nil {
		t.Fatal(err)
	}
	report, err := operator.Reconcile(t.Context(), rehearsal, false)
	if err != nil || !report.Test || report.Balanced == nil || !*report.Balanced {
		t.Errorf("the rehearsal is reported as %+v (%v)", report, err)
	}
	deleted := 0
	eventually(t, "the rehearsal is deleted", func() bool { // its refund may be due
		n, err := operator.Delete(t.Context(), rehearsal)
		if err != nil && engine.CodeOf(err) != seckill.CodeBusy {
			t.Fatal(err)
		}
		deleted += n
		return err == nil
	})
	if deleted != 4 {
		t.Errorf("%d orders were deleted, want 4", deleted)
	}

	// Nothing of the test product is left, and everything of the other product.
	_, err = operator.Product(t.Context(), rehearsal)
	refused(t, "read the deleted product", err, seckill.CodeNotFound)
	_, err = operator.Order(t.Context(), nos[0])
	refused(t, "read a deleted order", err, seckill.CodeNotFound)
	if shown := events("&test=true"); shown[rehearsal] != 0 || shown[real] < 7 {
		t.Errorf("the feed after the deletion has %v", shown)
	}
	if of := payments("&test=true"); len(of) != 3 {
		t.Errorf("money of %v is left", of)
	}
	for _, buyer := range []string{"ann", "bob", "cyd"} {
		orders, err := e.Buyer(buyer).Orders(t.Context())
		if err != nil || len(orders) != 1 || orders[0].ProductID != real {
			t.Errorf("%s has %+v (%v)", buyer, orders, err)
		}
	}
	var audit struct{ Audit []api.Audit }
	asOperator(t, e, http.MethodGet, fmt.Sprintf("/audit?product_id=%d", rehearsal), "", &audit)
	if len(audit.Audit) == 0 || audit.Audit[0].Action != "product.delete" {
		t.Errorf("the audit has %+v", audit.Audit)
	}
	buy(t, e.Buyer("ann"), real, engine.Purchase{Quantity: 1})
	_, err = claim(t, e.Buyer("ann"), real, engine.Purchase{Quantity: 1})
	refused(t, "a third unit", err, seckill.CodeAlreadyPurchased)
	eventually(t, "the sale is balanced", func() bool {
		report, err := operator.Reconcile(t.Context(), real, false)
		return err == nil && report.Balanced != nil && *report.Balanced && !report.Test
	})
	_, err = operator.Create(t.Context(), engine.Product{ID: rehearsal, Name: "again", Stock: 1, StartsAt: report.At, EndsAt: report.At.AddDate(1, 0, 0)})
	refused(t, "use the id again", err, seckill.CodeWrongState)
	_, err = operator.Delete(t.Context(), rehearsal)
	refused(t, "delete it again", err, seckill.CodeNotFound)
}

// The receiver gets the events of the real product only.
func TestRehearsal_SinksGetNoEvents(t *testing.T) {
	t.Parallel()
	r := webhook.New(t)
	e := start(t, map[string]string{"config": r.Config()})
	openSale(t, e, engine.Product{ID: 2, Stock: 5, Test: true})
	await(t, e.Buyer("ann"), buy(t, e.Buyer("ann"), 2, engine.Purchase{Quantity: 1}), "pending")
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	want := buy(t, e.Buyer("ann"), 1, engine.Purchase{Quantity: 1})
	eventually(t, "the receiver hears of the sale", func() bool { _, heard := r.Orders()[want]; return heard })
	if orders := r.Orders(); len(orders) != 1 {
		t.Errorf("the receiver has heard of %v", orders)
	}
	eventually(t, "the sink is idle", func() bool {
		var sinks struct{ Sinks []api.Sink }
		asOperator(t, e, http.MethodGet, "/sinks", "", &sinks)
		return len(sinks.Sinks) == 1 && sinks.Sinks[0].State == "idle"
	})
}
