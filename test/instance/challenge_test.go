package instance

import (
	"fmt"
	"sync"
	"testing"

	"seckill"
	"seckill/internal/challenge"
	"seckill/test/engine"
)

// A challenge that is redeemed at both instances at once, in the middle of a
// rotation of the secret, is one purchase; and one that was answered wrongly at
// one instance is over at both.
func TestInstancesJudgeAChallengeAsOne(t *testing.T) {
	t.Parallel()
	settings := shared(t, map[string]string{
		"token.required": "true", "challenge.kind": "pow", "challenge.pow_bits": "8", "challenge.per_buyer_per_minute": "1000",
	})
	const old, fresh = "old-token-secret-0123456789", "new-token-secret-0123456789"
	a := engine.Start(t, engine.Options{Settings: engine.Join(settings, map[string]string{"token.secret": old, "token.previous_secrets": fresh})})
	b := engine.Start(t, engine.Options{Settings: engine.Join(settings, map[string]string{"token.secret": fresh, "token.previous_secrets": old})})
	openSale(t, a, engine.Product{ID: 1, Stock: 100, PerUserLimit: 5})
	sees(t, b, 1)
	at := []*engine.Engine{a, b}
	for round := range 6 {
		buyer := fmt.Sprint("buyer-", round)
		c, err := at[round%2].Buyer(buyer).Challenge(t.Context(), 1, "")
		must(t, "ask for a challenge", err)
		answer := challenge.Solve(c.ID, c.Difficulty)
		var group sync.WaitGroup
		orders := make([]string, 8)
		for i := range orders {
			group.Go(func() {
				who := at[i%2].Buyer(buyer)
				token, err := who.Token(t.Context(), 1, c.ID, answer)
				if err != nil {
					t.Errorf("redeem at instance %d: %v", i%2, err)
					return
				}
				// The token of one instance buys at the other.
				if orders[i], err = settled(t, at[(i+1)%2], buyer, engine.Purchase{Quantity: 1, Token: token}); err != nil {
					t.Errorf("buy at instance %d: %v", (i+1)%2, err)
				}
			})
		}
		group.Wait()
		for _, no := range orders {
			if no != orders[0] {
				t.Fatalf("one challenge bought %v", orders)
			}
		}
		if list, err := a.Buyer(buyer).Orders(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("%s has %d orders (%v)", buyer, len(list), err)
		}
	}
	for round := range 4 {
		eve := at[round%2].Buyer("eve")
		c, err := eve.Challenge(t.Context(), 1, "")
		must(t, "ask for a challenge", err)
		_, err = eve.At(at[(round/2)%2]).Token(t.Context(), 1, c.ID, "wrong")
		if code := engine.CodeOf(err); code != seckill.CodeTokenInvalid {
			t.Errorf("a wrong answer: %v", err)
		}
		for i, e := range at {
			_, err := eve.At(e).Token(t.Context(), 1, c.ID, challenge.Solve(c.ID, c.Difficulty))
			if code := engine.CodeOf(err); code != seckill.CodeTokenInvalid {
				t.Errorf("the right one after it, at instance %d: %v", i, err)
			}
		}
	}
}

// settled sends a claim until it is decided.
func settled(t *testing.T, e *engine.Engine, buyer string, p engine.Purchase) (no string, err error) {
	t.Helper()
	until(t, "the claim of "+buyer+" is decided", func() bool {
		no, err = e.Buyer(buyer).Buy(t.Context(), 1, p)
		return engine.CodeOf(err) != seckill.CodeBusy && engine.CodeOf(err) != seckill.CodeTooHot
	})
	return no, err
}
