package e2e

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/challenge"
	"seckill/internal/challenge/verifier"
	"seckill/internal/onetime/onetimemem"
	"seckill/test/engine"
)

// ask asks for a challenge. Without one it fails the test.
func ask(t *testing.T, b *engine.Buyer, product uint32, kind string) engine.Challenge {
	t.Helper()
	c, err := b.Challenge(t.Context(), product, kind)
	if err != nil {
		t.Fatalf("%s asks for a challenge: %v", b.Name, err)
	}
	return c
}

// redeems answers a challenge. Without a token it fails the test.
func redeems(t *testing.T, b *engine.Buyer, product uint32, c engine.Challenge, answer string) string {
	t.Helper()
	token, err := b.Token(t.Context(), product, c.ID, answer)
	if err != nil {
		t.Fatalf("%s answers a challenge: %v", b.Name, err)
	}
	return token
}

// A robot with an account repeats, shares and alters proofs of work. One proof
// of its own gives it one purchase and nothing else.
func TestChallenge_ProofIsGoodForOneBuyerProductAndPurchase(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"token.required": "true", "challenge.kind": "pow", "challenge.pow_bits": "12", "challenge.per_buyer_per_minute": "100"})
	openSale(t, e, engine.Product{ID: 1, Stock: 9, PerUserLimit: 5})
	openSale(t, e, engine.Product{ID: 2, Stock: 9, PerUserLimit: 5})
	ann, eve := e.Buyer("ann"), e.Buyer("eve")

	c := ask(t, ann, 1, "")
	if c.Type != "pow" || c.Difficulty != 12 || time.Until(c.ExpiresAt) <= 0 {
		t.Fatalf("asked %+v", c)
	}
	answer := challenge.Solve(c.ID, c.Difficulty)
	_, err := eve.Token(t.Context(), 1, c.ID, answer)
	refused(t, "another buyer's challenge", err, seckill.CodeTokenInvalid)
	_, err = ann.Token(t.Context(), 2, c.ID, answer)
	refused(t, "another product's challenge", err, seckill.CodeTokenInvalid)

	token := redeems(t, ann, 1, c, answer)
	no := buy(t, ann, 1, engine.Purchase{Quantity: 1, Token: token})
	for range 3 { // a replay returns the same order
		again := redeems(t, ann, 1, c, answer)
		if found, err := ann.Buy(t.Context(), 1, engine.Purchase{Quantity: 1, Token: again}); err != nil || found != no {
			t.Errorf("a replayed answer bought %q (%v), not %q", found, err, no)
		}
	}
	_, err = eve.Buy(t.Context(), 1, engine.Purchase{Quantity: 1, Token: token})
	refused(t, "a shared token", err, seckill.CodeTokenInvalid)

	lowered := ask(t, eve, 1, "")
	_, err = eve.Token(t.Context(), 1, lowered.ID, cheap(lowered))
	refused(t, "less work than asked", err, seckill.CodeTokenInvalid)
	_, err = eve.Token(t.Context(), 1, lowered.ID, challenge.Solve(lowered.ID, lowered.Difficulty))
	refused(t, "the work after a guess", err, seckill.CodeTokenInvalid)

	if c := ask(t, eve, 1, "none"); c.Type != "pow" {
		t.Errorf("asked for kind none, got %s", c.Type)
	}
	other := buy(t, eve, 1, engine.Purchase{Quantity: 1, Token: redeems(t, eve, 1, challengeOfNoWork(t, eve), "")})
	if other == no {
		t.Error("eve found ann's order")
	}
	checkLog(t, e, token, c.ID)
}

// cheap is an answer that has too little work.
func cheap(c engine.Challenge) string {
	for zeros := c.Difficulty / 2; ; zeros-- {
		if answer := challenge.Solve(c.ID, zeros); !challenge.Solved(c.ID, answer, c.Difficulty) {
			return answer
		}
	}
}

