package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/auth"
	"seckill/test/engine"
)

// askToken goes from challenge to purchase token.
func askToken(t *testing.T, e *engine.Engine, buyer string, product uint32) string {
	t.Helper()
	base := fmt.Sprintf("%s/api/v1/products/%d/", e.ShopURL, product)
	challenge := send(t, e, http.MethodPost, base+"challenge", signedIn(t, buyer), "")
	got := send(t, e, http.MethodPost, base+"token", signedIn(t, buyer), `{"challenge_id":"`+member(t, challenge.Text, "challenge_id")+`"}`)
	if got.Status != http.StatusOK {
		t.Fatalf("ask for a token: %d %s", got.Status, got.Text)
	}
	return member(t, got.Text, "token")
}

func TestToken_OnlyTheBuyersOwnUnusedTokenBuys(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"token.required": "true"})
	openSale(t, e, engine.Product{ID: 1, Stock: 5, PerUserLimit: 2})
	openSale(t, e, engine.Product{ID: 2, Stock: 5})
	ann, bob := e.Buyer("ann"), e.Buyer("bob")
	token := askToken(t, e, "ann", 1)
	mint := func(secret string, expires time.Time) string {
		m, err := auth.NewMint([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		token, err := m.Issue(auth.TokenID{1}, "bob", 1, expires)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	oldToken, forged := mint(engine.TokenSecret, time.Now()), mint(engine.JWTSecret, time.Now().Add(time.Minute))
	fresh := member(t, send(t, e, http.MethodPost, e.ShopURL+"/api/v1/products/1/challenge", signedIn(t, "bob"), "").Text, "challenge_id")
	before := figures(t, e, 1)
	for name, c := range map[string]struct {
		token   string
		product uint32
	}{
		"none":               {"", 1},
		"another buyer's":    {token, 1},
		"another product's":  {askToken(t, e, "bob", 2), 1},
		"expired":            {oldToken, 1},
		"forged":             {forged, 1},
		"a challenge":        {fresh, 1},
		"cut":                {token[:len(token)-1], 1},
		"no token at all":    {"nonsense", 1},
		"for the other sale": {askToken(t, e, "bob", 1), 2},
	} {
		_, err := bob.Buy(t.Context(), c.product, engine.Purchase{Quantity: 1, Token: c.token, Key: "k"})
		refused(t, name, err, seckill.CodeTokenInvalid)
	}
	for name, challenge := range map[string]string{"a token": askToken(t, e, "bob", 1), "nonsense": "x"} {
		got := send(t, e, http.MethodPost, e.ShopURL+"/api/v1/products/1/token", signedIn(t, "bob"), `{"challenge_id":"`+challenge+`"}`)
		if got.Status != http.StatusForbidden || got.Code != seckill.CodeTokenInvalid {
			t.Errorf("%s for a challenge: %d %s", name, got.Status, got.Text)
		}
	}
	unchanged(t, e, 1, before)
	no := buy(t, ann, 1, engine.Purchase{Quantity: 1, Token: token})
	if again, err := ann.Buy(t.Context(), 1, engine.Purchase{Quantity: 1, Token: token, Key: "another"}); err != nil || again != no {
		t.Errorf("the token again gave %q (%v), not %q", again, err, no)
	}
	if other := buy(t, ann, 1, engine.Purchase{Quantity: 1, Token: askToken(t, e, "ann", 1)}); other == no {
		t.Error("a second token found the first order")
	}
	if got := send(t, e, http.MethodGet, e.ShopURL+"/api/v1/products/1", nil, ""); member(t, got.Text, "token_required") != "true" {
		t.Errorf("the product does not ask for a token: %s", got.Text)
	}
	checkLog(t, e, token, forged, fresh)
}

func TestSaleWindow_IsCheckedBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	operator, ann := e.Operator(), e.Buyer("ann")
	for id := range uint32(2) {
		openSale(t, e, engine.Product{ID: id + 1, Stock: 5, StartsAt: time.Now().Add(time.Hour), EndsAt: time.Now().Add(2 * time.Hour)})
	}
	_, err := ann.Buy(t.Context(), 2, engine.Purchase{Quantity: 1})
	refused(t, "buy an hour early", err, seckill.CodeNotStarted)
	// Before the start, the engine answers without checking the login.
	if got := send(t, e, http.MethodPost, e.ShopURL+"/api/v1/products/2/orders", nil, "nonsense"); got.Code != seckill.CodeNotStarted {
		t.Errorf("a stranger, an hour early: %d %s", got.Status, got.Text)
	}
	opens := time.Now().Add(2 * time.Second).Truncate(time.Millisecond)
	patch(t, e, 1, "starts_at", opens)
	var no string
	eventually(t, "the sale opens", func() bool {
		no, err = claim(t, ann, 1, engine.Purchase{Quantity: 1})
		if err != nil {
			refused(t, "buy a second early", err, seckill.CodeNotStarted)
		} else if early := time.Until(opens); early > 0 {
			t.Errorf("sold %s before the start", early)
		}
		return err == nil
	})
	patch(t, e, 1, "ends_at", time.Now().Add(time.Second))
	eventually(t, "the sale ends", func() bool {
		_, err = e.Buyer("bob").Buy(t.Context(), 1, engine.Purchase{Quantity: 5}) // refused: above the limit
		return engine.CodeOf(err) == seckill.CodeEnded
	})
	// An order outlives its sale.
	pay(t, e, await(t, ann, no, "pending"))
	await(t, ann, no, "paid")
	eventually(t, "the sale is reconciled after its end", func() bool {
		got := send(t, e, http.MethodGet, e.AdminURL+"/admin/v1/reconciliations?product_id=1", operating("x"), "")
		return strings.Contains(got.Text, `"balanced":true`)
	})
	if _, err := operator.End(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	_, err = ann.Buy(t.Context(), 2, engine.Purchase{Quantity: 1})
	refused(t, "buy what the operator ended", err, seckill.CodeEnded)
}

func TestOperator_ActionsTakeEffectAtOnceAndAreAudited(t *testing.T) {
	t.Parallel()
	overSome(t, operatorActionsTakeEffectAtOnceAndAreAudited)
}

func operatorActionsTakeEffectAtOnceAndAreAudited(t *testing.T, w way) {
	e := w.start(t, nil)
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: 2}))
	began := time.Now()
	act := func(path, body string, status int) reply {
		t.Helper()
		got := send(t, e, http.MethodPost, e.AdminURL+"/admin/v1/products/1/"+path, operating("li.na"), body)
		if got.Status != status {
			t.Fatalf("%s %s: %d %s", path, body, got.Status, got.Text)
		}
		return got
	}
	try := func(buyer string, code seckill.Code) {
		t.Helper()
		_, err := claim(t, e.Buyer(buyer), 1, engine.Purchase{Quantity: 1})
		if code == "" && err != nil || engine.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", buyer, err, code)
		}
	}
	// If the store takes longer than a second, the answer is 202 and the store
	// gets the pause later. The ledger stops at once in both cases.
	stop := func(path, body string) {
		t.Helper()
		got := send(t, e, http.MethodPost, e.AdminURL+"/admin/v1/products/1/"+path, operating("li.na"), body)
		if got.Status != http.StatusOK && got.Status != http.StatusAccepted {
			t.Fatalf("%s %s: %d %s", path, body, got.Status, got.Text)
		}
	}
	stop("pause", `{"reason":"wrong price"}`)
	try("a", seckill.CodePaused)
	act("resume", `{"reason":"price mended"}`, 200)
	try("a", "")
	try("b", "")
	try("c", seckill.CodeSoldOut)
	act("stock", `{"delta":2,"change_id":"up","reason":"delivery"}`, 200)
	act("stock", `{"delta":2,"change_id":"up","reason":"delivery"}`, 200) // sent twice, done once
	try("c", "")                                                          // at once: a push clears the flag
	act("stock", `{"delta":-1,"change_id":"down","reason":"broken one"}`, 200)
	try("d", seckill.CodeSoldOut)
	// The ledger answers wrong_state. If the store has no unsold unit either, it
	// answers bad_request before the ledger is asked.
	_, err := e.Operator().ChangeStock(t.Context(), 1, -1, "too-far")
	if code := engine.CodeOf(err); code != seckill.CodeWrongState && code != seckill.CodeBadRequest {
		t.Errorf("below what is free: %v", err)
	}
	if got := act("stock", `{"delta":9,"change_id":"up"}`, 409); got.Code != seckill.CodeWrongState {
		t.Errorf("another change under a used id: %s", got.Text)
	}
	settled(t, e, 1, "three of three are sold", func(f api.Stats) bool {
		return f.Offered == 3 && free(f) == 0 && f.Store.Pending == 3 && f.Store.Stock == 0
	})
	stop("end", `{"reason":"done"}`)
	try("d", seckill.CodeEnded)
	if got := act("resume", ``, 409); got.Code != seckill.CodeWrongState {
		t.Errorf("resume what has ended: %s", got.Text)
	}
	balanced(t, e, 1)
	audited(t, e, began, map[string]string{
		"product.pause": "wrong price", "product.resume": "price mended", "product.end": "done",
		"product.stock": "broken one",
	})
}

