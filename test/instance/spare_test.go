package instance

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/challenge"
	"seckill/test/engine"
	"seckill/test/server"
)

// Whoever comes while Redis is away, where tokens are required, gets one all
// the same, and buys with it what the store sells: a direct product, and one
// that it takes over. Each instance judges a
// challenge by itself meanwhile.
func TestWithoutRedisAStrangerGetsATokenAndBuysWhatTheStoreSells(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	a, b := pair(t, engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)), map[string]string{
		"token.required": "true", "challenge.kind": "pow", "challenge.pow_bits": "8", "challenge.per_buyer_per_minute": "1000",
		"ledger.takeover_after": "1s", "ledger.return_after": "1s",
	}))
	const direct, taken = 1, 2
	openSale(t, a, engine.Product{ID: direct, Stock: 100, PerUserLimit: 1, Strategy: "direct"})
	openSale(t, a, engine.Product{ID: taken, Stock: 100, PerUserLimit: 1, Fallback: string(seckill.FallbackStore)})
	for _, id := range []uint32{direct, taken} {
		sees(t, b, id)
	}
	before := passes(t, a, "before", direct)
	for name, outage := range map[string][2]func(){
		"killed": {redis.Kill, redis.Start}, "frozen": {redis.Pause, redis.Resume},
	} {
		outage[0]()
		var crowd sync.WaitGroup
		for i, e := range []*engine.Engine{a, b, a, b} {
			crowd.Go(func() {
				buyer := fmt.Sprintf("%s-%d", name, i)
				for _, product := range []uint32{direct, taken} {
					pass := passes(t, e, buyer, product)
					if pass.took > hard*answerWithin { // once, on a machine that is busy
						t.Errorf("%s: a token took %s", name, pass.took)
					}
					await(t, e, buyer, pass.buys(t, e), "pending")
				}
			})
		}
		crowd.Wait()
		if metric(t, a, "seckill_challenge_answers_spared_total") == 0 {
			t.Errorf("%s: no answer was counted", name)
		}
		oneGuess(t, a, "guesser-"+name, direct)
		again := passes(t, a, "again-"+name, direct)
		if no := again.buys(t, a); no != again.repeats(t, b).buys(t, b) {
			t.Errorf("%s: an answer that is repeated at the other instance buys another order", name)
		}
		outage[1]()
		until(t, "the ledger sells again", func() bool { return metric(t, a, `seckill_up{part="ledger"}`) == 1 })
		after := passes(t, b, "after-"+name, taken)
		await(t, a, "after-"+name, after.buys(t, a), "pending")
		if no := again.buys(t, b); no != again.repeats(t, a).buys(t, a) {
			t.Errorf("%s: an answer of the outage buys another order after it", name)
		}
	}
	await(t, b, "before", before.buys(t, b), "pending") // a token of before
}

// pass is a purchase token, and what it was had for.
type pass struct {
	buyer         string
	product       uint32
	token         string
	challenge, by string
	took          time.Duration
}

// passes answers a challenge at an instance, until it is decided.
func passes(t *testing.T, e *engine.Engine, buyer string, product uint32) pass {
	t.Helper()
	c, err := e.Buyer(buyer).Challenge(t.Context(), product, "")
	must(t, "ask for a challenge", err)
	return pass{buyer: buyer, product: product, challenge: c.ID, by: challenge.Solve(c.ID, c.Difficulty)}.repeats(t, e)
}

// repeats redeems the answer again.
func (p pass) repeats(t *testing.T, e *engine.Engine) pass {
	t.Helper()
	var err error
	began := time.Now()
	p.token, err = e.Buyer(p.buyer).Token(t.Context(), p.product, p.challenge, p.by)
	p.took = time.Since(began)
	must(t, p.buyer+" answers a challenge", err)
	return p
}

// buys buys with the token, through answers that decide nothing.
func (p pass) buys(t *testing.T, e *engine.Engine) (no string) {
	t.Helper()
	until(t, p.buyer+" has bought", func() (bought bool) {
		var err error
		no, err = e.Buyer(p.buyer).Buy(t.Context(), p.product, engine.Purchase{Quantity: 1, Token: p.token})
		var refusal *engine.Refusal
		if errors.As(err, &refusal) && refusal.Code != seckill.CodeBusy && refusal.Code != seckill.CodeTooHot {
			t.Fatalf("%s buys product %d: %v", p.buyer, p.product, err)
		}
		return err == nil
	})
	return no
}

// oneGuess answers a challenge wrongly at an instance: it is over there.
func oneGuess(t *testing.T, e *engine.Engine, buyer string, product uint32) {
	t.Helper()
	c, err := e.Buyer(buyer).Challenge(t.Context(), product, "")
	must(t, "ask for a challenge", err)
	for i, answer := range []string{"wrong", challenge.Solve(c.ID, c.Difficulty), challenge.Solve(c.ID, c.Difficulty)} {
		if _, err := e.Buyer(buyer).Token(t.Context(), product, c.ID, answer); engine.CodeOf(err) != seckill.CodeTokenInvalid {
			t.Errorf("%s, answer %d: %v", buyer, i+1, err)
		}
	}
}
