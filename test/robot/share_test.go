package robot

import (
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"seckill"
	"seckill/internal/challenge"
	"seckill/test/engine"
)

// forgerAddr is the source address of forged logins. The engine blocks an
// address with many forgeries for a moment, so honest buyers use another one.
const forgerAddr = "127.0.0.13"

// sharedTokens uses the tokens and challenges of one account from other
// accounts and for another product. The buyer limit is one.
func sharedTokens(t *testing.T, p *pair) {
	b := p.open(t, engine.Product{ID: 11, Stock: 50}, engine.Product{ID: 12, Stock: 50})
	honest := p.crowd(t, b, 11)
	robot := New(t)
	eve := robot.Account(p.a, "robot-eve")
	token := eve.Work(11)
	posed, _ := eve.Ask(11, "")
	answer := challenge.Solve(posed.ID, posed.Difficulty)
	const thieves = 10
	Together(thieves, func(i int) {
		thief := robot.Account(p.either(i), fmt.Sprintf("robot-thief-%d", i))
		b.refused("another's token", seckill.CodeTokenInvalid, thief.Press(11, token))
		b.refused("another's challenge", seckill.CodeTokenInvalid, thief.Redeem(11, posed.ID, answer))
		b.refused("another product's token", seckill.CodeTokenInvalid, eve.At(p.either(i)).Press(12, token))
		b.refused("another product's challenge", seckill.CodeTokenInvalid, eve.At(p.either(i)).Redeem(12, posed.ID, answer))
	})
	if got := eve.Press(11, token); got.Code != "" {
		t.Errorf("its owner's token: %s", got)
	}
	b.gives(eve.Name, 1)
	// Many clients with one login, each with its own purchase token, are one
	// buyer.
	Together(thieves, func(i int) {
		hand := eve.At(p.either(i))
		b.refused("a shared login", seckill.CodeAlreadyPurchased, hand.Press(11, hand.Work(11)))
	})
	forgedLogins(b, p, robot)
	honest()
	b.close()
}

// forgedLogins alters a valid login token, and makes tokens from the published
// keys.
func forgedLogins(b *book, p *pair, robot *Robot) {
	const victim = "honest-11-0"
	own := robot.Account(p.a, "robot-forger").From(forgerAddr)
	parts := strings.Split(own.Bearer, ".")
	claims := jwt.MapClaims{"sub": victim, "exp": in(loginLife)}
	b.eventually("the login's own key is known", func() bool {
		for i := range 2 {
			if own.As(byLogin(b.t, p.key, claims)).At(p.either(i)).Send(http.MethodGet, "/api/v1/orders", "").Status != http.StatusOK {
				return false
			}
		}
		return true
	})
	forged := map[string]string{
		"another name under the old signature": parts[0] + "." + part(b.t, claims) + "." + parts[2],
		"two names":                            parts[0] + "." + text(`{"sub":"robot-forger","sub":"`+victim+`","exp":9999999999}`) + "." + parts[2],
		"no signature":                         parts[0] + "." + part(b.t, claims) + ".",
		"no signature at all":                  parts[0] + "." + part(b.t, claims),
	}
	for _, alg := range []string{"none", "None", "NONE", "", "HS384", "RS256"} {
		header := part(b.t, map[string]string{"alg": alg, "typ": "JWT"})
		forged["algorithm "+alg+", unsigned"] = header + "." + part(b.t, claims) + "."
		forged["algorithm "+alg+", another's signature"] = header + "." + part(b.t, claims) + "." + parts[2]
	}
	for name, secret := range publicHalves(b.t, p.key) {
		for _, alg := range []string{"HS256", "RS256"} {
			forged[alg+" under the public "+name] = under(b.t, secret, map[string]any{"alg": alg, "kid": keyID}, claims)
		}
	}
	for name, more := range map[string]any{"jwk": json.RawMessage(publicJWK(p.key)), "jku": "http://" + forgerAddr + "/keys", "x5u": "http://" + forgerAddr + "/cert"} {
		forged["a key of its own by "+name] = under(b.t, []byte("robot"), map[string]any{"alg": "HS256", name: more}, claims)
	}
	i := 0
	for name, bearer := range forged {
		i++ // below a hundred a second, because the engine does not check more forgeries
		forger := own.As(bearer).At(p.either(i))
		b.refused(name, seckill.CodeUnauthenticated, forger.Press(11, ""))
	}
}

// byLogin is a token signed with the login's key.
func byLogin(t *testing.T, key *rsa.PrivateKey, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = keyID
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// publicHalves are the encodings of a public key that an attacker may use as an
// HMAC secret.
func publicHalves(t *testing.T, key *rsa.PrivateKey) map[string][]byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"DER": der, "PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "JWK": []byte(publicJWK(key)), "number": key.N.Bytes(),
	}
}

// under signs with HMAC, regardless of the header.
func under(t *testing.T, secret []byte, header map[string]any, claims jwt.MapClaims) string {
	t.Helper()
	message := part(t, header) + "." + part(t, claims)
	sum := hmac.New(sha256.New, secret)
	sum.Write([]byte(message))
	return message + "." + text(string(sum.Sum(nil)))
}

func part(t *testing.T, v any) string {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text(string(encoded))
}

func text(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// manyAccounts tries every product of a limit group with each account, at both
// instances at once, with a valid token for each. Each account gets one unit.
func manyAccounts(t *testing.T, p *pair) {
	const accounts, group = 12, 71
	products := []uint32{group, group + 1, group + 2}
	var variants []engine.Product
	for _, id := range products {
		variants = append(variants, engine.Product{ID: id, Stock: 50, LimitGroup: group})
	}
	b := p.open(t, variants...)
	honest := p.crowd(t, b, group)
	robot := New(t)
	var nos [accounts][4]string
	Together(accounts*len(nos[0]), func(i int) {
		account, try := i/len(nos[0]), i%len(nos[0])
		scalper, product := robot.Account(p.either(try), fmt.Sprintf("robot-scalper-%d", account)), products[try%len(products)]
		got := scalper.Press(product, scalper.Work(product))
		if got.Status == http.StatusAccepted {
			nos[account][try] = got.OrderNo
		} else {
			b.refused("a second unit", seckill.CodeAlreadyPurchased, got)
		}
		two := fmt.Sprintf(`{"quantity":2,"token":%q}`, scalper.Work(product))
		b.refused("two at once", seckill.CodeBadRequest, scalper.decided(http.MethodPost, fmt.Sprintf("/api/v1/products/%d/orders", product), two))
	})
	for account := range accounts {
		b.gives(fmt.Sprintf("robot-scalper-%d", account), 1)
		one(t, "orders of one account", nos[account][:])
	}
	honest()
	b.close()
}
