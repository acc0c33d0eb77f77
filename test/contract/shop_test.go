package contract

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"seckill/test/engine"
)

const (
	// ofTheShop are the operations that the shop's port has.
	ofTheShop = `^/(api/v1/.*|healthz|readyz|openapi\.yaml)$`
	// ofSales are those that a purchase needs, and the products'.
	ofSales = `^/api/v1/products(/.*)?$`
	// ofTokens are those that a challenge decides.
	ofTokens = `^/api/v1/products/\{id\}/(challenge|token)$`
	// unknownOrder is a number without an order.
	unknownOrder = "SK01M757NBG70000008J6JNWTNKR"
)

// Two buyers send all requests to sales in every state. The second must not see
// the orders of the first.
func TestContract_ShopForBuyers(t *testing.T) {
	theTool(t)
	e := engine.Start(t, engine.Options{})
	openSales(t, e)
	orders := append(placeOrders(t, e, "ann"), placeOrders(t, e, "bob")...)
	hold(t, run{url: e.ShopURL, paths: ofTheShop, auth: signedIn(t, "ann", "bob"), orders: orders})
}

// A purchase needs a token, and a token needs a challenge. One kind of
// challenge is answered by the tool, so that it reaches every step; a program
// cannot answer the other. The kind does not change the purchase.
func TestContract_ShopTokens(t *testing.T) {
	theTool(t)
	for kind, paths := range map[string]string{"none": ofSales, "image": ofTokens} {
		t.Run(kind, func(t *testing.T) {
			e := engine.Start(t, engine.Options{Settings: map[string]string{
				"token.required": "true", "challenge.kind": kind, "challenge.per_buyer_per_minute": "10000",
			}})
			openSales(t, e)
			hold(t, run{url: e.ShopURL, paths: paths, auth: signedIn(t, "ann", "bob"), orders: []string{unknownOrder}})
		})
	}
}

// Requests without a login get unauthenticated or rate_limited.
func TestContract_ShopWithoutLogin(t *testing.T) {
	theTool(t)
	e := engine.Start(t, engine.Options{Settings: map[string]string{"limit.ip_per_second": "5", "limit.other_ip_per_second": "5"}})
	openSales(t, e)
	hold(t, run{url: e.ShopURL, paths: ofTheShop, orders: []string{unknownOrder}})
}

// signedIn configures two buyers; most requests come from the first. The check
// object_level_authorization repeats the first buyer's reads as the other
// buyer.
func signedIn(t *testing.T, first, other string) string {
	t.Helper()
	type header struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	type buyer struct {
		Name         string   `json:"name"`
		FixedHeaders []header `json:"fixedHeaders"`
	}
	// The form is that of Web Fuzzing Commons.
	var file struct {
		Auth []buyer `json:"auth"`
	}
	for _, name := range []string{first, other} {
		file.Auth = append(file.Auth, buyer{name, []header{{"Authorization", "Bearer " + bearer(t, name)}}})
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "buyers.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("\n[auth.wfc]\npath = %q\npeers = [%q, %q]\n", path, first, other)
}
