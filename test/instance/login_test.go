package instance

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill/test/engine"
)

// TestALoginCodeIsGoodOnceAtAllInstances, however many come with it at once, and
// what it is exchanged for counts at all of them.
func TestALoginCodeIsGoodOnceAtAllInstances(t *testing.T) {
	t.Parallel()
	a, b := pair(t, shared(t))
	code, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": "ann", "aud": "seckill-login", "jti": "one", "exp": time.Now().Add(time.Minute).Unix(),
	}).SignedString([]byte(engine.JWTSecret))
	must(t, "sign", err)
	var granted, refused atomic.Int32
	var crowd sync.WaitGroup
	for i := range 40 {
		at := []*engine.Engine{a, b}[i%2]
		crowd.Go(func() {
			res, err := http.Post(at.ShopURL+"/api/v1/login", "application/json", strings.NewReader(`{"code":"`+code+`"}`))
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
			switch res.StatusCode {
			case http.StatusOK:
				granted.Add(1)
			case http.StatusUnauthorized:
				refused.Add(1)
			default:
				t.Errorf("answered %d", res.StatusCode)
			}
		})
	}
	crowd.Wait()
	if granted.Load() != 1 || refused.Load() != 39 {
		t.Errorf("%d were granted, %d refused", granted.Load(), refused.Load())
	}
}

// TestALinkOfOneInstanceIsReadAtAnother.
func TestALinkOfOneInstanceIsReadAtAnother(t *testing.T) {
	t.Parallel()
	a, b := pair(t, shared(t))
	openSale(t, a, engine.Product{ID: 1, Stock: 5})
	no := buys(t, a, 1, "ann")
	await(t, a, "ann", no, "pending")
	address, err := a.Buyer("ann").BeginPayment(t.Context(), no)
	must(t, "begin the payment", err)
	pay, err := url.Parse(address)
	must(t, "read the address", err)
	_, link, found := strings.Cut(pay.Query().Get("back"), "?link=")
	if body, status := get(t, b.ShopURL+"/api/v1/orders/"+no+"?link="+link); !found || status != http.StatusOK || !strings.Contains(body, `"pending"`) {
		t.Errorf("%d %s", status, body)
	}
}
