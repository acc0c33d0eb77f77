package outage

import (
	"context"
	"testing"

	"seckill/test/engine"
	"seckill/test/market"
)

// One of two instances of a role is killed in the middle of everything, the
// other goes on, and the first comes back.
func TestOneOfTwoIsKilled(t *testing.T) {
	for name, role := range map[string]string{"worker": engine.RoleWorker, "shop": engine.RoleShop} {
		t.Run(name, func(t *testing.T) {
			s := open(t, plan{roles: [][]string{
				{role}, {role}, rolesBeside(role), // the first of which is the victim
			}})
			victim := s.engines[0]
			s.during(func(ctx context.Context) {
				market.Pause(ctx, warmUp)
				for range 2 {
					victim.Kill()
					s.Confirmed(s.sells(ctx))
					victim.Start()
					market.Pause(ctx, warmUp/2)
				}
			})
			s.keepsItsPromises()
		})
	}
}

// rolesBeside are the other roles.
func rolesBeside(role string) []string {
	if role == engine.RoleShop {
		return []string{engine.RoleAdmin, engine.RoleWorker}
	}
	return []string{engine.RoleAdmin, engine.RoleShop}
}

// sells buys a unit at whichever instance answers.
func (s *site) sells(ctx context.Context) *market.Claim {
	s.t.Helper()
	var c *market.Claim
	market.Eventually(s.t, "the shop sells", func(context.Context) bool {
		c = s.NewClaim(s.NewBuyer(), spared, engine.Purchase{Quantity: 1, Key: "meanwhile"})
		return s.Send(ctx, c) == nil
	})
	return c
}
