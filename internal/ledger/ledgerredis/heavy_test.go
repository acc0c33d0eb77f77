package ledgerredis

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/test/server"
)

const (
	heavyBatch = 512 // the default of purchase.max_batch
	// longest is the bound of a step. The shortest of heavyTries must be below it: on a busy
	// machine some steps take longer whatever they do.
	longest    = 10 * time.Millisecond
	heavyTries = 8
)

// heavy is a shard whose buyers have the largest marks: all dead orders below the bound, with
// the longest keys, and live ones.
type heavy struct {
	*rig
	server *server.RedisServer
	buyers []string
	live   []ledger.ReleaseOrder // the oldest of each buyer
	number uint64
}

// newHeavy creates such buyers. It writes their marks directly, because buying and cancelling
// so much would take minutes.
func newHeavy(t testing.TB, buyers, limit, live int) *heavy {
	t.Helper()
	s := server.Redis(t, server.RedisOptions{})
	h := &heavy{rig: newRig(t, opened(t, Options{Place: redisclient.Place{Addrs: []string{s.Addr()}}})), server: s}
	h.shard.Epoch = 2
	if _, err := h.ledger.Install(h.ctx(), ledger.Allotment{Shard: h.shard, Available: 1 << 20, Limit: limit}, nil); err != nil {
		t.Fatal(err)
	}
	h.ledger.running.Wait() // for the sweep after an install, which runs scripts too
	figures := h.ledger.keys.shard(h.shard)
	generation := s.Must("HGET", figures, "generation")
	mark := make([]byte, 0, 100*(live+ledger.MaxReturned))
	var oldest seckill.OrderNo // of the live ones
	for j := range live + ledger.MaxReturned - 1 {
		c := h.claim("", heavyKey(j))
		quantity := min(1, max(0, j-ledger.MaxReturned+2)) // the dead ones are the oldest
		if quantity > 0 && oldest == (seckill.OrderNo{}) {
			oldest = c.OrderNo
		}
		mark = append(append(mark, generation...), 0, 0, 0, 0, 0, 0)
		mark = ledger.AppendOrder(mark, c.OrderNo, quantity, c.Key)
	}
	// The server copies the mark, because to send as many megabytes takes seconds.
	s.Must("EVAL", copyScript, "1", h.ledger.keys.mark(h.shard), string(mark), strconv.Itoa(buyers))
	for i := range buyers {
		buyer := fmt.Sprint("heavy-", i)
		h.buyers = append(h.buyers, buyer)
		h.live = append(h.live, ledger.ReleaseOrder{OrderNo: oldest, Buyer: buyer})
	}
	for _, figure := range []string{"marked", "orders", "allotted"} {
		s.Must("HINCRBY", figures, figure, strconv.Itoa(buyers*live))
	}
	if ok, err := h.ledger.Open(h.ctx(), h.shard); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return h
}

const copyScript = `for i = 0, ARGV[2] - 1 do redis.call('HSET', KEYS[1], 'heavy-' .. i, ARGV[1]) end`

func heavyKey(i int) string { return fmt.Sprintf("%0*d", seckill.MaxKeyBytes, i) }

// do returns the verdicts of a step, and its time in the server.
func (h *heavy) do(w ledger.Write) ([]ledger.Verdict, time.Duration) {
	h.Helper()
	h.server.Must("CONFIG", "RESETSTAT")
	result := h.expect(ledger.OutcomeApplied, h.number+1, h.number, w).Result
	h.number++
	_, stat, found := strings.Cut(h.server.Must("INFO", "commandstats"), "cmdstat_evalsha:calls=1,usec=")
	if !found {
		h.Fatal("the server does not tell how long the script took")
	}
	stat, _, _ = strings.Cut(stat, ",")
	micros, err := strconv.Atoi(stat)
	if err != nil {
		h.Fatal(err)
	}
	return result.Verdicts, time.Duration(micros) * time.Microsecond
}

func byCode(verdicts []ledger.Verdict) map[ledger.VerdictCode]int {
	counted := make(map[ledger.VerdictCode]int)
	for _, v := range verdicts {
		counted[v.Code]++
	}
	return counted
}

