package outage

import (
	"context"
	"testing"
	"time"

	"seckill/test/market"
	"seckill/test/server"
)

const (
	trouble = 1200 * time.Millisecond // that a network is bad
	slow    = 200 * time.Millisecond
)

// ills are what happens to networks, one after the other.
var ills = []struct {
	name   string
	strike func(p *server.NetProxy)
}{
	{"slow", func(p *server.NetProxy) { p.Latency(slow) }},
	{"resets", func(p *server.NetProxy) { p.Cut(); p.Heal(); p.Cut() }},
	{"half-open", (*server.NetProxy).HalfOpen},
	{"frozen", (*server.NetProxy).Freeze},
	{"frozen replies", (*server.NetProxy).FreezeReplies},
	{"replies lost", func(p *server.NetProxy) { p.FreezeReplies(); p.Cut() }},
}

// The network between one instance and a server is bad in every way in turn,
// while the other instance's is well.
func TestOneInstanceHasABadNetwork(t *testing.T) {
	for name, network := range map[string]func(s *site) *server.NetProxy{
		"to Redis": func(s *site) *server.NetProxy { return s.toRedis[0] },
		"to store": func(s *site) *server.NetProxy { return s.toStore[0] },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, plan{networks: true})
			s.during(func(ctx context.Context) {
				market.Pause(ctx, warmUp)
				began := time.Now()
				for _, ill := range ills {
					ill.strike(network(s))
					market.Pause(ctx, trouble)
					network(s).Heal()
					market.Pause(ctx, trouble/3)
				}
				s.wantAnswers(began, time.Now())
			})
			s.keepsItsPromises()
		})
	}
}
