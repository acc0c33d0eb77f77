package paysandbox

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"seckill"
)

// answer is a response with its body read.
type answer struct {
	*http.Response
	body string
}

// do sends a request without following redirects.
func do(t testing.TB, request *http.Request) answer {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response, string(body)}
}

func get(t testing.TB, address, acceptLanguage string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Language", acceptLanguage)
	return do(t, request)
}

// press presses the button of the page, which posts to the address of the page.
func (s *shop) press(t testing.TB, address, acceptLanguage string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Language", acceptLanguage)
	return do(t, request)
}

func (s *shop) begin(t testing.TB) (*seckill.Order, string) {
	t.Helper()
	order := &seckill.Order{
		OrderNo: seckill.NewOrderNo(s.now, 7, 42), PriceCents: 699900, Quantity: 2, Currency: "CNY",
		PayBefore: s.now.Add(30 * time.Minute),
	}
	session, err := s.Begin(t.Context(), order, "")
	if err != nil {
		t.Fatal(err)
	}
	return order, session.PayURL
}

func TestPage_PaysAndReturnsToTheOrder(t *testing.T) {
	s := open(t)
	order, address := s.begin(t)
	back := s.press(t, address, "")
	if back.StatusCode != http.StatusSeeOther || back.Header.Get("Location") != "/#/orders/"+order.OrderNo.String() {
		t.Errorf("status %d, location %q", back.StatusCode, back.Header.Get("Location"))
	}
	if len(s.inbox) != 1 {
		t.Fatalf("%d callbacks", len(s.inbox))
	}
	notice, err := s.Notice(t.Context(), s.inbox[0].Header, s.inbox[0].Body)
	if err != nil || notice.OrderNo != order.OrderNo.String() || notice.AmountCents != order.AmountCents() {
		t.Errorf("the callback reads %+v, %v", notice, err)
	}
}

// The return address may be on another site. It is part of the signature, and
// the policy allows the form to lead there.
func TestPage_ReturnsToTheGivenAddress(t *testing.T) {
	s := open(t)
	const back = "https://sale.example/#/orders/SK1?link=abc"
	session, err := s.Begin(t.Context(), &seckill.Order{
		OrderNo: seckill.NewOrderNo(s.now, 7, 42), PriceCents: 1, Quantity: 1, Currency: "CNY", PayBefore: s.now.Add(time.Minute),
	}, back)
	if err != nil {
		t.Fatal(err)
	}
	page := get(t, session.PayURL, "")
	if !strings.Contains(page.body, `href="`+html.EscapeString(back)+`"`) {
		t.Errorf("no link back on the page: %s", page.body)
	}
	if policy := page.Header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "form-action 'self' https://sale.example") {
		t.Errorf("policy %q", policy)
	}
	if paid := s.press(t, session.PayURL, ""); paid.StatusCode != http.StatusSeeOther || paid.Header.Get("Location") != back {
		t.Errorf("status %d, location %q", paid.StatusCode, paid.Header.Get("Location"))
	}
}

func TestPage_PressingAgainIsTheSameTrade(t *testing.T) {
	s := open(t)
	_, address := s.begin(t)
	s.press(t, address, "")
	s.now = s.now.Add(time.Second)
	s.press(t, address, "")
	var trades []string
	for _, callback := range s.inbox {
		notice, err := s.Notice(t.Context(), callback.Header, callback.Body)
		if err != nil {
			t.Fatal(err)
		}
		trades = append(trades, notice.TradeNo)
	}
	if len(trades) != 2 || trades[0] != trades[1] {
		t.Errorf("trades %v, want two alike", trades)
	}
}

func TestPage_RefusesAlteredFields(t *testing.T) {
	s := open(t)
	_, address := s.begin(t)
	parsed, _ := url.Parse(address)
	for name, value := range map[string]string{
		"order_no": seckill.NewOrderNo(s.now, 7, 43).String(), "amount_cents": "1", "currency": "USD",
		"expires": "99999999999999", "back": "https://eve.example/", "sig": strings.Repeat("A", 43),
	} {
		for what, value := range map[string]string{"altered": value, "empty": "", "nonsense": "\n<script>"} {
			query := parsed.Query()
			if query.Get(name) == value {
				continue // unchanged
			}
			query.Set(name, value)
			altered := s.url + PagePath + "?" + query.Encode()
			if page := get(t, altered, ""); page.StatusCode != http.StatusForbidden || strings.Contains(page.body, "<form") {
				t.Errorf("address with %s %s: %d", name, what, page.StatusCode)
			}
			if page := s.press(t, altered, ""); page.StatusCode != http.StatusForbidden {
				t.Errorf("pressed with %s %s: %d", name, what, page.StatusCode)
			}
		}
	}
	if len(s.inbox) != 0 {
		t.Errorf("%d callbacks were delivered", len(s.inbox))
	}
}