// However long the marks of a batch's buyers are, its step is short. Undecided items are
// decided when they are sent again.
func TestReserve_ShortWithLongMarks(t *testing.T) {
	cases := map[string]struct {
		limit, live int
		claims      func(h *heavy, try int) []seckill.Claim
		want        ledger.VerdictCode
	}{
		"each may buy once more": {1, 0, func(h *heavy, try int) []seckill.Claim {
			return h.each(func(int) string { return fmt.Sprint("new-", try) }, 1)
		}, ledger.VerdictAccepted},
		"each asks again under an old key": {1, 0, func(h *heavy, _ int) []seckill.Claim {
			return h.each(func(i int) string { return heavyKey(i % ledger.MaxReturned / 2) }, 1)
		}, ledger.VerdictRepeated},
		"each has as many live orders as may be": {seckill.MaxPerUserLimit, seckill.MaxPerUserLimit, func(h *heavy, _ int) []seckill.Claim {
			return h.each(func(int) string { return "" }, 1)
		}, ledger.VerdictOverLimit},
		"each has nearly as many live orders as may be": {seckill.MaxPerUserLimit, seckill.MaxPerUserLimit - heavyTries, func(h *heavy, _ int) []seckill.Claim {
			return h.each(func(int) string { return "" }, 1)
		}, ledger.VerdictAccepted},
		"one buyer alternates between quantities that fit and do not fit": {seckill.MaxPerUserLimit, 1, func(h *heavy, _ int) []seckill.Claim {
			var claims []seckill.Claim
			for i := range heavyBatch {
				claims = append(claims, h.claim(h.buyers[0], ""))
				claims[i].Quantity = 1 + i%2*(seckill.MaxPerUserLimit-1)
			}
			return claims
		}, ledger.VerdictOverLimit},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHeavy(t, heavyBatch, c.limit, c.live)
			var shortest time.Duration
			for try := range heavyTries {
				claims := c.claims(h, try)
				claims = append(claims, h.claim(fmt.Sprint("calm-", try), "once"), h.claim(fmt.Sprint("calm-", max(try-1, 0)), "once"))
				verdicts, took := h.do(reserve(claims...))
				if shortest == 0 || took < shortest {
					shortest = took
				}
				n := len(verdicts)
				if verdicts[0].Code == ledger.VerdictUndecided || verdicts[n-2].Code != ledger.VerdictAccepted || verdicts[n-1].Code != ledger.VerdictRepeated {
					t.Fatalf("the first, a newcomer and who repeats are told %d, %d and %d", verdicts[0].Code, verdicts[n-2].Code, verdicts[n-1].Code)
				}
				if got := byCode(verdicts); got[c.want] == 0 || got[ledger.VerdictUndecided] == 0 {
					t.Fatalf("verdicts %v", got)
				}
			}
			t.Logf("%v", shortest)
			if shortest > longest {
				t.Errorf("no step of %d took less than %v", heavyTries, shortest)
			}
		})
	}
}

// each returns a claim for every heavy buyer.
func (h *heavy) each(key func(i int) string, quantity int) []seckill.Claim {
	claims := make([]seckill.Claim, len(h.buyers))
	for i, buyer := range h.buyers {
		claims[i] = h.claim(buyer, key(i))
		claims[i].Quantity = quantity
	}
	return claims
}

// A caller that sends undecided items again gets all of them decided.
func TestReserve_UndecidedClaimsAreDecidedWhenSentAgain(t *testing.T) {
	h := newHeavy(t, heavyBatch, 2, 1)
	claims := h.each(func(int) string { return "one more" }, 1)
	steps := 0
	for left := claims; len(left) > 0; steps++ {
		verdicts, _ := h.do(reserve(left...))
		var again []seckill.Claim
		for i, v := range verdicts {
			switch v.Code {
			case ledger.VerdictUndecided:
				again = append(again, left[i])
			case ledger.VerdictAccepted:
			default:
				t.Fatalf("verdict %d", v.Code)
			}
		}
		if len(again) == len(left) {
			t.Fatal("a step decided nothing")
		}
		left = again
	}
	if f := h.figures(); f.Orders != 2*heavyBatch || f.Available+f.Marked != f.Allotted {
		t.Errorf("%+v", f)
	}
	verdicts, _ := h.do(reserve(h.claim(h.buyers[0], "one more"), claims[heavyBatch-1]))
	for i, want := range []seckill.OrderNo{claims[0].OrderNo, claims[heavyBatch-1].OrderNo} {
		if verdicts[i].Code != ledger.VerdictRepeated || verdicts[i].OrderNo != want {
			t.Errorf("repeated: %+v", verdicts[i])
		}
	}
	t.Logf("%d steps", steps)
}

