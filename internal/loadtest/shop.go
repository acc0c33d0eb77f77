package loadtest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/challenge"
)

// shop is one connection to the public API with its request buffers. It serves one
// goroutine.
type shop struct {
	at  target
	req fasthttp.Request
	res fasthttp.Response
	one *fasthttp.HostClient
}

func newShop(at target) *shop {
	return &shop{at: at, one: &fasthttp.HostClient{
		Addr: at.addr, IsTLS: at.tls, MaxConns: 1, DialDualStack: true,
		ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		MaxIdleConnDuration:      time.Minute, // below the server's 75 s
		NoDefaultUserAgentHeader: true,
		// Retries are decided by the buyer, and counted.
		RetryIfErr: func(*fasthttp.Request, int, error) (resetTimeout, retry bool) { return false, false },
	}}
}

func (s *shop) close() { s.one.CloseIdleConnections() }

// answer is a response. Its body is valid until the next request.
type answer struct {
	status int
	code   seckill.Code // of an error
	after  time.Duration
	body   []byte
}

// send sends a request whose headers are set, and resets it.
func (s *shop) send(method, path string, body []byte) (answer, error) {
	s.req.SetRequestURI(s.at.base + path)
	s.req.Header.SetMethod(method)
	if body != nil {
		s.req.Header.SetContentType("application/json")
		s.req.SetBodyRaw(body)
	}
	err := s.one.Do(&s.req, &s.res)
	s.req.Reset()
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	a := answer{status: s.res.StatusCode(), body: s.res.Body()}
	if a.status/100 != 2 {
		a.code = codeOf(a.body)
		if seconds, err := strconv.Atoi(string(s.res.Header.Peek("Retry-After"))); err == nil && seconds > 0 {
			a.after = min(time.Duration(seconds)*time.Second, MaxDuration)
		}
	}
	return a, nil
}

var codeField = []byte(`"code":"`)

// codeOf finds the code in a problem document. In a JSON string the quotes would be
// escaped, so it cannot match inside a text.
func codeOf(document []byte) seckill.Code {
	_, rest, found := bytes.Cut(document, codeField)
	code, _, closed := bytes.Cut(rest, []byte{'"'})
	if !found || !closed {
		return ""
	}
	return seckill.Code(code)
}

func (s *shop) as(authorization string) *shop {
	s.req.Header.Set("Authorization", authorization)
	return s
}

// time reads the server's clock.
func (s *shop) time() (time.Time, error) {
	a, err := s.send(fasthttp.MethodGet, "/api/v1/time", nil)
	if err != nil {
		return time.Time{}, err
	}
	var now struct {
		MS int64 `json:"now_ms"`
	}
	if err := json.Unmarshal(a.body, &now); err != nil || a.status != fasthttp.StatusOK || now.MS == 0 {
		return time.Time{}, fmt.Errorf("status %d without a time: is this the shop?", a.status)
	}
	return time.UnixMilli(now.MS), nil
}

func (s *shop) product(id uint32) (api.Product, error) {
	var product api.Product
	a, err := s.send(fasthttp.MethodGet, fmt.Sprintf("/api/v1/products/%d", id), nil)
	if err != nil {
		return product, err
	}
	err = a.into(&product)
	return product, err
}

// refusal is a response other than 2xx.
type refusal struct {
	status int
	code   seckill.Code
	after  time.Duration // Retry-After
}

func (r *refusal) Error() string {
	text := fmt.Sprintf("status %d %s", r.status, r.code)
	if r.code == seckill.CodeRateLimited {
		text += ": all buyers of a load test come from one address; start the instances with SECKILL_LIMIT_IP_PER_SECOND=0 and SECKILL_LIMIT_OTHER_IP_PER_SECOND=0 for as long as it runs"
	}
	return text
}

