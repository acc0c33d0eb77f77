package instance

import (
	"fmt"
	"sync"
	"testing"

	"seckill"
	"seckill/test/engine"
)

// The last unit of a product is elsewhere when a claim comes for it: on another
// shard, or in the fallback share. The claim is sent again and again, to both
// instances and before any answer is there, as by a shopper whose answers are
// lost. Whichever answers, it is the order of that claim; never that all is sold.
func TestALostAnswerIsNeverRepeatedAsSoldOut(t *testing.T) {
	t.Parallel()
	a, b := pair(t, shared(t))
	const rounds, presses = 8, 6
	product := uint32(0)
	for name, sold := range map[string]engine.Product{
		"sharded":             {Strategy: "sharded", Shards: 4, Stock: 1},
		"with fallback_share": {Stock: 2, FallbackShare: 0.5},
	} {
		for range rounds {
			product++
			sold.ID = product
			openSale(t, a, sold)
			sees(t, b, product)
			if sold.Stock == 2 {
				buys(t, a, product, "first")
			}
			found := press(t, presses, product, fmt.Sprintf("buyer-%d", product), a, b)
			if len(found) != 1 {
				t.Errorf("%s: one claim was answered %v", name, found)
			}
			for answer := range found {
				if answer == string(seckill.CodeSoldOut) {
					t.Errorf("%s: told sold_out", name)
				}
			}
		}
	}
}

// press sends one claim so often to each instance at once, each until it is
// decided, and counts the answers: order numbers and codes.
func press(t *testing.T, times int, product uint32, buyer string, instances ...*engine.Engine) map[string]int {
	t.Helper()
	var mu sync.Mutex
	found := map[string]int{}
	var all sync.WaitGroup
	for _, e := range instances {
		for range times {
			all.Go(func() {
				for {
					no, err := e.Buyer(buyer).Buy(t.Context(), product, engine.Purchase{Quantity: 1, Key: "cart"})
					code := engine.CodeOf(err)
					if code == seckill.CodeBusy || code == seckill.CodeTooHot {
						continue // no decision
					}
					mu.Lock()
					defer mu.Unlock()
					found[no+string(code)]++
					return
				}
			})
		}
	}
	all.Wait()
	return found
}
