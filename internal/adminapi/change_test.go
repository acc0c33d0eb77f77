package adminapi

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
)

// did sends a request that must be granted, and returns the one change.
func (d *fixture) did(method, path, body string, headers ...string) call {
	d.Helper()
	got := d.do(method, path, body, headers...)
	calls := d.engine.changes()
	if got.status >= 300 || len(calls) == 0 {
		d.Fatalf("%s %s %s: %d %s, did %v", method, path, body, got.status, got.body, calls)
	}
	return calls[len(calls)-1]
}

func TestCreateProduct_HasDefaults(t *testing.T) {
	d := newFixture(t, nil)
	want := seckill.Product{
		ID: 1, Name: "Phone", PriceCents: 699900, Currency: "CNY", Stock: 10000, Offered: 10000, PerUserLimit: 1,
		Group: 1, StartsAt: at.Truncate(time.Second), EndsAt: at.Truncate(time.Second).Add(2 * time.Hour),
		Shards: 1, Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait, Version: 1, CreatedAt: at,
	}
	if got := d.did("POST", "/admin/v1/products", newProduct); !reflect.DeepEqual(got.what, want) {
		t.Errorf("got  %+v\nwant %+v", got.what, want)
	}
	want.Ref, want.Currency, want.PerUserLimit, want.Group = "sku-9", "EUR", 3, 7
	want.Shards, want.Strategy, want.Fallback, want.Unlisted, want.Test = 4, seckill.StrategySharded, seckill.FallbackStore, true, true
	full := strings.TrimSuffix(newProduct, "}") + `,"ref":"sku-9","currency":"EUR","per_user_limit":3,` +
		`"limit_group":7,"shards":4,"strategy":"sharded","fallback":"store","unlisted":true,"test":true}`
	if got := d.did("POST", "/admin/v1/products", full); !reflect.DeepEqual(got.what, want) {
		t.Errorf("got  %+v\nwant %+v", got.what, want)
	}
	if got := d.do("POST", "/admin/v1/products", newProduct); got.header.Get("Location") != "/admin/v1/products/1" {
		t.Errorf("Location %q", got.header.Get("Location"))
	}
}

func TestPatch_ChangesOnlyNamedFields(t *testing.T) {
	d := newFixture(t, nil)
	got := d.did("PATCH", "/admin/v1/products/1", `{"ref":"","price_cents":0,"per_user_limit":2,"unlisted":false,"reason":"gift"}`)
	ref, price, limit, unlisted := "", int64(0), 2, false
	want := store.ProductPatch{Ref: &ref, PriceCents: &price, PerUserLimit: &limit, Unlisted: &unlisted}
	if !reflect.DeepEqual(got.what, want) || got.actor.Reason != "gift" {
		t.Errorf("got %+v", got)
	}
}

