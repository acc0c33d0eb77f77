package adminapi

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"seckill"
)

// with is newProduct with one member replaced, or added, or, for "", removed.
func with(t *testing.T, name, value string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(newProduct), &members); err != nil {
		t.Fatal(err)
	}
	delete(members, name)
	rest, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	if value == "" {
		return string(rest)
	}
	return strings.TrimSuffix(string(rest), "}") + `,"` + name + `":` + value + `}`
}

// Values that no field of a kind takes, beside those of its own range.
var (
	notText  = []string{"null", "1", "true", "[]", "{}", `["x"]`, `"\ud800"`, `"\udc00\ud800"`, `"tab\t"`, `"nul\u0000"`, `"\u0085"`}
	notWhole = []string{"null", `"1"`, "true", "[1]", "{}", "1.5", "1.0", "1e2", "-0", "99999999999999999999", "NaN", "01"}
	notTime  = []string{"null", "0", `""`, `"noon"`, `"2026-11-11"`, `"2026-11-11 20:00:00"`, `"2026-13-11T20:00:00Z"`, `"2026-11-11T20:00:00"`, `1762862400`}
)

func long(n int) string { return `"` + strings.Repeat("x", n) + `"` }

func TestCreateProduct_ChecksEveryField(t *testing.T) {
	d := newFixture(t, nil)
	for name, values := range map[string][]string{
		"id":             append([]string{"", "0", "-1", "4294967296"}, notWhole...),
		"name":           append([]string{"", `""`, long(201)}, notText...),
		"ref":            append([]string{long(65)}, notText...),
		"price_cents":    append([]string{"", "-1", "100000000001"}, notWhole...),
		"currency":       append([]string{`""`, `"cny"`, `"CNYY"`, `"C1Y"`, `"人"`}, notText...),
		"stock":          append([]string{"", "-1", "100000001"}, notWhole...),
		"per_user_limit": append([]string{"0", "-1", "1001"}, notWhole...),
		"limit_group":    append([]string{"0", "-1", "4294967296"}, notWhole...),
		"starts_at":      append([]string{"", `"2026-11-11T22:00:00+08:00"`, `"1999-11-11T22:00:00Z"`}, notTime...),
		"ends_at":        append([]string{"", `"2026-11-11T20:00:00+08:00"`, `"2026-11-11T19:59:59+08:00"`}, notTime...),
		"shards":         append([]string{"0", "-1", "257", "2"}, notWhole...),
		"strategy":       append([]string{`""`, `"Async"`, `"fast"`, long(17)}, notText...),
		"fallback":       append([]string{`""`, `"Store"`, `"never"`, long(17)}, notText...),
		"unlisted":       {"null", "1", `"true"`, "[]"},
		"reason":         append([]string{long(201)}, notText...),
	} {
		for _, value := range values {
			names := name
			if value == "NaN" || value == "01" {
				names = "JSON" // not JSON at all
			}
			d.refused(seckill.CodeBadRequest, names, "POST", "/admin/v1/products", with(t, name, value))
		}
	}
}

func TestPatch_ChecksEveryField(t *testing.T) {
	d := newFixture(t, nil)
	const path = "/admin/v1/products/1"
	for name, values := range map[string][]string{
		"name":           append([]string{`""`, long(201)}, notText...),
		"ref":            append([]string{long(65)}, notText...),
		"price_cents":    {"-1", "100000000001", "null", `"1"`, "1.5"},
		"currency":       {`"cny"`, `"CNYY"`, "null", "1"},
		"per_user_limit": {"0", "1001", "null", `"1"`, "1.5"},
		"starts_at":      notTime,
		"ends_at":        notTime,
		"reason":         {long(201), "1"},
		"stock":          {"5"}, // by /stock only
		"id":             {"2"},
		"shards":         {"2"},
		"strategy":       {`"async"`},
		"limit_group":    {"1"},
		"fallback":       {`"store"`},
		"unlisted":       {"null", "0", `"false"`},
	} {
		for _, value := range values {
			d.refused(seckill.CodeBadRequest, name, "PATCH", path, `{"`+name+`":`+value+`}`)
		}
	}
	d.refused(seckill.CodeBadRequest, "at least one field", "PATCH", path, `{}`)
	d.refused(seckill.CodeBadRequest, "at least one field", "PATCH", path, ``)
	d.refused(seckill.CodeBadRequest, "at least one field", "PATCH", path, `{"reason":"just so"}`)
}