// challengeOfNoWork is a challenge of kind none. Any instance with the same secret
// can seal one, and the engine accepts it.
func challengeOfNoWork(t *testing.T, b *engine.Buyer) engine.Challenge {
	t.Helper()
	return engine.Challenge{ID: sealedAt(t, time.Now(), b.Name, 1)}
}

// sealedAt is a challenge of kind none that was made at an instant.
func sealedAt(t *testing.T, at time.Time, buyer string, product uint32) string {
	t.Helper()
	secret := []byte(engine.TokenSecret)
	tokens, err := auth.NewMint(secret)
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := challenge.New(challenge.Options{
		Kind: challenge.None, Secrets: [][]byte{secret}, Tokens: tokens, Spent: onetimemem.New(time.Now), PerBuyerPerMinute: 1, Random: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := issuer.Pose(t.Context(), challenge.Ask{Product: &seckill.Product{ID: product, EndsAt: at.Add(time.Hour)}, Buyer: buyer}, at)
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

func TestChallenge_OpensAtTheLeadAndExpires(t *testing.T) {
	t.Parallel()
	const lead = 2 * time.Second
	e := start(t, map[string]string{"token.required": "true", "token.lead": lead.String()})
	starts := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	openSale(t, e, engine.Product{ID: 1, Stock: 5, StartsAt: starts, EndsAt: starts.Add(time.Hour)})
	ann := e.Buyer("ann")
	early := sealedAt(t, time.Now(), "ann", 1) // an instance with another lead could have made it

	got := send(t, e, http.MethodGet, e.ShopURL+"/api/v1/products/1", nil, "")
	opens, err := time.Parse(time.RFC3339, member(t, got.Text, "token_opens_at"))
	if err != nil || !opens.Equal(starts.Add(-lead)) {
		t.Errorf("opens at %v (%v), want %v before %v", opens, err, lead, starts)
	}
	_, err = ann.Challenge(t.Context(), 1, "")
	refused(t, "a challenge before the lead", err, seckill.CodeNotStarted)
	_, err = ann.Token(t.Context(), 1, early, "")
	refused(t, "a token before the lead", err, seckill.CodeNotStarted)
	opens = time.Now().Add(time.Second).Truncate(time.Millisecond)
	starts = opens.Add(lead)
	patch(t, e, 1, "starts_at", starts)
	var c engine.Challenge
	eventually(t, "challenges are asked", func() bool {
		c, err = ann.Challenge(t.Context(), 1, "")
		if err != nil {
			refused(t, "before the lead", err, seckill.CodeNotStarted)
		} else if time.Now().Before(opens) {
			t.Error("asked before the lead")
		}
		return err == nil
	})
	token := redeems(t, ann, 1, c, "")
	_, err = ann.Buy(t.Context(), 1, engine.Purchase{Quantity: 1, Token: token})
	if time.Now().Before(starts) {
		refused(t, "a purchase before the start", err, seckill.CodeNotStarted)
	}
	_, err = ann.Token(t.Context(), 1, sealedAt(t, time.Now().Add(-challenge.TTL), "ann", 1), "")
	refused(t, "an expired challenge", err, seckill.CodeTokenInvalid)
	eventually(t, "the token buys at the start", func() bool {
		_, err := ann.Buy(t.Context(), 1, engine.Purchase{Quantity: 1, Token: token})
		return err == nil
	})
	openSale(t, e, engine.Product{ID: 2, Stock: 1})
	if _, err := e.Operator().End(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	_, err = ann.Challenge(t.Context(), 2, "")
	refused(t, "a challenge after the end", err, seckill.CodeEnded)
}

func TestChallenge_ImageHasOneGuessAndAnAlternative(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{
		"token.required": "true", "challenge.kind": "image", "challenge.pow_bits": "8", "challenge.per_buyer_per_minute": "5",
	})
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	ann, eve := e.Buyer("ann"), e.Buyer("eve")
	c := ask(t, ann, 1, "")
	file, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(c.Image, "data:image/png;base64,"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(file)); err != nil || c.Type != "image" || !slices.Equal(c.Alternatives, []string{"pow"}) {
		t.Errorf("asked %s with %v, %v", c.Type, c.Alternatives, err)
	}
	other := ask(t, ann, 1, "pow")
	if other.Type != "pow" || other.Difficulty != 8+challenge.AlternativeBits || other.Image != "" {
		t.Errorf("the alternative is %+v", other)
	}
	buy(t, ann, 1, engine.Purchase{Quantity: 1, Token: redeems(t, ann, 1, other, challenge.Solve(other.ID, other.Difficulty))})

	for range 5 { // as many as a minute has
		c = ask(t, eve, 1, "")
		for range 3 {
			_, err := eve.Token(t.Context(), 1, c.ID, "AAAAA")
			refused(t, "a guess", err, seckill.CodeTokenInvalid)
		}
	}
	_, err = eve.Challenge(t.Context(), 1, "")
	if refusal := refused(t, "one more", err, seckill.CodeRateLimited); refusal == nil {
		t.Error("not limited")
	}
	_, err = eve.Challenge(t.Context(), 1, "pow")
	refused(t, "the alternative has no budget of its own", err, seckill.CodeRateLimited)
}

func TestChallenge_ExternalVerifierDecidesAndItsFailureIsBusy(t *testing.T) {
	t.Parallel()
	const secret = "verify-secret-0123456789"
	var mode atomic.Value
	mode.Store("answer")
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("X-Signature") != verifier.Signature([]byte(secret), body) {
			t.Errorf("not signed: %v", err)
		}
		switch mode.Load() {
		case "slow":
			<-r.Context().Done()
			return
		case "broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "huge":
			_, _ = io.WriteString(w, `{"ok":true,"x":"`+strings.Repeat("x", 1<<20)+`"}`)
			return
		}
		var q struct {
			Answer string `json:"answer"`
			Buyer  string `json:"buyer"`
			Addr   string `json:"addr"`
		}
		if err := json.Unmarshal(body, &q); err != nil || q.Buyer != "ann" || q.Addr != "127.0.0.1" {
			t.Errorf("asked %s, %v", body, err)
		}
		_ = json.NewEncoder(w).Encode(map[string]bool{"ok": q.Answer == "right"})
	}))
	t.Cleanup(shop.Close)
	e := start(t, map[string]string{
		"token.required": "true", "challenge.kind": "shop", "challenge.verify_url": shop.URL + "/verify", "challenge.verify_secret": secret,
		"challenge.widget_url": "https://captcha.example/widget", "challenge.per_buyer_per_minute": "100",
	})
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	ann := e.Buyer("ann")
	c := ask(t, ann, 1, "")
	if c.Type != "shop" || c.WidgetURL != "https://captcha.example/widget" {
		t.Errorf("asked %+v", c)
	}
	for _, silence := range []string{"slow", "broken", "huge"} {
		mode.Store(silence)
		began := time.Now()
		_, err := ann.Token(t.Context(), 1, c.ID, "right")
		refused(t, silence, err, seckill.CodeBusy)
		if took := time.Since(began); took > 2*verifier.Deadline {
			t.Errorf("%s: answered after %s", silence, took)
		}
	}
	mode.Store("answer")
	buy(t, ann, 1, engine.Purchase{Quantity: 1, Token: redeems(t, ann, 1, c, "right")})
	c = ask(t, ann, 1, "")
	_, err := ann.Token(t.Context(), 1, c.ID, "wrong")
	refused(t, "a wrong answer", err, seckill.CodeTokenInvalid)
	_, err = ann.Token(t.Context(), 1, c.ID, "right")
	refused(t, "a right one after it", err, seckill.CodeTokenInvalid)
	checkLog(t, e, secret, shop.URL)
}