// Releases for such buyers are short too, and none is lost.
func TestRelease_ShortWithLongMarks(t *testing.T) {
	// A step releases two orders of the longest marks, so fewer of them are released.
	for limit, buyers := range map[int]int{1: heavyBatch, seckill.MaxPerUserLimit: heavyBatch / 8} {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			h := newHeavy(t, buyers, limit, limit)
			var took []time.Duration
			released := 0
			for left := h.live; len(left) > 0; {
				verdicts, long := h.do(ledger.Release{Orders: left})
				took = append(took, long)
				var again []ledger.ReleaseOrder
				for i, v := range verdicts {
					switch v.Code {
					case ledger.VerdictUndecided:
						again = append(again, left[i])
					case ledger.VerdictReleased:
						released++
					}
				}
				if verdicts[0].Code != ledger.VerdictReleased {
					t.Fatalf("the first is told %d", verdicts[0].Code)
				}
				left = again
			}
			if f := h.figures(); released != buyers || f.Releases != uint64(buyers) || f.Orders != int64(buyers*(limit-1)) {
				t.Errorf("%d released: %+v", released, f)
			}
			slices.Sort(took)
			t.Logf("%d steps, from %v to %v", len(took), took[0], took[len(took)-1])
			if median := took[len(took)/2]; median > longest {
				t.Errorf("half of %d steps took %v or more", len(took), median)
			}
		})
	}
}

// Steps of walks over all marks are short too: EachBuyer, Audit and sweep.
func TestWalk_ShortStepsWithLongMarks(t *testing.T) {
	const walked = 64
	h := newHeavy(t, walked, seckill.MaxPerUserLimit, seckill.MaxPerUserLimit)
	walks := map[string]func(){
		"the buyers": func() {
			seen := make(map[string]bool)
			err := h.ledger.EachBuyer(h.ctx(), []Group{{ID: 1, Shards: 1}}, func(_ uint32, buyer string) { seen[buyer] = true }, nil)
			if err != nil || len(seen) != walked {
				t.Errorf("%d buyers: %v", len(seen), err)
			}
		},
		"the count": func() {
			if got, err := h.ledger.Audit(h.ctx(), h.shard); err != nil || got.Orders != walked*seckill.MaxPerUserLimit {
				t.Errorf("%+v: %v", got, err)
			}
		},
		"the sweep": func() {
			h.ledger.sweepLater(h.shard)
			h.ledger.running.Wait()
		},
	}
	for name, walk := range walks {
		// Redis measures real time. On a busy machine a step may pause, so the best of some
		// walks counts.
		best := math.Inf(1)
		for range 5 {
			h.server.Must("CONFIG", "RESETSTAT")
			walk()
			best = min(best, h.microsPerStep())
			if best <= float64(longest.Microseconds()) {
				break
			}
		}
		if best > float64(longest.Microseconds()) {
			t.Errorf("%s: a step takes %.0f µs", name, best)
		} else {
			t.Logf("%s: a step takes %.0f µs", name, best)
		}
	}
}

// microsPerStep returns the average time of scripts since the figures were reset.
func (h *heavy) microsPerStep() float64 {
	h.Helper()
	_, stat, _ := strings.Cut(h.server.Must("INFO", "commandstats"), "cmdstat_evalsha:")
	_, stat, _ = strings.Cut(stat, "usec_per_call=")
	stat, _, _ = strings.Cut(stat, ",")
	micros, err := strconv.ParseFloat(stat, 64)
	if err != nil {
		h.Fatal(err)
	}
	return micros
}
