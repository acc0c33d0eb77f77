package instance

import (
	"fmt"
	"sync"
	"testing"

	"seckill"
	"seckill/test/engine"
)

// The last unit of a product is on another shard when a claim comes for it. The
// claim is sent again and again, to both
// instances and before any answer is there, as by a shopper whose answers are
// lost. Whichever answers, it is the order of that claim; never that all is sold.
func TestALostAnswerIsNeverRepeatedAsSoldOut(t *testing.T) {
	t.Parallel()
	a, b := pair(t, shared(t))
	const rounds, presses = 8, 6
	product := uint32(0)
	for range rounds {
		product++
		openSale(t, a, engine.Product{ID: product, Strategy: "sharded", Shards: 4, Stock: 1})
		sees(t, b, product)
		found := press(t, presses, product, fmt.Sprintf("buyer-%d", product), a, b)
		if len(found) != 1 {
			t.Errorf("one claim was answered %v", found)
		}
		for answer := range found {
			if answer == string(seckill.CodeSoldOut) {
				t.Error("told sold_out")
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