func (a *answer) into(value any) error {
	if a.status/100 != 2 {
		return &refusal{a.status, a.code, a.after}
	}
	if err := json.Unmarshal(a.body, value); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// buy claims a product. All buyers share the path and, without tokens, the body.
func (s *shop) buy(path string, body []byte, authorization, key string) (answer, error) {
	s.req.Header.Set("Idempotency-Key", key)
	return s.as(authorization).send(fasthttp.MethodPost, path, body)
}

// challenge gets a challenge and solves it, as the shop's page does. A program
// cannot solve a picture or the task of a shop's own verifier.
func (s *shop) challenge(product uint32, authorization string) (id, answer string, ends time.Time, err error) {
	var posed struct {
		ID         string         `json:"challenge_id"`
		Type       challenge.Kind `json:"type"`
		Difficulty int            `json:"difficulty"`
		ExpiresAt  api.Time       `json:"expires_at"`
	}
	a, err := s.as(authorization).send(fasthttp.MethodPost, fmt.Sprintf("/api/v1/products/%d/challenge", product), []byte("{}"))
	if err != nil {
		return "", "", ends, err
	}
	if err := a.into(&posed); err != nil {
		return "", "", ends, err
	}
	switch posed.Type {
	case challenge.None:
	case challenge.Pow:
		answer = challenge.Solve(posed.ID, posed.Difficulty)
	default:
		return "", "", ends, fmt.Errorf("a challenge of type %q has no answer that a load test could give: start the instances with SECKILL_CHALLENGE_KIND=pow for as long as it runs", posed.Type)
	}
	return posed.ID, answer, posed.ExpiresAt.Time(), nil
}

// token gets the purchase token for a solved challenge.
func (s *shop) token(product uint32, authorization, challengeID, answer string) (token string, ends time.Time, err error) {
	a, err := s.as(authorization).send(fasthttp.MethodPost, fmt.Sprintf("/api/v1/products/%d/token", product),
		fmt.Appendf(nil, `{"challenge_id":%q,"answer":%q}`, challengeID, answer))
	if err != nil {
		return "", ends, err
	}
	var granted struct {
		Token     string   `json:"token"`
		ExpiresAt api.Time `json:"expires_at"`
	}
	err = a.into(&granted)
	return granted.Token, granted.ExpiresAt.Time(), err
}

// orderOf reads the order number from a 202.
func orderOf(a *answer) (string, error) {
	var accepted struct {
		OrderNo string `json:"order_no"`
	}
	if err := a.into(&accepted); err != nil {
		return "", err
	}
	if _, err := seckill.ParseOrderNo(accepted.OrderNo); err != nil {
		return "", fmt.Errorf("202 with order number %q: %w", accepted.OrderNo, err)
	}
	return accepted.OrderNo, nil
}

func (s *shop) order(authorization, no string) (api.Order, error) {
	var order api.Order
	a, err := s.as(authorization).send(fasthttp.MethodGet, "/api/v1/orders/"+no, nil)
	if err != nil {
		return order, err
	}
	err = a.into(&order)
	return order, err
}

// orders reads a buyer's newest orders. No buyer of the test has more.
func (s *shop) orders(authorization string) ([]api.Order, error) {
	a, err := s.as(authorization).send(fasthttp.MethodGet, "/api/v1/orders?limit=100", nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Orders []api.Order `json:"orders"`
	}
	err = a.into(&list)
	return list.Orders, err
}

func (s *shop) cancel(authorization, no string) error {
	a, err := s.as(authorization).send(fasthttp.MethodPost, "/api/v1/orders/"+no+"/cancel", []byte("{}"))
	if err != nil {
		return err
	}
	return a.into(&api.Order{})
}

// payment is the sandbox's callback body.
type payment struct {
	OrderNo     string `json:"order_no"`
	TradeNo     string `json:"trade_no"`
	AmountCents int64  `json:"amount_cents"`
	Currency    string `json:"currency"`
}

// notify delivers a signed callback.
func (s *shop) notify(secret []byte, p payment) error {
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("write callback: %w", err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	s.req.Header.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
	a, err := s.send(fasthttp.MethodPost, "/api/v1/payments/sandbox/notify", body)
	if err != nil {
		return err
	}
	return a.into(&struct{}{})
}
