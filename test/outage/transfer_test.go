package outage

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
	"seckill/test/market"
)

// An instance is killed while it brings units from one shard to another, after
// each step of that. The units are neither lost nor doubled: another instance
// finishes what the dead one left, and all of them are sold.
func TestAnInstanceDiesInMidTransfer(t *testing.T) {
	const scattered = 4 // shards, so that no claim and no change is served by one
	product := engine.Product{ID: sharded, Stock: 6, PerUserLimit: 2, Strategy: string(seckill.StrategySharded), Shards: scattered}
	for name, doing := range map[string]struct {
		roles []string // of who dies
		rest  []string // of who lives
		drive func(ctx context.Context, s *site)
	}{
		"for a claim": {
			[]string{engine.RoleShop}, []string{engine.RoleAdmin, engine.RoleWorker},
			func(ctx context.Context, s *site) {
				c := s.NewClaim(s.NewBuyer(), sharded, engine.Purchase{Quantity: 2, Key: "first"})
				for market.Temporary(s.Send(ctx, c)) && market.Pause(ctx, 20*time.Millisecond) {
				}
			},
		},
		"to take them away": {
			[]string{engine.RoleAdmin}, []string{engine.RoleShop, engine.RoleWorker},
			func(ctx context.Context, s *site) { s.SendChange(ctx, s.NewChange(sharded, -scattered)) },
		},
	} {
		for _, point := range []string{"transfer.after_debit", "transfer.after_credit"} {
			t.Run(name+"/"+point, func(t *testing.T) {
				t.Parallel()
				s := open(t, plan{
					products: []engine.Product{product}, roles: [][]string{doing.roles, doing.rest},
					faults:   []string{point, ""},
					settings: map[string]string{"order.expire_after": "30m"},
				})
				dying := s.engines[0]
				market.Eventually(t, "the instance dies at "+point, func(ctx context.Context) bool {
					doing.drive(ctx, s)
					return !dying.Running()
				})
				dying.Kill()
				if !strings.Contains(dying.Log(), "fault: killed at "+point+"\n") {
					t.Fatalf("it died, but not at %s", point)
				}
				if open := s.underway(scattered); open > 1 { // none if the other one was quicker than we
					t.Errorf("%d transfers were open as it died", open)
				}
				market.Eventually(t, "another finishes the transfer", func(context.Context) bool { return s.underway(scattered) == 0 })
				dying.Start()
				s.keepsItsPromises()
			})
		}
	}
}

// underway is how many transfers between shards are open: a donor's record of
// one ends in the units that are on their way.
func (s *site) underway(shards int) (open int) {
	s.t.Helper()
	const number, id = 8, 8 // bytes before the units
	for key := range strings.FieldsSeq(s.redis.Must("KEYS", fmt.Sprintf("*:shard:%d:*", sharded))) {
		for peer := range shards {
			record := s.redis.Must("HGET", key, fmt.Sprintf("out:%d", peer))
			if record != "" && strings.Trim(record[number+id:], "\x00") != "" {
				open++
			}
		}
	}
	return open
}
