package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"seckill"
	"seckill/internal/api"
)

const (
	// A customer gives up a step after this time: the order may have expired.
	stepWithin = 4 * time.Second
	thinkMost  = 100 * time.Millisecond
)

// promises are the order numbers that the engine answered with 202.
type promises struct {
	mu      sync.Mutex
	numbers map[string]bool
	most    int // then customers stop
}

// add reports whether customers may go on.
func (p *promises) add(orderNo string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.numbers[orderNo] = true
	return len(p.numbers) < p.most
}

func (p *promises) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.numbers)
}

// spentUser are the error codes after which a user cannot buy any more: over
// the limit, too many returned orders, or an expired token.
var spentUser = []seckill.Code{seckill.CodeAlreadyPurchased, seckill.CodeWrongState, seckill.CodeUnauthenticated}

// customer is a user of the shop, with a browser without scripts.
type customer struct {
	market *market
	name   string
	rng    *rand.Rand
	http   *http.Client
	token  string // for the engine, from the sale's page
	sale   string // the engine's product number
	keys   int
}

// shopAt buys, pays, cancels and gets refunds until ctx ends or there are
// enough orders.
func (c *customer) shopAt(ctx context.Context, p *promises) {
	for ctx.Err() == nil {
		if c.token == "" {
			c.enter(ctx)
			continue
		}
		no := c.buy(ctx)
		if no == "" {
			continue
		}
		more := p.add(no)
		switch c.rng.IntN(5) {
		case 0: // lets it expire
		case 1:
			c.press(ctx, no, "cancel")
		case 2:
			c.press(ctx, no, "pay")
			c.refund(ctx, no)
		default:
			c.press(ctx, no, "pay")
		}
		if !more {
			return
		}
		pause(ctx, time.Duration(c.rng.Int64N(int64(thinkMost))))
	}
}

// enter signs the customer up and opens the sale's page.
func (c *customer) enter(ctx context.Context) {
	jar, _ := cookiejar.New(nil) // never fails without options
	c.http = &http.Client{Jar: jar, Timeout: answerWithin}
	c.keys++
	form := url.Values{"name": {fmt.Sprintf("%s-%d", c.name, c.keys)}, "password": {"correct horse"}}
	err := c.step(ctx, func(ctx context.Context) error {
		// After a lost answer this customer already has the name.
		if err := c.post(ctx, "/sign-up", form); err != nil {
			return c.post(ctx, "/sign-in", form)
		}
		return nil
	})
	if err != nil {
		return
	}
	_ = c.step(ctx, func(ctx context.Context) error {
		page, err := c.get(ctx, "/sales/"+sku)
		if err != nil {
			return err
		}
		token, product := attribute(page, "token"), attribute(page, "product")
		if token == "" || product == "" {
			return errors.New("the page of the sale has no token")
		}
		c.token, c.sale = token, product
		return nil
	})
}

func attribute(page, name string) string {
	found := regexp.MustCompile(`data-` + name + `="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		return ""
	}
	return found[1]
}

// buy places an order at the engine, as the page's script does, and returns its
// number, or "" for none. It repeats the request under one key until the engine
// decides.
func (c *customer) buy(ctx context.Context) (orderNo string) {
	c.keys++
	key, quantity := fmt.Sprintf("%s-%d", c.name, c.keys), 1+c.rng.IntN(2)
	_ = until(ctx, func() error {
		body := fmt.Sprintf(`{"quantity":%d,"ref":%q}`, quantity, sku)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.market.engine.ShopURL+"/api/v1/products/"+c.sale+"/orders", strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+c.token)
		req.Header.Set("Idempotency-Key", key)
		res, err := c.market.http.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		var answer struct {
			OrderNo string `json:"order_no"`
			Code    string `json:"code"`
		}
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			return err
		}
		switch {
		case res.StatusCode == http.StatusAccepted:
			orderNo = answer.OrderNo
		case slices.Contains(spentUser, seckill.Code(answer.Code)):
			c.token = "" // goes on as another user
		case res.StatusCode < http.StatusInternalServerError:
			c.market.t.Errorf("a purchase is answered with %d %s", res.StatusCode, answer.Code)
		default:
			return fmt.Errorf("a purchase is answered with %d %s", res.StatusCode, answer.Code)
		}
		return nil
	})
	return orderNo
}

// press presses a button of the order's page until the shop accepts it.
func (c *customer) press(ctx context.Context, orderNo, button string) {
	_ = c.step(ctx, func(ctx context.Context) error { return c.post(ctx, "/orders/"+orderNo+"/"+button, nil) })
}

// refund refunds the order by the engine's operator API after it was paid.
func (c *customer) refund(ctx context.Context, orderNo string) {
	_ = c.step(ctx, func(ctx context.Context) error {
		_, err := c.market.engine.Operator().Refund(ctx, orderNo)
		return err
	})
}

// step repeats try for a bounded time.
func (c *customer) step(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	return until(ctx, func() error { return try(ctx) })
}

func (c *customer) get(ctx context.Context, path string) (page string, err error) {
	return c.send(ctx, http.MethodGet, path, nil)
}

func (c *customer) post(ctx context.Context, path string, form url.Values) error {
	_, err := c.send(ctx, http.MethodPost, path, form)
	return err
}

func (c *customer) send(ctx context.Context, method, path string, form url.Values) (page string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.market.shop.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := c.http.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s is answered with %d", method, path, res.StatusCode)
	}
	return string(text), err
}

// row has the fields that both sides must agree on.
type row struct {
	user, sku, status string
	quantity          int
	amountCents       int64
}

// engineRows are all orders of the engine.
func (m *market) engineRows(ctx context.Context) (map[string]row, error) {
	rows := map[string]row{}
	for before := ""; ; {
		filter := url.Values{}
		if before != "" {
			filter.Set("before", before)
		}
		orders, err := m.engine.Operator().Orders(ctx, filter)
		if err != nil {
			return nil, err
		}
		if len(orders) == 0 {
			return rows, nil
		}
		for _, o := range orders {
			rows[o.OrderNo] = rowOf(o)
		}
		before = orders[len(orders)-1].OrderNo
	}
}

func rowOf(o api.AdminOrder) row {
	return row{o.Buyer, sku, o.Status, o.Quantity, o.AmountCents}
}

// shopRows are all orders of the shop.
func (m *market) shopRows(ctx context.Context) (map[string]row, error) {
	rows := map[string]row{}
	for after, more := "", true; more; more = after != "" {
		var page struct {
			Orders []struct {
				OrderNo     string `json:"order_no"`
				SKU         string `json:"sku"`
				User        string `json:"user"`
				Quantity    int    `json:"quantity"`
				AmountCents int64  `json:"amount_cents"`
				Status      string `json:"status"`
			} `json:"orders"`
			Next string `json:"next"`
		}
		if err := m.askShop(ctx, http.MethodGet, "/orders.json?after="+after, nil, &page); err != nil {
			return nil, err
		}
		for _, o := range page.Orders {
			rows[o.OrderNo] = row{o.User, o.SKU, o.Status, o.Quantity, o.AmountCents}
		}
		after = page.Next
	}
	return rows, nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
