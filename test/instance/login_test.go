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
	"seckill/test/server"
)

// TestALoginCodeIsGoodOnceAtAllInstances, however many come with it at once, and
// what it is exchanged for counts at all of them.
func TestALoginCodeIsGoodOnceAtAllInstances(t *testing.T) {
	t.Parallel()
	a, b := pair(t, shared(t))
	code := loginCode(t, "one")
	var granted, refused atomic.Int32
	var crowd sync.WaitGroup
	for i := range 40 {
		at := []*engine.Engine{a, b}[i%2]
		crowd.Go(func() {
			switch status, err := exchange(at, code); status {
			case http.StatusOK:
				granted.Add(1)
			case http.StatusUnauthorized:
				refused.Add(1)
			default:
				t.Errorf("answered %d, %v", status, err)
			}
		})
	}
	crowd.Wait()
	if granted.Load() != 1 || refused.Load() != 39 {
		t.Errorf("%d were granted, %d refused", granted.Load(), refused.Load())
	}
}

// Without Redis nobody knows whether a code was used: none is good, while
// challenges are settled in the store.
func TestWithoutRedisNoLoginCodeIsExchanged(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	e := engine.Start(t, engine.Options{Settings: engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))})
	used, unused := loginCode(t, "used"), loginCode(t, "unused")
	if status, err := exchange(e, used); status != http.StatusOK {
		t.Fatalf("answered %d, %v", status, err)
	}
	redis.Kill()
	for range 3 {
		for _, code := range []string{used, unused} {
			if status, err := exchange(e, code); status != http.StatusServiceUnavailable {
				t.Errorf("answered %d, %v", status, err)
			}
		}
	}
}

// loginCode is a code of ann's.
func loginCode(t *testing.T, id string) string {
	t.Helper()
	return sign(t, jwt.MapClaims{"sub": "ann", "aud": "seckill-login", "jti": id, "exp": time.Now().Add(time.Minute).Unix()})
}

// sign signs as the shop's login does.
func sign(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(engine.JWTSecret))
	must(t, "sign", err)
	return text
}

// exchange asks for the login of a code, and returns the status of the answer.
func exchange(e *engine.Engine, code string) (status int, err error) {
	res, err := http.Post(e.ShopURL+"/api/v1/login", "application/json", strings.NewReader(`{"code":"`+code+`"}`))
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
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