func TestChanges_CheckEveryField(t *testing.T) {
	d := newFixture(t, nil)
	const stock, reconcile = "/admin/v1/products/1/stock", "/admin/v1/reconciliations"
	for _, value := range append([]string{"0", "100000001", "-100000001"}, notWhole[:10]...) {
		d.refused(seckill.CodeBadRequest, "delta", "POST", stock, `{"delta":`+value+`}`)
	}
	d.refused(seckill.CodeBadRequest, "delta", "POST", stock, ``)
	for _, value := range append([]string{`""`, long(65)}, notText...) {
		d.refused(seckill.CodeBadRequest, "change_id", "POST", stock, `{"delta":1,"change_id":`+value+`}`)
	}
	for header, names := range map[string]string{
		"Idempotency-Key: ": "Idempotency-Key", "Idempotency-Key: " + strings.Repeat("k", 65): "Idempotency-Key",
		"Idempotency-Key: other": "same", "X-Operator: ": "X-Operator", "X-Operator: \xff": "X-Operator",
		"X-Operator: " + strings.Repeat("o", 65): "X-Operator",
	} {
		d.refused(seckill.CodeBadRequest, names, "POST", stock, `{"delta":1,"change_id":"one"}`, header)
	}
	for _, value := range append([]string{"0", "4294967296"}, notWhole[:10]...) {
		d.refused(seckill.CodeBadRequest, "product_id", "POST", reconcile, `{"product_id":`+value+`}`)
	}
	d.refused(seckill.CodeBadRequest, "product_id", "POST", reconcile, `{"repair":true}`)
	for _, value := range []string{"null", "0", `"true"`, "[]"} {
		d.refused(seckill.CodeBadRequest, "repair", "POST", reconcile, `{"product_id":1,"repair":`+value+`}`)
	}
	for _, value := range append([]string{`""`, `"yesterday"`, `"2026-11-11"`}, notText...) {
		d.refused(seckill.CodeBadRequest, "from", "POST", "/admin/v1/sinks/shop/replay", `{"from":`+value+`}`)
	}
	d.refused(seckill.CodeBadRequest, "from", "POST", "/admin/v1/sinks/shop/replay", ``)
	no := orderNo.String()
	for _, path := range []string{
		"/products/1/preheat", "/products/1/pause", "/products/1/resume", "/products/1/end", "/products/1/recover", "/products/1/takeover",
		"/orders/" + no + "/cancel", "/orders/" + no + "/refund", "/dead-letters/5/retry", "/dead-letters/5/discard",
		"/payments/RF5/retry", "/sinks/shop/deliveries/5/retry", "/sinks/shop/deliveries/5/skip", "/sinks/shop/retry", "/sinks/shop/skip", "/sinks/shop/forget", "/sinks/shop/test",
	} {
		for _, value := range append([]string{long(201)}, notText...) {
			d.refused(seckill.CodeBadRequest, "reason", "POST", "/admin/v1"+path, `{"reason":`+value+`}`)
		}
		d.refused(seckill.CodeBadRequest, "force", "POST", "/admin/v1"+path, `{"force":true}`)
	}
}

