package purchase_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/purchase"
	"seckill/test/virtual"
)

// Redis hangs and executes the claims later; their buyers got busy. If a repeated key
// returns the order, this instance must remember the order by then: its journal and a
// takeover must not miss a promise.
func TestBuy_OrderThatIsFoundByItsKeyIsRemembered(t *testing.T) {
	const buyers = 20
	virtual.Test(t, func(t *testing.T) {
		var book diary
		o := newOutletWith(t, func(opt *purchase.Options) { opt.Promises = &book }, 100)
		o.remote.freeze()
		var all sync.WaitGroup
		buy := func(i int) (seckill.OrderNo, error) {
			name := fmt.Sprint("b-", i)
			bought, err := o.Buy(o.on, purchase.Claim{Buyer: name, Quantity: 1, Key: name})
			return bought.OrderNo, err
		}
		for i := range buyers {
			all.Go(func() {
				if no, err := buy(i); err == nil {
					t.Errorf("a frozen ledger sold %s", no)
				}
			})
			virtual.Sleep(time.Millisecond) // batches of one, on both lanes
		}
		all.Wait()
		o.remote.resume()
		for i := range buyers {
			all.Go(func() {
				for range 1000 {
					no, err := buy(i)
					if err == nil {
						if len(book.of(no)) != 1 {
							t.Errorf("order %s is remembered %d times", no, len(book.of(no)))
						}
						return
					}
					virtual.Sleep(time.Millisecond)
				}
				t.Errorf("buyer %d finds no order", i)
			})
		}
		all.Wait()
		o.exactlyOnce(t)
	})
}
