package loadtest

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
)

func TestCheckTarget_RefusesUnnamedRemoteHosts(t *testing.T) {
	for _, c := range []struct {
		address string
		meant   []string
		ok      bool
	}{
		{"http://127.0.0.1:8080", nil, true},
		{"http://127.8.8.8:8080/", nil, true},
		{"http://[::1]:8080", nil, true},
		{"http://localhost", nil, true},
		{"http://10.0.0.5:8080", nil, false},
		{"http://10.0.0.5:8080", []string{"10.0.0.5"}, true},
		{"http://10.0.0.5:8080", []string{"10.0.0.6"}, false},
		{"https://shop.test", []string{"shop.test"}, true},
		{"http://localhost.shop.test", nil, false},
		{"http://127.0.0.1.shop.test", nil, false},
		{"http://0.0.0.0:8080", nil, false},
		{"ftp://127.0.0.1", nil, false},
		{"127.0.0.1:8080", nil, false},
		{"http://127.0.0.1/elsewhere", nil, false},
		{"http://u:p@127.0.0.1:8080", nil, false},
	} {
		if err := CheckTarget(c.address, c.meant); (err == nil) != c.ok {
			t.Errorf("%s meant %v: %v", c.address, c.meant, err)
		}
	}
}

// A redirect must not get the callback's signature or the buyer's token.
func TestShop_FollowsNoRedirect(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	at, err := parseTarget(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := newShop(at)
	defer s.close()
	if err := s.notify([]byte("0123456789abcdef"), payment{}); err == nil {
		t.Error("a redirected callback counts as delivered")
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

func TestOptions_CheckBounds(t *testing.T) {
	good := Options{
		ShopURL: "http://127.0.0.1:1", Buyers: 1, Units: 1, PerUserLimit: 1, Quantity: 1, Connections: 1, Duration: time.Second,
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Options){
		"buyers":      func(o *Options) { o.Buyers = MaxBuyers + 1 },
		"units":       func(o *Options) { o.Units = 0 },
		"quantity":    func(o *Options) { o.Quantity = 0 },
		"connections": func(o *Options) { o.Connections = 0 },
		"rate":        func(o *Options) { o.Rate = math.NaN() },
		"duration":    func(o *Options) { o.Duration = 0 },
		"retries":     func(o *Options) { o.Retries = -1 },
		"pay":         func(o *Options) { o.Pay = 1.5 },
		"together":    func(o *Options) { o.Pay, o.Cancel = 0.6, 0.6 },
		"starts-in":   func(o *Options) { o.StartsIn = -1 },
		"address":     func(o *Options) { o.ShopURL = "" },
	} {
		bad := good
		spoil(&bad)
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCodeOf_IgnoresCodesInsideTexts(t *testing.T) {
	for document, want := range map[string]seckill.Code{
		`{"title":"Sold out.","status":409,"code":"sold_out"}`:           "sold_out",
		`{"title":"a \"code\":\"busy\" in a text","code":"bad_request"}`: "bad_request",
		`<html>`:       "",
		`{"code":"bus`: "",
	} {
		if got := codeOf([]byte(document)); got != want {
			t.Errorf("%s: %q, want %q", document, got, want)
		}
	}
}

func TestHeard_AnswerDecidesFate(t *testing.T) {
	no := seckill.NewOrderNo(noon, 7, 1).String()
	accepted := &answer{status: 202, body: []byte(`{"order_no":"` + no + `","status":"queued"}`)}
	for name, want := range map[string]fate{
		answerNone: fateUnknown, answerStrange: fateUnknown, "busy": fateUnknown, "too_hot": fateUnknown, "sold_out": fateRefused, "ended": fateRefused,
		"already_purchased": fateUnknown,
	} {
		var b buyer
		if b.heard(name, &answer{}); b.fate != want || (b.twist != "") != (name == "already_purchased") {
			t.Errorf("%s: fate %d, twist %q", name, b.fate, b.twist)
		}
	}
	var b buyer
	if b.heard(answerAccepted, accepted); b.fate != fateWon || b.orderNo != no {
		t.Errorf("winner: %+v", b)
	}
	if b.heardRepeat(answerAccepted, accepted); b.repeat != repeatSame {
		t.Errorf("repeat: %+v", b)
	}
	other := &answer{status: 202, body: []byte(`{"order_no":"` + seckill.NewOrderNo(noon, 7, 2).String() + `"}`)}
	if b.heardRepeat(answerAccepted, other); b.repeat != repeatOther || b.twist == "" {
		t.Errorf("another order: %+v", b)
	}
	b.repeat, b.twist = repeatUnknown, ""
	if b.heardRepeat("sold_out", &answer{status: 409, code: "sold_out"}); b.repeat != repeatOther {
		t.Errorf("sold_out to a repeat: %+v", b)
	}
	var odd buyer
	if odd.heard(answerAccepted, &answer{status: 202, body: []byte(`{}`)}); odd.fate != fateUnknown || odd.twist == "" {
		t.Errorf("202 without an order: %+v", odd)
	}
}

func TestEvenly_SpreadsSample(t *testing.T) {
	numbers := make([]int, 1000)
	for i := range numbers {
		numbers[i] = i
	}
	if got := evenly(numbers, 4); len(got) != 4 || got[0] != 0 || got[1] != 250 || got[3] != 750 {
		t.Errorf("got %v", got)
	}
	if got := evenly(numbers[:3], 4); len(got) != 3 {
		t.Errorf("got %v", got)
	}
}
