package ledgerredis

import (
	"testing"

	"seckill/internal/ledger"
	"seckill/test/server"
)

// A counter that was deleted, or that somebody's own entry overtook, must not
// stop the bucket: it catches up with the stream, within the call that finds it.
func TestACounterBehindItsStreamCatchesUp(t *testing.T) {
	for name, damage := range map[string]func(s *server.RedisServer, out, queue string){
		"the counter was deleted": func(s *server.RedisServer, _, queue string) { s.Must("DEL", queue) },
		"an entry was added by hand": func(s *server.RedisServer, out, _ string) {
			s.Must("XDEL", out, s.Must("XADD", out, "*", "a", "b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, _ := standalone(t, server.RedisOptions{})
			bucket := bucketOf(r.shard.Group, r.shard.Index)
			out := r.ledger.keys.out(bucket)
			r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
			r.expect(ledger.OutcomeApplied, 2, 1, reserve(r.claim("bob", "")))
			damage(s, out, r.ledger.keys.queue(bucket))
			r.expect(ledger.OutcomeApplied, 3, 2, reserve(r.claim("cat", ""), r.claim("cat", "")))
			r.expect(ledger.OutcomeApplied, 4, 3, ledger.Adopt(reserve(r.claim("dan", ""))))
			r.sold(5)
			if n := s.Must("XLEN", out); n != "4" {
				t.Errorf("%s entries", n)
			}
			held, err := r.ledger.Held(r.ctx(), r.shard, "cat")
			if err != nil || len(held) != 2 || len(held[0].Entry.Claims) != 1 {
				t.Errorf("the orders do not know their entry: %+v, %v", held, err)
			}
		})
	}
}