// audited checks that the audit has a line of li.na for each action, with its
// reason.
func audited(t *testing.T, e *engine.Engine, since time.Time, reasons map[string]string) {
	t.Helper()
	for action, reason := range reasons {
		eventually(t, "the audit has "+action+" ("+reason+")", func() bool {
			lines, err := e.Operator().Audit(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(lines, func(line api.Audit) bool {
				at := line.At.Time()
				return line.Action == action && line.Reason == reason && line.Actor == "li.na" &&
					at.After(since.Add(-time.Second)) && at.Before(time.Now().Add(time.Second))
			})
		})
	}
}

func TestPreheat_CanBeRepeatedAndIsAutomatic(t *testing.T) {
	t.Parallel()
	overSome(t, preheatCanBeRepeatedAndIsAutomatic)
}

func preheatCanBeRepeatedAndIsAutomatic(t *testing.T, w way) {
	const lead = 10 * time.Second
	e := w.start(t, map[string]string{"preheat.lead": lead.String()})
	operator := e.Operator()
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: 5}))
	buy(t, e.Buyer("ann"), 1, engine.Purchase{Quantity: 1})
	settled(t, e, 1, "nothing waits", func(f api.Stats) bool { return f.Queue.Depth == 0 && f.Store.Pending == 1 })
	before := figures(t, e, 1)
	for range 3 {
		eventually(t, "preheating again is answered", func() bool {
			_, err := operator.Preheat(t.Context(), 1)
			if err != nil && !undecided(err) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	unchanged(t, e, 1, before)

	starts := time.Now().Add(time.Hour)
	if _, err := operator.Create(t.Context(), w.product(engine.Product{
		ID: 2, Name: "later", PriceCents: price, Stock: 5, StartsAt: starts, EndsAt: starts.Add(time.Hour),
	})); err != nil {
		t.Fatal(err)
	}
	if f := figures(t, e, 2); f.Epoch != 0 {
		t.Errorf("preheated too early: %+v", f)
	}
	starts = time.Now().Add(lead + time.Second)
	patch(t, e, 2, "starts_at", starts)
	settled(t, e, 2, "the sale is preheated by itself", func(f api.Stats) bool { return f.Epoch == 1 && free(f) == 5 })
	if left := time.Until(starts); left <= 0 || left > lead+100*time.Millisecond {
		t.Errorf("preheated %s before the start", left)
	}
	patch(t, e, 2, "starts_at", time.Now())
	eventually(t, "the sale opens", func() bool {
		_, err := e.Buyer("ann").Buy(t.Context(), 2, engine.Purchase{Quantity: 1})
		return err == nil
	})
}

func TestError_TextFollowsAcceptLanguage(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 1, StartsAt: time.Now().Add(time.Hour), EndsAt: time.Now().Add(2 * time.Hour)})
	for _, c := range []struct{ accept, language string }{
		{"", "en"}, {"en", "en"}, {"zh", "zh"}, {"zh-CN,zh;q=0.9,en;q=0.8", "zh"}, {"fr, zh-TW;q=0.2", "zh"},
		{"fr, *;q=0.5", "en"}, {"en, zh;q=0.5", "en"}, {strings.Repeat("x", 2000), "en"}, {";;;,q=,zh;q=2", ""},
	} {
		header := signedIn(t, "ann")
		header.Set("Accept-Language", c.accept)
		for _, url := range []string{e.ShopURL + "/api/v1/products/1/orders", e.ShopURL + "/api/v1/products/2/token"} {
			got := send(t, e, http.MethodPost, url, header, "{}")
			lang := seckill.English
			if got.Header.Get("Content-Language") == "zh" {
				lang = seckill.Chinese
			}
			if c.language != "" && got.Header.Get("Content-Language") != c.language || got.Title != got.Code.Text(lang) {
				t.Errorf("%q: %s %s", c.accept, got.Header.Get("Content-Language"), got.Text)
			}
		}
	}
	got := send(t, e, http.MethodGet, e.AdminURL+"/admin/v1/products/9", http.Header{"Authorization": {"Bearer " + engine.AdminToken}, "Accept-Language": {"zh"}}, "")
	if !strings.Contains(got.Text, "未找到") {
		t.Errorf("the operator reads %s", got.Text)
	}
}

