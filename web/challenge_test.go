package web_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/test/browser"
)

// onePixel is a small picture.
const onePixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// guarded is a product that requires a purchase token. Its sale starts in startsIn.
func guarded(startsIn time.Duration) map[string]any {
	p := product(1, "Phone 17 Pro", startsIn)
	p["token_required"], p["token_opens_at"] = true, time.Now().Add(startsIn-time.Minute)
	if startsIn > 0 {
		p["status"] = "upcoming"
	}
	return p
}

func imageChallenge() map[string]any {
	return map[string]any{"type": "image", "image": onePixel, "alternatives": []string{"pow"}}
}

func (s *stub) solved() (types, answers []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.challenges), slices.Clone(s.answered)
}

func TestTokenIsReadyBeforeTheStart(t *testing.T) {
	s := newStub(t)
	s.challenge = map[string]any{"type": "pow"}
	s.products = []map[string]any{guarded(time.Minute)}
	b := openProduct(t, s, browser.Options{Script: `Math.random = () => 0;`})
	b.Until(isDark)
	s.until("a token", func() bool { return len(s.answered) == 1 })
	b.startSoon(s)
	b.Until(isLit)
	types, answers := s.solved()
	if len(types) != 1 || len(answers) != 1 {
		t.Fatalf("before the press: challenges %q, answers %q", types, answers)
	}
	b.Click("#buy")
	b.UntilText("#order h2", "You are in the queue")
	if asked := s.purchases(); len(asked) != 1 || asked[0].token != "pass-1" {
		t.Errorf("purchases sent: %+v", asked)
	}
}

func TestTokenIsNotAskedForBeforeItOpens(t *testing.T) {
	s := newStub(t)
	s.challenge = map[string]any{"type": "pow"}
	p := guarded(time.Hour)
	s.products = []map[string]any{p}
	b := openProduct(t, s, browser.Options{})
	b.Until(isDark)
	b.UntilText(".digits", "59")
	if types, _ := s.solved(); len(types) != 0 {
		t.Errorf("challenges %q before the token opens", types)
	}
}

func TestTokenIsRenewedBeforeItEnds(t *testing.T) {
	s := newStub(t)
	s.tokenLife = 6 * time.Second // renewed after two thirds
	s.products = []map[string]any{guarded(time.Minute)}
	s.products[0]["token_opens_at"] = time.Now().Add(-time.Minute)
	b := openProduct(t, s, browser.Options{Script: `Math.random = () => 0;`})
	b.Until(`document.querySelector('#buy') !== null`)
	s.until("a second token", func() bool { return len(s.answered) >= 2 })
}

// until waits for an action of the page.
func (s *stub) until(what string, true func() bool) {
	s.t.Helper()
	deadline := time.NewTimer(browser.StepDeadline)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		s.mu.Lock()
		ok := true()
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-look.C:
		case <-deadline.C:
			s.t.Fatalf("waited for %s", what)
		}
	}
}

func TestPictureIsAnsweredAndThePressGoesOn(t *testing.T) {
	s := newStub(t)
	s.challenge = imageChallenge()
	s.products = []map[string]any{guarded(-time.Minute)}
	b := openProduct(t, s, browser.Options{})
	b.Click("#buy")
	b.UntilText("#message", "One small check first")
	b.Until(`document.querySelector('#buy').textContent === 'Answer the check first' && document.querySelector('#buy').getAttribute('aria-busy') === 'false'`)
	b.Until(`document.activeElement?.id === 'challenge-answer'`)
	b.Shot("challenge picture")
	b.Press("wrong\r")
	b.UntilText("#challenge", "That was not it")
	b.Until(`document.activeElement?.id === 'challenge-answer'`)
	b.Click("#challenge-another")
	b.UntilText("#challenge", "Please type the characters")
	b.Until(`document.activeElement?.id === 'challenge-answer'`)
	b.Press("abcd\r")
	b.UntilText("#order h2", "You are in the queue")
	if types, answers := s.solved(); len(types) != 3 || !slices.Equal(answers, []string{"wrong", "abcd"}) {
		t.Errorf("challenges %q, answers %q", types, answers)
	}
	if asked := s.purchases(); len(asked) != 1 {
		t.Errorf("purchases sent: %+v", asked)
	}
}

func TestPicture_ProofOfWorkIsTheAlternative(t *testing.T) {
	s := newStub(t)
	s.challenge = imageChallenge()
	s.products = []map[string]any{guarded(-time.Minute)}
	b := openProduct(t, s, browser.Options{})
	b.Click("#buy")
	b.Click("#challenge-work")
	b.UntilText("#order h2", "You are in the queue")
	if types, answers := s.solved(); !slices.Equal(types, []string{"", "pow"}) || len(answers) != 1 {
		t.Errorf("challenges %q, answers %q", types, answers)
	}
}

func TestProofOfWork_CanBeLeftForThePicture(t *testing.T) {
	s := newStub(t)
	s.challenge = imageChallenge()
	s.products = []map[string]any{guarded(-time.Minute)}
	b := openProduct(t, s, browser.Options{Script: `
		localStorage.setItem('seckill_work', '1');
		globalThis.Worker = class { postMessage() { this.onmessage({ data: { tries: 2048 } }); } terminate() {} };`})
	b.Until(`document.querySelector('#challenge progress')?.value > 0.3`)
	b.Shot("challenge working")
	b.Click("#challenge-read")
	b.Until(`document.querySelector('#challenge-answer') !== null`)
}

func TestShopWidget_AnswersOnlyFromItsOrigin(t *testing.T) {
	told := make(chan url.Values, 1)
	widget := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/check" {
			told <- r.URL.Query()
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<script>opener.postMessage({ answer: 'abcd' }, new URLSearchParams(location.search).get('origin'));</script>`)
	}))
	t.Cleanup(widget.Close)
	s := newStub(t)
	s.challenge = map[string]any{"type": "shop", "widget_url": widget.URL + "/check?theme=red"}
	s.products = []map[string]any{guarded(-time.Minute)}
	b := openProduct(t, s, browser.Options{})
	b.Click("#buy")
	b.Until(`document.querySelector('#challenge-open') !== null`)
	b.Do(`postMessage({ answer: 'forged' }, '*')`)
	b.Click("#challenge-open")
	b.UntilText("#order h2", "You are in the queue")
	if _, answers := s.solved(); !slices.Equal(answers, []string{"abcd"}) {
		t.Errorf("answers %q", answers)
	}
	want := url.Values{"theme": {"red"}, "origin": {s.URL}, "product_id": {"1"}, "challenge_id": {"shop-1-" + strings.Repeat("x", 40)}, "lang": {"en"}}
	if got := <-told; !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the widget is told %v, not %v", got, want)
	}
}

func TestProofIsFoundForIdsOfEveryLength(t *testing.T) {
	s := newStub(t)
	b := openTab(t, browser.Options{})
	b.Open(s.URL)
	for _, length := range []int{1, 43, 54, 55, 63, 64, 119, 200} {
		id := base64.RawURLEncoding.EncodeToString(make([]byte, 300))[:length]
		answer := eval[string](b, fmt.Sprintf(`import('/js/prove.js').then((m) =>
			m.prove({ challenge_id: %q, difficulty: %d }, () => {}, new AbortController().signal))`, id, powDifficulty))
		if !proves(id, answer) {
			t.Errorf("%q does not prove an id of %d bytes", answer, length)
		}
	}
}