func TestBody_MustBeOneStrictObject(t *testing.T) {
	d := newFixture(t, nil)
	huge := `{"reason":"` + strings.Repeat("x", maxBodyBytes) + `"}`
	for _, c := range []struct{ name, body, names, header string }{
		{"unknown field", with(t, "colour", `"red"`), "colour", ""},
		{"other case", with(t, "Ref", `"x"`), "Ref", ""},
		{"twice", with(t, "id", `1,"id":2`), "once", ""},
		{"twice in two cases", with(t, "stock", `1,"Stock":2`), "once", ""},
		{"65 fields", `{` + strings.Repeat(`"x":1,`, 64) + `"y":1}`, "at most 64", ""},
		{"lone surrogate in a name", with(t, `\ud800`, "1"), "surrogate", ""},
		{"lone surrogate in an unknown field", with(t, "colour", `["\udc00"]`), "colour", ""},
		{"trailing object", newProduct + `{}`, "after", ""},
		{"trailing word", newProduct + `x`, "after", ""},
		{"array", `[` + newProduct + `]`, "object", ""},
		{"string", `"x"`, "object", ""},
		{"null", `null`, "object", ""},
		{"blank", ` `, "object", ""},
		{"cut off", newProduct[:len(newProduct)-1], "JSON", ""},
		{"comma", strings.Replace(newProduct, "{", "{,", 1), "JSON", ""},
		{"deep", strings.Repeat("[", maxBodyBytes), "object", ""},
		{"deep inside", `{"id":` + strings.Repeat("[", maxBodyBytes-100), "JSON", ""},
		{"not UTF-8", strings.Replace(newProduct, "Phone", "Ph\xffone", 1), "UTF-8", ""},
		{"UTF-16", "\xff\xfe{\x00}\x00", "UTF-8", ""},
		{"byte order mark", "\ufeff" + newProduct, "object", ""},
		{"huge", huge, "16384", ""},
		{"just too long", newProduct + strings.Repeat(" ", maxBodyBytes+1-len(newProduct)), "16384", ""},
		{"form", newProduct, "Content-Type", "Content-Type: application/x-www-form-urlencoded"},
		{"no type", newProduct, "Content-Type", "Content-Type: "},
		{"type mumbled", newProduct, "Content-Type", "Content-Type: application/json; charset"},
		{"latin 1", newProduct, "Content-Type", "Content-Type: application/json; charset=latin1"},
		{"compressed", newProduct, "Content-Type", "Content-Encoding: gzip"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := *d
			d.T = t
			var headers []string
			if c.header != "" {
				headers = append(headers, c.header)
			}
			d.refused(seckill.CodeBadRequest, c.names, "POST", "/admin/v1/products", c.body, headers...)
		})
	}
	padded := newProduct + strings.Repeat(" ", maxBodyBytes-len(newProduct))
	if got := d.do("POST", "/admin/v1/products", padded, "Content-Type: application/json; charset=UTF-8"); got.status != 201 {
		t.Errorf("the longest body: %d %s", got.status, got.body)
	}
}

