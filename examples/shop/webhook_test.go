package main

import (
	"bytes"
	"net/http"
	"sync"
	"testing"
	"time"
)

func TestWebhook_Signature(t *testing.T) {
	mine, _ := newWebhookSecret()
	next, _ := newWebhookSecret()
	foreign, _ := newWebhookSecret()
	now := time.Now()
	cases := []struct {
		name    string
		known   [][]byte // to the shop
		signing [][]byte
		at      time.Time
		want    int
	}{
		{"good", [][]byte{mine}, [][]byte{mine}, now, http.StatusNoContent},
		{"wrong secret", [][]byte{mine}, [][]byte{foreign}, now, http.StatusUnauthorized},
		{"no signature", [][]byte{mine}, nil, now, http.StatusUnauthorized},
		{"shop knows both, sender signs with the old", [][]byte{next, mine}, [][]byte{mine}, now, http.StatusNoContent},
		{"shop knows both, sender signs with the new", [][]byte{next, mine}, [][]byte{next}, now, http.StatusNoContent},
		{"sender signs with both, shop knows the old", [][]byte{mine}, [][]byte{next, mine}, now, http.StatusNoContent},
		{"retired secret", [][]byte{next}, [][]byte{mine}, now, http.StatusUnauthorized},
		{"four minutes old", [][]byte{mine}, [][]byte{mine}, now.Add(-4 * time.Minute), http.StatusNoContent},
		{"six minutes old", [][]byte{mine}, [][]byte{mine}, now.Add(-6 * time.Minute), http.StatusUnauthorized},
		{"six minutes ahead", [][]byte{mine}, [][]byte{mine}, now.Add(6 * time.Minute), http.StatusUnauthorized},
		{"too many signatures", [][]byte{mine}, [][]byte{foreign, foreign, foreign, foreign, foreign, foreign, foreign, foreign, mine}, now, http.StatusUnauthorized},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			shop := openShop(t, nil)
			shop.webhookSecrets, shop.sender.secrets = c.known, c.signing
			shop.deliver(message{id: "w-1", at: c.at, body: orderEvent("confirmed", "SK1")}, c.want)
			if c.want == http.StatusNoContent {
				shop.wantStatus("SK1", Pending)
			} else {
				shop.wantStatus("SK1", "")
			}
		})
	}
}