func TestChanges_HaveActorAndReason(t *testing.T) {
	d := newFixture(t, nil)
	no := orderNo.String()
	for path, did := range map[string]string{
		"/products/1/preheat": "preheat", "/products/1/pause": "state", "/products/1/resume": "state",
		"/products/1/end": "state", "/products/1/recover": "recover", "/products/1/takeover": "takeover", "/orders/" + no + "/cancel": "cancel",
		"/orders/" + no + "/refund": "refund", "/dead-letters/5/retry": "retry", "/dead-letters/5/discard": "discard",
		"/payments/RF5/retry": "retry refund", "/sinks/shop/deliveries/5/retry": "retry delivery",
		"/sinks/shop/deliveries/5/skip": "skip delivery", "/sinks/shop/deliveries/" + eventID + "/skip": "skip delivery", "/sinks/shop/retry": "retry deliveries", "/sinks/shop/skip": "skip deliveries", "/sinks/shop/forget": "forget sink", "/sinks/shop/test": "test sink",
	} {
		got := d.did("POST", "/admin/v1"+path, `{"reason":"因为"}`, "X-Operator: li.na")
		if want := (store.Actor{Name: "li.na", Reason: "因为"}); got.did != did || got.actor != want {
			t.Errorf("%s: %+v", path, got)
		}
		got = d.did("POST", "/admin/v1"+path, "")
		if want := (store.Actor{Name: "operator"}); got.did != did || got.actor != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
	states := map[string]seckill.SaleState{
		"pause": seckill.SalePaused, "resume": seckill.SaleOpen, "end": seckill.SaleEnded,
	}
	for verb, state := range states {
		if got := d.did("POST", "/admin/v1/products/1/"+verb, ""); got.what != state {
			t.Errorf("%s: %+v", verb, got)
		}
	}
	if got := d.did("POST", "/admin/v1/orders/"+no+"/cancel", ""); got.what != reasonByOperator {
		t.Errorf("cancel without a reason: %+v", got)
	}
}

// An answer tells apart what the store has and what the ledger keeps for it.
func TestPause_IsAcceptedWhileTheStoreIsAway(t *testing.T) {
	d := newFixture(t, nil)
	for keeps, want := range map[bool]int{false: http.StatusOK, true: http.StatusAccepted} {
		d.engine.keeps = keeps
		for verb, state := range map[string]string{"pause": "paused", "end": "ended"} {
			got := d.do("POST", "/admin/v1/products/1/"+verb, "")
			if got.status != want || !strings.Contains(string(got.body), `"state":"`+state+`"`) {
				t.Errorf("%s: %d %s, want %d", verb, got.status, got.body, want)
			}
			if strings.Contains(string(got.body), `"instruction_waiting":true`) != keeps {
				t.Errorf("%s: %s, and the ledger keeps the instruction: %v", verb, got.body, keeps)
			}
		}
	}
}

func TestReplay_HasStartActorAndReason(t *testing.T) {
	d := newFixture(t, nil)
	got := d.did("POST", "/admin/v1/sinks/shop/replay", `{"from":"2026-11-11T20:00:00+08:00","reason":"lost"}`, "X-Operator: li.na")
	want := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	if at, ok := got.what.(time.Time); !ok || !at.Equal(want) || got.did != "replay sink" || got.actor != (store.Actor{Name: "li.na", Reason: "lost"}) {
		t.Errorf("got %+v", got)
	}
}

func TestRepair_IsAuditedFirst(t *testing.T) {
	d := newFixture(t, nil)
	d.do("POST", "/admin/v1/reconciliations", `{"product_id":1,"repair":true,"reason":"drill"}`, "X-Operator: li.na")
	calls := d.engine.changes()
	if len(calls) != 2 || calls[0].did != "append" || calls[0].actor != (store.Actor{Name: "li.na", Reason: "drill"}) ||
		calls[1].did != "reconcile" || calls[1].what != true {
		t.Errorf("got %+v", calls)
	}
	d.do("POST", "/admin/v1/reconciliations", `{"product_id":1}`)
	if calls := d.engine.changes(); len(calls) != 1 || calls[0].what != false {
		t.Errorf("a count was audited as a repair: %+v", calls)
	}
}

func TestStockChange_IsIdempotentByID(t *testing.T) {
	d := newFixture(t, nil)
	const path = "/admin/v1/products/1/stock"
	for want, request := range map[string][]string{
		"made-up": {`{"delta":5}`}, "a": {`{"delta":5,"change_id":"a"}`},
		"b": {`{"delta":5}`, "Idempotency-Key: b"}, "c": {`{"delta":5,"change_id":"c"}`, "Idempotency-Key: c"},
	} {
		got := d.did("POST", path, request[0], request[1:]...)
		if change, ok := got.what.(store.StockChange); !ok || change.ID != want || change.Delta != 5 {
			t.Errorf("%v: %+v", request, got)
		}
	}
	// One that the ledger has not heard of is no failure to be repeated.
	got := d.do("POST", path, `{"delta":5,"change_id":"open"}`)
	if got.status != http.StatusAccepted || !strings.Contains(string(got.body), `"change_id":"open"`) ||
		!strings.Contains(string(got.body), `"status":"open"`) {
		t.Errorf("open: %d %s", got.status, got.body)
	}
	for _, word := range []string{"refused", "another"} {
		got := d.do("POST", path, `{"delta":-5,"change_id":"`+word+`"}`)
		if doc := got.problem(t); doc.Code != seckill.CodeWrongState {
			t.Errorf("%s: %d %s", word, got.status, got.body)
		}
	}
}

func TestLists_FiltersReachTheStore(t *testing.T) {
	d := newFixture(t, nil)
	paid := seckill.OrderPaid
	for path, want := range map[string]any{
		"/orders?buyer=bob&product_id=1&status=paid&ref=cart%201&before=" + orderNo.String() + "&limit=7": store.OrderFilter{
			Buyer: "bob", ProductID: 1, Status: &paid, Ref: "cart 1", Before: orderNo, Limit: 7,
		},
		"/orders":                          store.OrderFilter{Limit: defaultPage},
		"/dead-letters":                    store.LetterFilter{DeadOnly: true, Limit: defaultPage},
		"/dead-letters?state=any&after=9":  store.LetterFilter{After: 9, Limit: defaultPage},
		"/dead-letters?product_id=1":       store.LetterFilter{ProductID: 1, DeadOnly: true, Limit: defaultPage},
		"/payments?order_no=X&type=refund": store.PaymentFilter{OrderNo: "X", Type: "refund", Limit: defaultPage},
		"/payments?product_id=1&limit=7":   store.PaymentFilter{ProductID: 1, Limit: 7},
		"/payments?product_id=0":           store.PaymentFilter{OfNone: true, Limit: defaultPage},
		"/events?limit=3":                  3,
		"/audit?product_id=4294967295&before=3&limit=500&order_no=" + orderNo.String(): store.AuditFilter{
			ProductID: 4294967295, OrderNo: orderNo.String(), Before: 3, Limit: 500,
		},
	} {
		if got := d.did("GET", "/admin/v1"+path, ""); !reflect.DeepEqual(got.what, want) {
			t.Errorf("%s: got %+v, want %+v", path, got.what, want)
		}
	}
}

func TestFeed_ReturnsNextCursor(t *testing.T) {
	d := newFixture(t, nil)
	for path, next := range map[string]int64{"/admin/v1/events": 9, "/admin/v1/events?after=9": 9, "/admin/v1/events?after=99": 99} {
		var page eventPage
		if err := json.Unmarshal(d.do("GET", path, "").body, &page); err != nil || page.Next != next {
			t.Errorf("%s: next %d, want %d (%v)", path, page.Next, next, err)
		}
	}
}

func TestReports_HaveIDOfTheirRow(t *testing.T) {
	d := newFixture(t, nil)
	got := d.do("GET", "/admin/v1/reconciliations", "")
	if !strings.Contains(string(got.body), `"id":7,"product_id":1`) || !strings.Contains(string(got.body), `"balanced":false`) {
		t.Errorf("got %s", got.body)
	}
}

func TestOrder_InLedgerIsQueuedWithoutStory(t *testing.T) {
	d := newFixture(t, nil)
	got := d.do("GET", "/admin/v1/orders/"+waiting.String(), "")
	if got.status != http.StatusOK || !strings.Contains(string(got.body), `"status":"queued","reason":""`) || !strings.Contains(string(got.body), `"story":[]`) {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestOrder_OnRetryLadderIsQueued(t *testing.T) {
	d := newFixture(t, nil)
	got := d.do("GET", "/admin/v1/orders/"+onLadder.String(), "")
	if !strings.Contains(string(got.body), `"status":"queued","reason":"bad data"`) {
		t.Errorf("got %s", got.body)
	}
	d.refused(seckill.CodeNotFound, "", "GET", "/admin/v1/orders/"+absent.String(), "")
}

// An order of which nobody can tell yet is no order that does not exist.
func TestOrder_ThatMayBeQueuedIsBusy(t *testing.T) {
	d := newFixture(t, nil)
	d.refused(seckill.CodeBusy, "it may be queued", "GET", "/admin/v1/orders/"+maybe.String(), "")
	for _, move := range []string{"cancel", "refund"} {
		d.refused(seckill.CodeBusy, "it may be queued", "POST", "/admin/v1/orders/"+maybe.String()+"/"+move, "")
	}
}

func TestSearch_ReportsIncompleteResult(t *testing.T) {
	d := newFixture(t, nil)
	for buyer, partial := range map[string]string{"half": `"partial":true`, "bob": `"partial":false`, "nobody": `"partial":false`} {
		if got := d.do("GET", "/admin/v1/orders?buyer="+buyer, ""); got.status != http.StatusOK || !strings.Contains(string(got.body), partial) {
			t.Errorf("%s: %d %s", buyer, got.status, got.body)
		}
	}
}

func TestStream_SendsUntilServerStops(t *testing.T) {
	stop, began := make(chan struct{}), time.Now()
	d := newFixture(t, func(o *Options) {
		o.StreamEvery, o.Stop = 5*time.Millisecond, stop
		o.Now = func() time.Time { return at.Add(time.Since(began)) }
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", d.url+"/admin/v1/stats/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := d.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	beats, comments := 0, 0
	for lines.Scan() {
		data, isData := strings.CutPrefix(lines.Text(), "data: ")
		var beat boardJSON
		switch {
		case isData && json.Unmarshal([]byte(data), &beat) == nil:
			beats++
		case lines.Text() == ": busy":
			comments++
		}
		if isData && (len(beat.Products) != 1 || len(beat.Failed) != 1 || beat.Failed[0] != 2) {
			t.Errorf("beat %s", data)
		}
		switch { // three beats, an outage, and the stop
		case comments > 0 && stop != nil:
			close(stop)
			stop = nil
		case beats == 3:
			d.engine.fail(errOutage)
		}
	}
	if beats < 3 || comments == 0 || lines.Err() != nil {
		t.Errorf("%d beats, %d comments, %v", beats, comments, lines.Err())
	}
}

func TestStream_CountIsBounded(t *testing.T) {
	stop := make(chan struct{})
	d := newFixture(t, func(o *Options) { o.Stop = stop })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range maxStreams {
		request, err := http.NewRequestWithContext(ctx, "GET", d.url+"/admin/v1/stats/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := d.client.Do(request)
		if err != nil || response.StatusCode != 200 {
			t.Fatalf("stream: %v %v", response, err)
		}
		defer func() { _, _ = io.Copy(io.Discard, response.Body); _ = response.Body.Close() }()
	}
	d.refused(seckill.CodeTooHot, "streams", "GET", "/admin/v1/stats/stream", "")
	close(stop)
}
