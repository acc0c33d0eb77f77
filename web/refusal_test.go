package web_test

import (
	"testing"
	"time"

	"seckill/test/browser"
)

func TestRefusalsRetryUnderTheSameKey(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []answer
		says    string
	}{
		{"too hot", []answer{{503, "too_hot", false}, {503, "too_hot", false}, {status: 202}}, "Very many people"},
		{"busy", []answer{{503, "busy", false}, {status: 202}}, "The system is busy"},
		{"rate limited", []answer{{429, "rate_limited", false}, {status: 202}}, "A little too fast"},
		{"lost answer", []answer{{cut: true}, {status: 202}}, "No connection"},
		{"a code of a later version", []answer{{502, "melting", false}, {status: 202}}, "The system is busy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
			s.answers = c.answers
			b := openProduct(t, s, browser.Options{})
			b.Click("#buy")
			b.UntilText("#message", c.says)
			b.Shot("waiting " + c.name)
			b.UntilText("#order h2", "You are in the queue")
			asked := s.purchases()
			if len(asked) != len(c.answers) {
				t.Fatalf("%d purchases sent, want %d", len(asked), len(c.answers))
			}
			for _, p := range asked {
				if p != asked[0] {
					t.Errorf("a retry differs: %+v, first %+v", p, asked[0])
				}
			}
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	s.answers = []answer{{429, "rate_limited", false}, {status: 202}}
	b := openProduct(t, s, browser.Options{Script: `Math.random = () => 0;`}) // the shortest waits
	b.Click("#buy")
	b.UntilText("#order h2", "You are in the queue")
	if waited := s.askedAt[1].Sub(s.askedAt[0]); waited < retryAfter*time.Second {
		t.Errorf("asked again after %v", waited)
	}
}

// coolDown is the time between two presses.
const coolDown = 5 * time.Second

func TestPress_StartsCoolDown(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	s.answers = []answer{{400, "bad_request", false}}
	b := openProduct(t, s, browser.Options{})
	b.Until(isLit)
	pressed := time.Now()
	b.Click("#buy")
	b.UntilText("#buy", "Again in ")
	b.UntilText("#message", "did not understand")
	b.Click("#buy")
	b.Until(isLit)
	if cooled := time.Since(pressed); cooled < coolDown {
		t.Errorf("the button lit again %v after the press", cooled)
	}
	if n := len(s.purchases()); n != 1 {
		t.Errorf("%d purchases sent", n)
	}
}

func TestReloadFindsTheSamePress(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	s.answers = []answer{{503, "busy", false}}
	b := openProduct(t, s, browser.Options{})
	b.Click("#buy")
	b.UntilText("#message", "The system is busy")
	s.mu.Lock()
	s.answers = []answer{{status: 202}}
	s.mu.Unlock()
	b.Open(s.URL + "/?again#/products/1")
	b.UntilText("#order h2", "You are in the queue")
	asked := s.purchases()
	if first, last := asked[0], asked[len(asked)-1]; first != last {
		t.Errorf("the reload asked with %+v, the press with %+v", last, first)
	}
}

func TestStoppedPressStaysStopped(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	s.answers = []answer{{503, "too_hot", false}}
	b := openProduct(t, s, browser.Options{Script: `Math.random = () => 1;`}) // the longest waits
	b.Click("#buy")
	b.Until(`!document.querySelector('#stop').hidden`)
	b.Do(`document.querySelector('#stop').click()`)
	b.UntilText("#message", "Stopped.")
	before := s.purchases()
	b.Open(s.URL + "/?again#/products/1")
	b.Until(isLit)
	if after := s.purchases(); len(after) != len(before) {
		t.Error("a reload went on with a press that the shopper had stopped")
	}
	b.Click("#buy")
	b.Until(`document.querySelector('#buy').getAttribute('aria-busy') === 'true'`)
	b.UntilText("#message", "Very many people")
	if after := s.purchases(); after[len(after)-1].key != before[0].key {
		t.Error("pressing again forgot the first press's key")
	}
}

func TestSoldOutAfterALostAnswerStillFindsTheOrder(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	s.answers = []answer{{cut: true}, {409, "sold_out", false}}
	b := openProduct(t, s, browser.Options{})
	b.Click("#buy")
	b.UntilText("#message", "No connection")
	s.move("pending", "")
	b.UntilText("#order h2", "It’s yours!")
}

// The page accepts "sold out" only after it could read all orders. Until then the
// button keeps its idempotency key.
func TestSoldOut_NotAcceptedWhileOrdersAreUnreadable(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	s.answers = []answer{{cut: true}, {409, "sold_out", false}}
	s.partial = true
	b := openProduct(t, s, browser.Options{})
	b.Click("#buy")
	b.UntilText("#message", "it continues the same request")
	s.mu.Lock()
	s.partial = false
	s.mu.Unlock()
	s.move("pending", "")
	b.Until(isLit)
	b.Click("#buy")
	b.UntilText("#order h2", "It’s yours!")
	asked := s.purchases()
	if first, last := asked[0], asked[len(asked)-1]; first != last {
		t.Errorf("the second press asked with %+v, the first with %+v", last, first)
	}
}

func TestClosedSalesSayWhy(t *testing.T) {
	for _, c := range []struct {
		code         string
		status       int
		button, says string
	}{
		{"sold_out", 409, "Sold out", "lights up again by itself"},
		{"paused", 503, "Paused", "The sale is paused"},
		{"ended", 410, "Ended", "This sale is over"},
		{"already_purchased", 409, "View my order", "more than one person may buy"},
		{"wrong_state", 409, "Buy", "sells you nothing more"},
	} {
		t.Run(c.code, func(t *testing.T) {
			s := newStub(t)
			s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
			s.answers = []answer{{c.status, c.code, false}}
			b := openProduct(t, s, browser.Options{})
			b.Click("#buy")
			b.UntilText("#buy", c.button)
			b.UntilText("#message", c.says)
			b.Shot("closed " + c.code)
			if n := len(s.purchases()); n != 1 {
				t.Errorf("%d purchases sent, want 1", n)
			}
			if c.code == "already_purchased" {
				s.move("pending", "")
				b.Click("#buy")
				b.UntilText("#order h2", "It’s yours!")
			}
		})
	}
}