// TestVerifyWebhook_SpecificationExample is the example that libraries of
// Standard Webhooks test themselves with.
func TestVerifyWebhook_SpecificationExample(t *testing.T) {
	secret, err := parseWebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	header.Set(headerID, "msg_p5jXN8AQM9LWM0D4loKWxJek")
	header.Set(headerTimestamp, "1614265330")
	header.Set(headerSignature, "v1a,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	body := []byte(`{"test": 2432232314}`)
	if _, err := verifyWebhook([][]byte{secret}, header, body, time.Unix(1614265330, 0)); err != nil {
		t.Error(err)
	}
	if _, err := verifyWebhook([][]byte{secret}, header, append(body, ' '), time.Unix(1614265330, 0)); err == nil {
		t.Error("a changed body is accepted")
	}
}

func TestWebhook_SignatureCoversIDAndTimestamp(t *testing.T) {
	secret, _ := newWebhookSecret()
	body := orderEvent("confirmed", "SK1")
	signed := signWebhook(secret, "w-1", "1000", body)
	for _, other := range [][2]string{{"w-2", "1000"}, {"w-1", "1001"}} {
		if bytes.Equal(signed, signWebhook(secret, other[0], other[1], body)) {
			t.Errorf("id and timestamp %q have the same signature", other)
		}
	}
}

func TestParseWebhookSecret(t *testing.T) {
	for text, good := range map[string]bool{
		"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3": true,
		"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3":       false,
		"whsec_short":                            false,
		"whsec_MDEyMw==":                         false,
	} {
		if _, err := parseWebhookSecret(text); (err == nil) != good {
			t.Errorf("secret %q: %v", text, err)
		}
	}
}

func TestWebhook_RepeatedIDChangesNothing(t *testing.T) {
	shop := openShop(t, nil)
	shop.deliver(message{id: "w-1", body: orderEvent("confirmed", "SK1")}, http.StatusNoContent)
	// The second body would pay the order, if the id were not known.
	shop.deliver(message{id: "w-1", body: orderEvent("paid", "SK1")}, http.StatusNoContent)
	shop.wantStatus("SK1", Pending)
}

func TestWebhook_ParallelRepeatsApplyOnce(t *testing.T) {
	shop := openShop(t, nil)
	var crowd sync.WaitGroup
	for range 20 {
		crowd.Go(func() { shop.deliver(message{id: "w-1", body: orderEvent("confirmed", "SK1")}, http.StatusNoContent) })
	}
	crowd.Wait()
	shop.wantStatus("SK1", Pending)
}

func TestWebhook_OrderFollowsItsEvents(t *testing.T) {
	stories := [][]struct {
		event string
		want  Status
	}{
		{{"confirmed", Pending}, {"expiring", Pending}, {"paid", Paid}, {"refunded", Refunded}},
		{{"confirmed", Pending}, {"cancelled", Cancelled}},
		{{"failed", Failed}},
		// The shop was connected later: the first event that it sees creates the row.
		{{"paid", Paid}, {"refunded", Refunded}},
		{{"refunded", Refunded}},
		// Old events under new ids, as after the shop forgot the first ones.
		{{"confirmed", Pending}, {"paid", Paid}, {"confirmed", Paid}, {"refunded", Refunded}, {"paid", Refunded}, {"confirmed", Refunded}},
		{{"confirmed", Pending}, {"cancelled", Cancelled}, {"confirmed", Cancelled}, {"paid", Cancelled}},
		// A paid order is never cancelled (I8).
		{{"paid", Paid}, {"cancelled", Paid}, {"failed", Paid}},
	}
	for i, story := range stories {
		shop := openShop(t, nil)
		for j, step := range story {
			shop.deliver(message{id: string(rune('a' + j)), body: orderEvent(step.event, "SK1")}, http.StatusNoContent)
			shop.wantStatus("SK1", step.want)
		}
		if t.Failed() {
			t.Fatalf("in story %d", i)
		}
	}
}

func TestWebhook_RowHasWhatTheEventSays(t *testing.T) {
	shop := openShop(t, nil)
	if _, err := shop.db.Exec(`INSERT INTO sale VALUES (7, 'POCKET-BUDS', 9900, 10, 2, 0, 1, 'ready', 0, NULL)`); err != nil {
		t.Fatal(err)
	}
	shop.deliver(message{id: "w-1", body: orderEvent("confirmed", "SK1")}, http.StatusNoContent)
	order, err := findOrder(t.Context(), shop.db, "SK1")
	order.Updated = time.Time{}
	if want := (Order{OrderNo: "SK1", SKU: "POCKET-BUDS", UserID: "u-ann", Quantity: 2, AmountCents: 19800, Status: Pending}); err != nil || order != want {
		t.Errorf("row %+v (%v), want %+v", order, err, want)
	}
}

func TestWebhook_SaleAndRefund(t *testing.T) {
	shop := openShop(t, nil)
	if _, err := shop.db.Exec(`INSERT INTO sale VALUES (7, 'POCKET-BUDS', 9900, 10, 2, 0, 1, 'ready', 0, NULL)`); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	at := func(kind string, seconds int, data any) []byte {
		return envelope(kind, "7", start.Add(time.Duration(seconds)*time.Second), data)
	}
	product := map[string]any{"product_id": 7}
	refund := map[string]any{"order_no": "SK1", "id": "R1"}
	for i, body := range [][]byte{
		at("sale.started", 1, product), at("sale.ended", 9, map[string]any{"returned_units": 3}), // named by its subject
		at("sale.sold_out", 5, product),                                                                     // late
		at("refund.required", 1, refund), at("refund.settled", 2, refund), at("refund.required", 1, refund), // replayed
		at("sale.started", 3, map[string]any{"product_id": 8}), at("echo", 1, nil), at("order.unheard_of", 1, nil),
	} {
		shop.deliver(message{id: string(rune('a' + i)), body: body}, http.StatusNoContent)
	}
	var sale, money string
	var returned int
	err := shop.db.QueryRow(`SELECT state, returned_units, (SELECT state FROM refund WHERE order_no = 'SK1') FROM sale WHERE product_id = 7`).
		Scan(&sale, &returned, &money)
	if err != nil || sale != "ended" || returned != 3 || money != "settled" {
		t.Errorf("sale is %q with %d units back and refund %q (%v), want ended, 3 and settled", sale, returned, money, err)
	}
}

func TestWebhook_MalformedEventIsRefusedAndNotRemembered(t *testing.T) {
	shop := openShop(t, nil)
	for _, body := range []string{`{`, `{"type":"seckill.order.paid","data":{"order_no":"SK1"}}`, `{"type":"seckill.order.paid","data":"text"}`} {
		shop.deliver(message{id: "w-1", body: []byte(body)}, http.StatusBadRequest)
	}
	shop.deliver(message{id: "w-1", body: orderEvent("confirmed", "SK1")}, http.StatusNoContent)
	shop.wantStatus("SK1", Pending)
}

func TestWebhook_BodyIsBounded(t *testing.T) {
	shop := openShop(t, nil)
	shop.deliver(message{id: "w-1", body: bytes.Repeat([]byte{' '}, maxWebhookBytes+1)}, http.StatusRequestEntityTooLarge)
}

func TestWebhook_DatabaseAwayIs503(t *testing.T) {
	shop := openShop(t, nil)
	shop.db.Close()
	shop.deliver(message{id: "w-1", body: orderEvent("confirmed", "SK1")}, http.StatusServiceUnavailable)
}