func TestStatus_OperatorAndShopUseTheSameWords(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	soon := time.Now().Add(time.Hour)
	openSale(t, e, engine.Product{ID: 1, Stock: 1})
	openSale(t, e, engine.Product{ID: 2, Stock: 1, StartsAt: soon, EndsAt: soon.Add(time.Hour)})
	operator := e.Operator()
	both := func(id uint32, state, status string) {
		t.Helper()
		eventually(t, "the shop says "+status, func() bool {
			shown := send(t, e, http.MethodGet, fmt.Sprint(e.ShopURL, "/api/v1/products/", id), nil, "")
			return member(t, shown.Text, "status") == status
		})
		listed, err := operator.Product(t.Context(), id)
		if err != nil || listed.State != state || string(listed.Status) != status {
			t.Errorf("the operator reads %+v, %v, want %s and %s", listed, err, state, status)
		}
		if figures := figures(t, e, id); figures.State != state || string(figures.Status) != status {
			t.Errorf("the stats are %+v, want %s and %s", figures, state, status)
		}
	}
	both(2, "open", "upcoming")
	both(1, "open", "on_sale")
	buy(t, e.Buyer("ann"), 1, engine.Purchase{Quantity: 1})
	both(1, "open", "sold_out")
	if _, err := operator.Pause(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	both(1, "paused", "paused")
	if _, err := operator.End(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	both(1, "ended", "ended")
}