func TestPage_ExpiredAddressIsGone(t *testing.T) {
	s := open(t)
	order, address := s.begin(t)
	s.now = order.PayBefore
	for what, page := range map[string]answer{"address": get(t, address, "zh"), "button": s.press(t, address, "")} {
		if page.StatusCode != http.StatusGone || strings.Contains(page.body, "<form") ||
			!strings.Contains(page.body, "/#/orders/"+order.OrderNo.String()) {
			t.Errorf("%s: %d, %s", what, page.StatusCode, page.body)
		}
	}
	if len(s.inbox) != 0 {
		t.Error("paid after the end")
	}
}

func TestPage_ShowsAFailureAndCanRetryTheSameTrade(t *testing.T) {
	s := open(t)
	_, address := s.begin(t)
	for _, tc := range []struct {
		fail   error
		lang   string
		status int
		text   string
	}{
		{errors.New("dial tcp: refused"), "en", 503, "The system is busy"},
		{errors.New("dial tcp: refused"), "zh", 503, "系统繁忙"},
		{seckill.Errorf(seckill.CodeTokenInvalid, "secret differs").Titled("The signature is not valid.", "签名无效"), "zh", 403, "签名无效"},
	} {
		s.fail = tc.fail
		page := s.press(t, address, tc.lang)
		if page.StatusCode != tc.status || !strings.Contains(page.body, tc.text) || strings.Contains(page.body, "dial tcp") {
			t.Errorf("%v in %s: %d, %s", tc.fail, tc.lang, page.StatusCode, page.body)
		}
		if !strings.Contains(page.body, "<form") {
			t.Error("the page has no button to press again")
		}
	}
}

func TestPage_UsesTheAcceptedLanguage(t *testing.T) {
	s := open(t)
	s.now = s.now.Truncate(time.Millisecond) // like in addresses
	_, address := s.begin(t)
	for accept, want := range map[string]string{
		"": "en", "en-US,en;q=0.9": "en", "zh-CN,zh;q=0.9,en;q=0.8": "zh", "fr, de;q=0.9, zh;q=0.1": "zh", "fr": "en",
	} {
		page := get(t, address, accept)
		if page.Header.Get("Content-Language") != want || !strings.Contains(page.body, `<html lang="`+want+`">`) {
			t.Errorf("accept %q: %s, want %s", accept, page.Header.Get("Content-Language"), want)
		}
	}
	for lang, texts := range map[string][]string{
		"zh": {"立即支付", ">¥13,998.00", "30 分钟"},
		"en": {"Pay now", "CN¥13,998.00", "30 min"},
	} {
		page := get(t, address, lang)
		for _, text := range texts {
			if !strings.Contains(page.body, text) {
				t.Errorf("%s: %q is missing", lang, text)
			}
		}
	}
}

var stylePattern = regexp.MustCompile(`(?s)<style>(.*?)</style>`)

// The policy allows exactly the style that is sent, by its hash.
func TestPage_PolicyAllowsTheStyleAndNoScript(t *testing.T) {
	s := open(t)
	_, address := s.begin(t)
	for what, page := range map[string]answer{
		"page": get(t, address, ""), "refusal": get(t, s.url+PagePath, ""), "paid": s.press(t, address, ""),
	} {
		policy := page.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") || strings.Contains(page.body, "<script") {
			t.Errorf("%s: policy %q", what, policy)
		}
		if style := stylePattern.FindStringSubmatch(page.body); style != nil {
			hash := sha256.Sum256([]byte(style[1]))
			if !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(hash[:])+"'") {
				t.Errorf("%s: the policy does not allow the page's own style", what)
			}
		}
		if page.Header.Get("Cache-Control") != "no-store" || page.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", what, page.Header)
		}
	}
}

func TestPage_BadRequestsChangeNothing(t *testing.T) {
	s := open(t)
	_, address := s.begin(t)
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, address, nil)
	if page := do(t, request); page.StatusCode != http.StatusMethodNotAllowed || page.Header.Get("Allow") == "" {
		t.Errorf("DELETE: %d", page.StatusCode)
	}
	if len(s.inbox) != 0 {
		t.Error("something was paid")
	}
}

func TestAmount_IsFormattedForReaders(t *testing.T) {
	for _, tc := range []struct {
		lang     seckill.Lang
		cents    int64
		currency string
		want     string
	}{
		{seckill.Chinese, 0, "CNY", "¥0.00"}, {seckill.Chinese, 1, "CNY", "¥0.01"}, {seckill.Chinese, 99999, "CNY", "¥999.99"},
		{seckill.English, 100000, "CNY", "CN¥1,000.00"}, {seckill.English, 123456789, "USD", "USD 1,234,567.89"},
	} {
		if got := textsOf(tc.lang).amount(tc.cents, tc.currency); got != tc.want {
			t.Errorf("%d %s is written %q, want %q", tc.cents, tc.currency, got, tc.want)
		}
	}
}
