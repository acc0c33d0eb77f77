package ledgertest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"seckill"
	"seckill/internal/ledger"
)

func concurrentStories() []story {
	return []story{
		{"a crowd gets exactly the stock, and no buyer more than the limit", func(f *fixture) {
			const stock, crowd, lanes = 40, 30, 6
			shard := f.sale(stock, 2)
			var claims []seckill.Claim
			for i := range 3 * crowd {
				claims = append(claims, f.claim(shard, fmt.Sprint("buyer-", i%crowd), 1, ""))
			}
			var wg sync.WaitGroup
			var sold atomic.Int64
			for l := range lanes {
				lane := ledger.NewLane(f.Ledger, shard, ledger.LaneOptions{CallTimeout: callTimeout})
				wg.Go(func() {
					for i := l; i < len(claims); i += lanes {
						result, err := lane.Do(f.ctx(), reserve(claims[i]))
						if err != nil {
							f.Errorf("reserve: %v", err)
							return
						}
						if result.Verdicts[0].Code == ledger.VerdictAccepted {
							sold.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if got := f.read(shard); sold.Load() != stock || got.Marked != stock || got.Available != 0 {
				f.Errorf("%d sold, figures %+v", sold.Load(), got)
			}
			for i := range crowd {
				held, err := f.Ledger.Held(f.ctx(), shard, fmt.Sprint("buyer-", i))
				f.check(err, "held")
				if len(held) > 2 {
					f.Errorf("buyer %d holds %d", i, len(held))
				}
			}
		}},
		{"after a pause has returned, no claim is sold", func(f *fixture) {
			const lanes = 4
			shard := f.sale(1_000_000, 1)
			var paused atomic.Bool
			var wg sync.WaitGroup
			started := make(chan struct{}, lanes)
			for l := range lanes {
				lane := ledger.NewLane(f.Ledger, shard, ledger.LaneOptions{CallTimeout: callTimeout})
				wg.Go(func() {
					for i := 0; ; i++ {
						after := paused.Load() // before the call is sent
						no := seckill.NewOrderNo(epochStart, shard.Product, uint64(l)<<32|uint64(i))
						result, err := lane.Do(f.ctx(), reserve(seckill.Claim{OrderNo: no, Buyer: no.String(), Quantity: 1}))
						if i == 0 {
							started <- struct{}{}
						}
						if err != nil {
							f.Errorf("reserve: %v", err)
							return
						}
						if after {
							if code := result.Verdicts[0].Code; code != ledger.VerdictPaused {
								f.Errorf("verdict %d after the pause", code)
							}
							return
						}
					}
				})
			}
			for range lanes {
				<-started
			}
			f.state(shard, seckill.SalePaused)
			paused.Store(true)
			wg.Wait()
		}},
		{"after many installs the highest epoch stays", func(f *fixture) {
			shard := f.product()
			var wg sync.WaitGroup
			for epoch := uint64(1); epoch <= 8; epoch++ {
				wg.Go(func() {
					next := shard
					next.Epoch = epoch
					there, err := f.Ledger.Install(f.ctx(), ledger.Allotment{Shard: next, Available: int64(epoch), Limit: 1}, seq(nil))
					if err != nil || there < epoch {
						f.Errorf("install of epoch %d: %d, %v", epoch, there, err)
					}
				})
			}
			wg.Wait()
			if got := f.read(shard); got.Epoch != 8 || got.Available != 8 {
				f.Errorf("%+v", got)
			}
		}},
	}
}