func TestParameters_AreAllChecked(t *testing.T) {
	d := newFixture(t, nil)
	bad := func(method, path, names string) {
		t.Helper()
		d.refused(seckill.CodeBadRequest, names, method, "/admin/v1"+path, "")
	}
	for _, id := range []string{"0", "-1", "+1", "01", "1.0", "abc", "4294967296", "1%00", "%FF", "99999999999999999999", "%E4%B8%80"} {
		bad("GET", "/products/"+id, "id")
		bad("PATCH", "/products/"+id, "id")
		bad("GET", "/products/"+id+"/stats", "id")
		for _, verb := range []string{"preheat", "pause", "resume", "end", "stock", "recover", "takeover"} {
			bad("POST", "/products/"+id+"/"+verb, "id")
		}
	}
	for _, id := range []string{"0", "-1", "x", "9223372036854775808"} {
		bad("POST", "/dead-letters/"+id+"/retry", "id")
		bad("POST", "/dead-letters/"+id+"/discard", "id")
	}
	for _, id := range []string{"0", "-1", "x", "9223372036854775808", "evt_", "evt_1", "evt_4F0C1d6a3be1b0f2a7c9d85e6f301b24", eventID + "00"} {
		bad("POST", "/sinks/shop/deliveries/"+id+"/retry", "id")
		bad("POST", "/sinks/shop/deliveries/"+id+"/skip", "id")
	}
	for _, name := range []string{strings.Repeat("s", 65), "%FF", "s%0A"} {
		bad("POST", "/sinks/"+name+"/retry", "name")
		bad("GET", "/sinks/"+name+"/deliveries", "name")
	}
	for _, id := range []string{strings.Repeat("R", 65), "%FF", "R%0A"} {
		bad("POST", "/payments/"+id+"/retry", "id")
	}
	no := orderNo.String()
	for _, wrong := range []string{"1", no[2:], strings.ToLower(no), no + "0", "SK8" + no[3:], "SK00000000000000000000000000", "%FF"} {
		bad("GET", "/orders/"+wrong, "order_no")
		bad("POST", "/orders/"+wrong+"/cancel", "order_no")
		bad("POST", "/orders/"+wrong+"/refund", "order_no")
		bad("GET", "/orders?before="+wrong, "before")
		bad("GET", "/audit?order_no="+wrong, "order_no")
	}
	for _, path := range []string{"/orders", "/dead-letters", "/reconciliations", "/audit", "/payments", "/events"} {
		for _, limit := range []string{"0", "-1", "1001", "x", "", "1.5", "007"} {
			bad("GET", path+"?limit="+limit, "limit")
		}
		bad("GET", path+"?limit=1&limit=2", "limit")
		bad("GET", path+"?colour=red", "colour")
		bad("GET", path+"?limit=%zz", "query")
		bad("GET", path+"?a;b", "query")
	}
	for _, path := range []string{"/orders", "/dead-letters", "/reconciliations", "/audit", "/payments"} {
		for _, id := range []string{"-1", "4294967296", "x", ""} {
			bad("GET", path+"?product_id="+id, "product_id")
		}
		if path != "/payments" { // there 0 is money of no product
			bad("GET", path+"?product_id=0", "product_id")
		}
	}
	for query, names := range map[string]string{
		"/orders?status=queued": "status", "/orders?status=0": "status", "/orders?buyer=": "buyer",
		"/orders?buyer=%FF": "buyer", "/orders?buyer=%00": "buyer", "/orders?buyer=" + strings.Repeat("b", 65): "buyer",
		"/orders?ref=" + strings.Repeat("r", 129): "ref", "/dead-letters?state=alive": "state",
		"/dead-letters?after=-1": "after", "/events?after=-1": "after", "/events?after=x": "after",
		"/audit?before=0": "before", "/payments?type=gift": "type", "/payments?order_no=" + strings.Repeat("o", 65): "order_no",
		"/products?x=1": "x", "/products?limit=0": "limit", "/products?limit=5001": "limit", "/products?after=-1": "after", "/products/1?x=1": "x", "/products/1/stats?x=1": "x", "/stats/stream?x=1": "x",
		"/orders/" + no + "?x=1": "x", "/sinks?x=1": "x", "/sinks/shop/deliveries?status=lost": "status",
		"/sinks/shop/deliveries?order=up": "order", "/sinks/shop/deliveries?message_id=evt_1": "message_id",
		"/sinks/shop/deliveries?order_no=x": "order_no", "/sinks/shop/deliveries?before=-1": "before",
		"/sinks/shop/deliveries?after=-1": "after", "/sinks/shop/deliveries?limit=0": "limit",
	} {
		bad("GET", query, names)
	}
	d.refused(seckill.CodeBadRequest, "dry_run", "POST", "/admin/v1/products/1/pause?dry_run=1", "")
	for path := range map[string]bool{"/products/2": true, "/products/2/stats": true, "/orders/" + absent.String(): true} {
		d.refused(seckill.CodeNotFound, "", "GET", "/admin/v1"+path, "")
	}
}

// FuzzBody throws bytes at the decoder: it must not panic, and what it takes
// must be what encoding/json takes.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{newProduct, `{"a":1,"a":2}`, `{"reason":"\ud83d\ude00"}`, `{"reason":"\ud83d"}`, `{`, "", "{}\n", `{"a":{"b":[1]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		request := httptest.NewRequest("POST", "/", strings.NewReader(string(body)))
		request.Header.Set("Content-Type", "application/json")
		in := readInput(httptest.NewRecorder(), request)
		reason := in.text("reason", 0, maxReasonBytes)
		in.whole("delta", -5, 5)
		in.time("starts_at")
		in.flag("repair")
		err := in.done()
		if err == nil && len(body) > 0 && !json.Valid(body) {
			t.Errorf("took %q", body)
		}
		if err == nil && reason != nil && (!utf8.ValidString(*reason) || len(*reason) > maxReasonBytes) {
			t.Errorf("took the reason %q", *reason)
		}
	})
}
